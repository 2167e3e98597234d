"""The worker socket: authentication, sessions, and the way from frames to commands."""

from orbit_server.gateway.connection import BoundedWebsocketConnection
from orbit_server.gateway.gateway import Gateway
from orbit_server.gateway.parts import DispatchPort, GatewayParts, GatewaySettings
from orbit_server.gateway.routes import gateway_blueprint

__all__ = [
    "BoundedWebsocketConnection",
    "DispatchPort",
    "Gateway",
    "GatewayParts",
    "GatewaySettings",
    "gateway_blueprint",
]
