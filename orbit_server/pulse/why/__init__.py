"""Why a task does not move: every condition that is not met, and what happens next by itself."""
