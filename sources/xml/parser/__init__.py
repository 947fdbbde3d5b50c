"""From the text of a range to columns of tuples and to punctuations. No Spark."""
