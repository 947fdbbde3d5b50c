"""The Python interface: a query grown operator by operator, under the names that PySpark has for them."""
