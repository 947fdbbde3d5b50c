"""Clauses of a query as nodes of a plan: names, FROM, joins, grouping, windows, ranking, the current time."""
