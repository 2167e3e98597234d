"""Many decisions at once: planned, looked at, applied with a rate and with stop conditions."""
