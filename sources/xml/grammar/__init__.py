"""Whether a stream keeps its word: no tuple comes after a punctuation that matches it."""
