"""The Python interface: a query built operator by operator, with PySpark's method names."""
