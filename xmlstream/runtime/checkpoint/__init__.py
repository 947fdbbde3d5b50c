"""The checkpoint of a run: what a commit records, where it lies, and how a run goes on from the last one."""
