"""Background work: one small file per kind, all of one shape (`Loop`), run by one runner."""
