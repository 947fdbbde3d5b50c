"""Rules of punctuate, one module for each kind of knowledge: order, clock, domain, predicate, roster."""
