"""Spark's part in planning: types and errors of its analyser, its functions, and the check of printed SQL."""
