"""SECRET: what other engines answer to a query over windows, and why (Botan et al. 2010)."""
