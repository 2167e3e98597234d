"""The worker process: socket, slots, leases, re-sending of results, graceful exit."""
