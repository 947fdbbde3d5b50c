"""The one table of what an expression is: of operators, functions, casts and aggregates, each entry in one place."""
