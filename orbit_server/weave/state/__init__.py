"""One instance in the book: its rows, the facts they hold, asking the engine, and writing what it decided."""
