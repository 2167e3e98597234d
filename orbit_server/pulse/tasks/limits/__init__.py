"""What limits mean for a task: permits, tokens, backlogs, inside a transaction."""
