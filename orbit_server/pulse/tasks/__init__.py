"""Tasks and attempts: lifecycle, rows, queries, operations."""
