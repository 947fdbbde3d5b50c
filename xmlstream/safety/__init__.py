"""Whether a query will answer and whether its state will fit, told from its schemes before it runs."""
