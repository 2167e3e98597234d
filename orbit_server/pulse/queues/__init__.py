"""Queues: order, pause, limits."""
