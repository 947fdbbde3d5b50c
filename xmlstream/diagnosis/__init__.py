"""Diagnosis of a query from its checkpoint: which groups and tuples wait, for which punctuations, from which source."""
