"""Background work, one small file each, all of one shape."""
