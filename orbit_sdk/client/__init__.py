"""The HTTP client; the asynchronous one is the source, the synchronous one is generated."""
