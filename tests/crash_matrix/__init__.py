"""The crash matrix: every window of an operation's life, every way of losing a process there, every database and mode,
four operations of the real ERP adapter. ``make crash-matrix``; RELIABILITY C2, C3."""
