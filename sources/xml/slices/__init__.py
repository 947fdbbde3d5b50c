"""Slices of sources: which ranges each has, and the staging of what they contain; without Spark."""
