"""The parser: the text of a byte range becomes columns of tuples, and punctuations. No Spark."""
