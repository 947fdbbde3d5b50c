"""Split points and byte ranges of documents, found without parsing, and the slices that a planner makes of them."""
