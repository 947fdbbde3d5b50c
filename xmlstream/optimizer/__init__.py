"""Rules that make a plan cheaper without changing its results."""
