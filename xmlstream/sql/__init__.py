"""From SQL text to a plan, or to an error that names the place in the text."""
