"""Records to runs, gold, samples and corpora, whatever their fields are called."""
