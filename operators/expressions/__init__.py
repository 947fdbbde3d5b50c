"""Expressions of Spark SQL: the one dialect that reads and prints them, and what can be told of them without data."""
