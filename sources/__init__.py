"""Sources of punctuated streams: XML in files, as a data source of Spark; receivers; and generators of such files."""
