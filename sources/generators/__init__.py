"""Generators of punctuated XML to try queries on: sensors of a warehouse, streams of an online auction."""
