"""Namespaces, credentials, permissions, audit, idempotency, retention."""
