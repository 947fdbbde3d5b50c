"""What joins are made of: partners, equal attributes, and the purge over two inputs or many."""
