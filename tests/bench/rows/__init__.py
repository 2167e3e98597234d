"""The rows of the benchmark: each a function that answers figures of one run."""
