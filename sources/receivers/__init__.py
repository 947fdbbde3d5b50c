"""Receivers: write live feeds durably into documents that a source reads."""
