"""What every part stands on: namespaces, credentials and permissions, the audit trail, hints, logs."""
