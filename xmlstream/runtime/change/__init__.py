"""A query that is changed: what is the same, what the new one takes over, and how its checkpoint is rewritten."""
