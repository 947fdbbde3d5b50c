"""A plan run slice by slice: from a micro-batch of Spark to one commit, and after a failure on from the last."""
