"""Cron, zones and fixed rate: when a plan is due, as pure functions."""
