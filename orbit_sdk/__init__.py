"""Orbit's SDK: typed workflows, handlers, the worker, the client and the `orbit` command."""
