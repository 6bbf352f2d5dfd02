"""Checks of a catalogue: against itself (``cross``), and against a live database (``live``)."""
