"""Torture: clients confirm while everything else is killed; then the oracle. ``make torture``."""
