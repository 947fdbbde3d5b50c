"""Storage below operators and sources: durable files, segments of rows, and runs of closed strings."""
