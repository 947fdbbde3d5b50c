"""The data sources through which Spark reads punctuated XML, in batch and as a stream."""
