"""Parts of joins: the equi-join of two inputs, equal attributes, and the purge over two inputs or many."""
