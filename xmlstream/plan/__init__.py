"""Plans of queries: directed acyclic graphs of operators over inputs."""
