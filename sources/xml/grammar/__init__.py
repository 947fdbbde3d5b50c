"""The grammar of a stream, checked columnwise: no tuple follows a punctuation that matches it."""
