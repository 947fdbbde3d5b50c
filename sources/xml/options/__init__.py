"""What is declared of a source before it is read: where it is, what a tuple of it looks like."""
