"""Virtual time on the engine, a task context for handler tests, the pytest plugin."""
