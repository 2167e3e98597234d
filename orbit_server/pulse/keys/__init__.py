"""Concurrency keys: how many tasks of one key may be under way, and who comes next."""
