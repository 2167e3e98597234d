"""Durable workflows: the engine's decisions joined to storage and to Pulse."""
