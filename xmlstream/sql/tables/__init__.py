"""Declared tables: CREATE TABLE for sources and sinks, options of streams, statements for inferred sources."""
