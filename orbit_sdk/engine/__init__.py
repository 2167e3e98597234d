"""The pure workflow state machine: what a definition means."""
