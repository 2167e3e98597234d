"""Building a server from its settings, and its life from start to stop."""

from orbit_server.api.app import create_app
from orbit_server.api.server import Server
from orbit_server.bootstrap.node import KINDS, Parts, open_database, running
from orbit_server.bootstrap.process import run, serve

__all__ = ["KINDS", "Parts", "Server", "create_app", "open_database", "run", "running", "serve"]
