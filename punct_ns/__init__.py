"""The algebra of punctuations: patterns, punctuations, sets of them, schemes, notation, XML form, grammar."""
