"""The async client: the source from which the sync one is generated."""
