"""What everybody shares: shapes of ids and instants, canonical JSON, limits and defaults."""
