"""Pause, resume, cancel."""
