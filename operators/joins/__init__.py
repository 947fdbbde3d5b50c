"""Parts of joins: the equi-join of two inputs, equivalent attributes, and the purge over two inputs or many."""
