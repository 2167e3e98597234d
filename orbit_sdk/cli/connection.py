"""From options, environment or profile to a client; and from what a person types to an id."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.output import WrongUse
from orbit_sdk.cli.profile import find_profile
from orbit_sdk.errors import NotFound, Unavailable
from orbit_sdk.values.ids import is_id

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.tasks import Task
    from orbit_sdk.protocol.workflows import Workflow

__all__ = ["KEY", "Token", "Url", "WorkflowId", "address", "connected", "task_id", "workflow_id"]

KEY = "key:"
"""How a business key is written where an id may stand."""
_PATIENCE_S = 2.0
_SHOWN = 5
_AWAY = "the server cannot be reached"

Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="Address of the server; else ORBIT_URL, or that of the profile."
    ),
]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", help="Its token; else ORBIT_TOKEN, or that of the profile."),
]
WorkflowId = Annotated[
    str, typer.Argument(metavar="WORKFLOW", help="A workflow id, or key:<business key>.", show_default=False)
]


def address(url: str | None, token: str | None) -> tuple[str, str]:
    """Where to go and what to show there. Raises WrongUse with the ways to say it.

    A profile's token is only ever shown to the profile's own server.
    """
    url = url or os.environ.get("ORBIT_URL") or None
    token = token or os.environ.get("ORBIT_TOKEN") or None
    if url is None or token is None:
        found = find_profile()
        if found is not None and (url is None or url.rstrip("/") == found[0].url):
            url, token = found[0].url, token or found[0].token
    if url is None:
        raise WrongUse(
            "no server is known here: run `orbit dev` in this folder, give --url and --token, "
            "or set ORBIT_URL and ORBIT_TOKEN"
        )
    if token is None:
        raise WrongUse(f"no token is known for {url}: give --token, or set ORBIT_TOKEN")
    return url, token


@contextmanager
def connected(url: str | None, token: str | None, *, patience: float = _PATIENCE_S) -> Generator[Orbit]:
    """A client of the server that these options, the environment or the profile name."""
    chosen = address(url, token)
    from orbit_sdk.client import ClientSettings, Orbit

    with Orbit(*chosen, settings=ClientSettings(retry_for=patience)) as client:
        try:
            yield client
        except Unavailable as error:
            profile = find_profile()
            if profile is None or profile[0].url != chosen[0] or not error.message.startswith(_AWAY):
                raise
            hint = f"{error.message} (is `orbit dev` running in {profile[1]}?)"
            raise Unavailable(hint, error.details) from None


def workflow_id(client: Orbit, text: str) -> str:
    """The id that a person meant: itself, or `key:<business key>` of exactly one open workflow.

    When none is open, a key that exactly one workflow ever had names that one.
    """
    if not text.startswith(KEY):
        return _checked(text, "workflow")
    key = text.removeprefix(KEY)
    found: list[Workflow] = list(client.workflows.list(business_key=key))
    return _only([item.id for item in found if item.ended_at is None], [item.id for item in found], key)


def task_id(client: Orbit, text: str) -> str:
    """The same for tasks."""
    if not text.startswith(KEY):
        return _checked(text, "task")
    key = text.removeprefix(KEY)
    found: list[Task] = list(client.tasks.list(business_key=key))
    return _only([item.id for item in found if item.settled_at is None], [item.id for item in found], key)


def _checked(text: str, what: str) -> str:
    if not is_id(text):
        raise typer.BadParameter(
            f"{text!r} is not a {what} id (32 lower-case hex digits); a business key is written {KEY}{text}"
        )
    return text


def _only(open_ones: list[str], every: list[str], key: str) -> str:
    candidates = open_ones or every
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise NotFound(f"nothing has the business key {key!r}")
    shown = ", ".join(candidates[:_SHOWN]) + (", …" if len(candidates) > _SHOWN else "")
    state = "open" if open_ones else "finished"
    raise NotFound(f"{len(candidates)} {state} ones have the business key {key!r}; say which: {shown}")
