"""The grammar of a stream, checked columnwise: no tuple comes after a punctuation that matches it."""
