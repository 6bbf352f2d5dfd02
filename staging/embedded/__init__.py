"""Real servers as child processes, for a machine with Python and nothing else. Not for production."""
