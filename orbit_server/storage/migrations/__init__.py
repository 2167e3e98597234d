"""The schema and its history: forward only, each step add-only for one release and safe to run again.

MySQL commits every DDL statement by itself, so a step that was interrupted is run again from its start: it
creates only what is missing. The version is written after the step's last statement.
"""

from __future__ import annotations

from orbit_server.storage.migrations.state import SchemaState, migrate, schema_state

__all__ = ["SchemaState", "migrate", "schema_state"]
