"""A page on which a query is seen to run: what is kept, what is closed, and which input withholds what."""
