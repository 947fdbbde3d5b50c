"""State of operators: behaviours, declared state, logs of kept tuples, and the files that these lie in."""
