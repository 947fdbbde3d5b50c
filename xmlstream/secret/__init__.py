"""SECRET: a model of the answers of other engines to queries over windows (Botan et al. 2010)."""
