"""Tables, migrations, the committer, and the one place that knows SQL dialects."""
