"""Wire models, one module per resource, and the worker protocol as a pure object."""
