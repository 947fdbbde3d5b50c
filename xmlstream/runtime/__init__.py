"""Running a plan slice by slice: each micro-batch of Spark ends in one commit; a restart goes on from the last one."""
