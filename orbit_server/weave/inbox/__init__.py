"""Results of tasks on their way into workflows."""
