"""Sinks: punctuated XML, Parquet, CSV, JSON, Delta Lake, PostgreSQL, standard output, and objects of the program."""
