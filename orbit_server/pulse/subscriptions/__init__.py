"""Who is told when a task changes: the inbox rows of workflows."""
