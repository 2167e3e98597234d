"""Limits of queues and namespaces: permits, backlogs, rates. A row exists only where a limit was set."""
