"""The engine in process: Spark's expressions and frames computed by DuckDB, where that is proven to be equal."""
