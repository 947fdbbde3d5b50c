"""The run of a plan, slice by slice: from Spark's micro-batch to one commit, and after a failure on from the last."""
