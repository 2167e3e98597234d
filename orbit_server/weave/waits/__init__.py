"""Everything that waits for a person or another system."""
