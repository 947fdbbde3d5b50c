"""Where documents may be split, and how far a slice goes: byte ranges, found without parsing."""
