"""Signals that workflows wait for."""
