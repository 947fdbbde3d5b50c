"""What a punctuation is: patterns, punctuations, sets of them, schemes, notation, XML form, grammar."""
