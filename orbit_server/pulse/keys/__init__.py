"""Concurrency keys: admitting those who wait."""
