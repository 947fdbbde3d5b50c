"""Declared tables: CREATE TABLE of sources and sinks, the options of streams, and statements for inferred sources."""
