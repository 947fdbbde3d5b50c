"""A live page of a running query: kept tuples, closed values, and the punctuations that inputs withhold."""
