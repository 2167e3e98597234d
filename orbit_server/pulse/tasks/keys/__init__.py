"""What a concurrency key means for its tasks: who holds it, who waits, inside a transaction."""
