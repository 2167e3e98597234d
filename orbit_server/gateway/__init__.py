"""The worker socket."""
