"""The command line: one module for each larger command."""
