"""The data sources that Spark reads punctuated XML by, in batch and as a stream."""
