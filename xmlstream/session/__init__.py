"""The Spark session that a query runs in: its processes, its start, its errors."""

from xmlstream.extensions import called_as

called_as(__name__, 'xs.open_session(engine="duckdb"), or xs.open_session()')
