"""The typed builder: a Python function becomes a workflow definition."""
