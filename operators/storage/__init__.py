"""Storage, the floor on which operators and sources stand: stores of objects, segments of rows, closed strings."""
