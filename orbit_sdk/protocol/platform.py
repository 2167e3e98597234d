"""Wire models of credentials and of the server itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from orbit_sdk.protocol.common import Answer, Id, Instant, Managed, Request, Words


class CreateCredential(Request):
    """`submit_queues`, `consume_queues`: names, or `["*"]`. `signal_definitions`: `order` (every signal of
    workflows of this definition), `order:payment.received` (one of them), `*:payment.received`, or `*`.
    """

    name: Annotated[
        str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    ]
    permissions: Annotated[list[str], Field(max_length=64)]
    submit_queues: Annotated[list[str], Field(max_length=1000)] = []
    consume_queues: Annotated[list[str], Field(max_length=1000)] = []
    signal_definitions: Annotated[list[str], Field(max_length=1000)] = []
    priority_max: Annotated[int, Field(ge=0, le=9)] | None = None
    """The highest priority that it may submit with."""
    expires_at: Instant | None = None


class Credential(Answer):
    id: Id
    name: str
    permissions: list[str]
    submit_queues: list[str]
    consume_queues: list[str]
    signal_definitions: list[str]
    priority_max: int | None = None
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None


class CreatedCredential(Credential):
    """The only answer that ever carries the token."""

    token: str


class Revoke(Managed):
    """Why, and for whom."""


class BlockBuild(Managed):
    """Whose workers get no work any more, or again."""

    build: Annotated[Words, StringConstraints(min_length=1, max_length=200)]


class BuildState(Answer):
    build: str
    blocked: bool


class OfferedHandler(Answer):
    """`digest` is of the types of parameters and result; `verify`: it can find out what happened."""

    recovery: str
    digest: str
    verify: bool


class WorkerSession(Answer):
    """One connection of a worker; `closed_at` is set once it ended."""

    id: Id
    worker: str
    build: str | None = None
    node_id: Id
    credential_id: Id
    queues: list[str]
    handlers: dict[str, OfferedHandler]
    """What it announced, by `name@version`."""
    connected_at: Instant
    seen_at: Instant
    closed_at: Instant | None = None
    blocked: bool = False
    """Its build gets no work."""
    stuck: int = 0
    """How many of its handlers go on although their attempts are over."""
    refused: dict[str, str] = Field(default_factory=dict)
    """Handlers that it announced and that are not served, `name@version` to the reason."""


class Healthy(Answer):
    status: str


class Ready(Answer):
    status: str
    node_id: Id
