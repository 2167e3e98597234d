"""The Orbit server: storage, tasks (Pulse), workflows (Weave), HTTP and the worker socket."""
