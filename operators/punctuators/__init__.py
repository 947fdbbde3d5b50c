"""What punctuate may know of a stream, one module for each way of knowing: order, clock, domain, predicate, roster."""
