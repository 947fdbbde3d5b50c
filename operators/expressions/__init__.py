"""What can be told of a Spark SQL expression by its text alone: the one place that reads and prints SQL."""
