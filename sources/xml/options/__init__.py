"""The options of a source, declared before it is read: its location, and what a tuple looks like."""
