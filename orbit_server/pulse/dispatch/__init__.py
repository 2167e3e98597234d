"""Bringing ready tasks to workers: slots, candidates, claims, offers."""
