"""Where punctuated streams come from: XML in files, as a data source of Spark, and generators of such files."""
