"""The Spark session that a query runs in: its processes, its start, its errors."""
