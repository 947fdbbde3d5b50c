"""The options of a source, declared before it is read: where it is, what a tuple of it looks like."""
