"""Declarations of handlers: contracts, recovery levels, the task context, task errors."""
