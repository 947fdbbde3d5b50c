"""Databases and table formats that take a result in transactions; what they need is imported where it is used first."""
