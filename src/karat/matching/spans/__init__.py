"""How much of a gold passage retrieved texts cover, however they were cut."""
