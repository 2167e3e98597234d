"""Weighted fair queueing over fairness keys, inside one priority of one queue."""
