"""SQL text to a plan, or to an error with its place in the text."""
