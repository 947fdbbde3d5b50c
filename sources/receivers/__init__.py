"""Receivers: live feeds written durably into documents that a source reads."""
