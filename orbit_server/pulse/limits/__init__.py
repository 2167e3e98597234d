"""Limits of queues, namespaces and key classes: setting them, and what a node knows of them."""
