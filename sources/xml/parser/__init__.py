"""The parser: turns the text of a byte range into columns of tuples, and punctuations. No Spark."""
