"""`orbit dev`: a server, its embedded database and a worker, as children of one command."""
