"""Why gold was missed, whether it can be trusted, and what unjudged documents hide."""
