"""The rows of windows, in Spark: functions over the rows of groups, and contents that other engines report."""
