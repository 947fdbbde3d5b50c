"""What a query waits for, told from its checkpoint: which groups and tuples, for which punctuations, of whom."""
