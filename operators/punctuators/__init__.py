"""Rules of punctuate, by the kind of knowledge: order, roster and clock; domain and predicate."""
