"""A query as a plan: a directed acyclic graph of operators over inputs."""
