"""Safety of a query: its schemes determine, before it runs, whether it answers and whether its state stays bounded."""
