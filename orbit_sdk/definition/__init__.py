"""The workflow definition (schema version 1): models, expressions, value types, digest."""
