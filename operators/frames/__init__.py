"""Frames: the border between operators and the engine that computes tuples."""
