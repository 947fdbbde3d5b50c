"""Expressions of Spark SQL: the one dialect that reads and prints them, and what follows from them without data."""
