"""State of operators: declared state, sets of closed values, logs of kept tuples, and the tuples of a slice."""
