"""`orbit run`: try a workflow now. It is checked, kept as a draft, started and watched to its end."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.compiling import load_or_leave
from orbit_sdk.cli.connection import Token, Url, address, connected
from orbit_sdk.cli.modules import split_target
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.shapes import wire
from orbit_sdk.cli.sources import Source
from orbit_sdk.cli.values import json_value, labels
from orbit_sdk.cli.watch import follow
from orbit_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit

__all__ = ["run"]

_PATIENCE_S = 60.0
_STOP_S = 10.0


@command(
    """orbit run app.py:payment --input '{"number": "A-17", "amount": 5}'""",
    "orbit run app.py:payment --input @order.json --worker --cancel-on-interrupt",
)
def run(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="file.py:workflow, or a file or module with one workflow."),
    ],
    given: Annotated[
        str, typer.Option("--input", "-i", metavar="JSON", help="JSON, @file, or - for standard input.")
    ] = "null",
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Its business key: what the business calls it.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="May be given several times.")
    ] = None,
    worker: Annotated[
        bool, typer.Option("--worker", help="Run a worker for the handlers of the target meanwhile.")
    ] = False,
    cancel: Annotated[
        bool,
        typer.Option("--cancel-on-interrupt", help="Ctrl-C cancels the workflow, and waits for its end."),
    ] = False,
    stop_on_review: Annotated[
        bool, typer.Option("--stop-on-review", help="Leave with exit code 1 when a person has to decide.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Leave after this: exit code 1."),
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Check a workflow, keep it as a draft, start it and show it to its end.

    A draft takes no version number; only development namespaces have drafts. Where no server is known, one
    of its own is run with a worker, and nothing is kept. Exit code 0 when the workflow succeeded, 1 when not.
    Ctrl-C leaves it running.
    """
    out = Output(json=json)
    content, named = json_value(given, "--input"), labels(label or [], "--label")
    source = _only(target, out)
    with _server(target, (url, token), out, worker=worker) as (client, own):
        wants = _Wants(cancel=cancel, own=own, stop_on_review=stop_on_review, timeout=timeout)
        started = _start(client, source, content, (key, named), out)
        if not (worker or own or json):
            _say_lacking(client, source, out)
        raise typer.Exit(_follow(client, started, out, wants))


def _only(target: str, out: Output) -> Source:
    """The one workflow of the target, without errors."""
    sources = load_or_leave([target], out).sources
    found = next(iter(sources), None)
    if len(sources) > 1 or found is None:
        module, _ = split_target(target)
        names = [each.workflow.__name__ if each.workflow else str(each.id) for each in sources]
        raise typer.BadParameter(
            f"there are several workflows here: say which, as {module}:{names[0]} ({', '.join(names)})",
            param_hint="TARGET",
        )
    return found


def _start(
    client: Orbit, source: Source, content: Any, about: tuple[str | None, dict[str, str]], out: Output
) -> str:
    """Keep the draft and start it; the workflow's id."""
    assert source.definition is not None
    document = source.definition.to_json()
    draft = client.definitions.keep_draft(document, side=source.side)
    if out.json:
        out.event({"draft": wire(draft)})
    else:
        out.note(f"draft   {draft.definition_id}  {draft.digest[:12]}", "dim")
    key, named = about
    found = client.workflows.start(
        draft.definition_id, content, draft=draft.digest, business_key=key, labels=named
    )
    if out.json:
        out.event({"started": wire(found)})
    return found.id


def _say_lacking(client: Orbit, source: Source, out: Output) -> None:
    assert source.definition is not None
    for lack in client.definitions.plan(source.definition.to_json()).lacking:
        out.note(f"waits   {lack.message}, or run with --worker", "yellow")


@dataclass(slots=True)
class _Wants:
    """How the workflow is followed. `cancel`: Ctrl-C cancels it; `own`: the server ends with this command."""

    cancel: bool
    own: bool
    stop_on_review: bool
    timeout: float | None


def _follow(client: Orbit, workflow_id: str, out: Output, wants: _Wants) -> ExitCode:
    """Show every change until it ends; the exit code says how."""

    def interrupted() -> bool:
        if wants.cancel:  # the second time it is left alone
            wants.cancel = False
            out.note("\ncancelling; Ctrl-C again leaves it", "yellow")
            client.workflows.cancel(workflow_id, reason="orbit run was interrupted")
            return True
        goes_on = f"the workflow goes on; look again with: orbit watch {workflow_id}"
        ends = "the workflow ends with this command's own server: `orbit dev` runs one that stays"
        out.note(f"\n{ends if wants.own else goes_on}", "dim")
        return False

    return follow(
        client,
        workflow_id,
        out,
        stop_on_review=wants.stop_on_review,
        timeout=wants.timeout,
        interrupted=interrupted,
    )


@contextmanager
def _server(
    target: str, where: tuple[str | None, str | None], out: Output, *, worker: bool
) -> Generator[tuple[Orbit, bool]]:
    """The server that is known here; else one of our own, with a worker, that keeps nothing."""
    from orbit_sdk.cli.dev.children import Child, Children
    from orbit_sdk.cli.dev.session import DevOptions, Session, data_folder

    module, _ = split_target(target)
    try:
        known = address(*where)
    except InvalidArgument:
        if any(where):
            raise
        out.note("no server is known here: this is one of its own, and nothing is kept", "dim")
        options = DevOptions((module,), 0, (), audit=False, ephemeral=True, log_level="WARNING", slots=16)
        with data_folder(options) as data, Children(grace=_STOP_S) as children:
            session = Session(options, data, children)
            session.start_server()
            session.await_server()
            session.start_worker()
            with connected(session.url, data.token, patience=_PATIENCE_S) as client:
                yield client, True
        return
    with Children(grace=_STOP_S) as children:
        if worker:
            arguments = ["worker", module, "--name", "run", "--grace", "5s", "--log-level", "WARNING"]
            environment = {"ORBIT_URL": known[0], "ORBIT_TOKEN": known[1]}
            children.start(Child("worker", arguments, environment))
        with connected(*known, patience=_PATIENCE_S) as client:
            yield client, False
