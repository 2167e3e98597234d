"""HTTP, one module per resource; envelope, errors, paging."""
