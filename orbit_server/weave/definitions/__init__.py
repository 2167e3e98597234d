"""Published definitions: publish, read, point to the current version."""
