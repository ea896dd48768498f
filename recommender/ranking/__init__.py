"""Options -> frontier, picks, and the one to take."""
