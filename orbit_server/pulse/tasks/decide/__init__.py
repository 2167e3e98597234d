"""The decisions on one task: pure functions from a task (and its attempt) to a `Move`."""
