"""`orbit dev`."""

from __future__ import annotations

import json as json_module
import os
import shlex
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from orbit_sdk.cli.check import summary
from orbit_sdk.cli.command import command
from orbit_sdk.cli.dev.children import Children
from orbit_sdk.cli.dev.ports import holder_of, is_free
from orbit_sdk.cli.dev.reload import Files, check_again, say
from orbit_sdk.cli.dev.samples import sample
from orbit_sdk.cli.dev.session import DevOptions, Session, data_folder
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.publish import few
from orbit_sdk.cli.rendering import render
from orbit_sdk.cli.sources import Loaded, Source, load
from orbit_sdk.cli.values import duration_ms
from orbit_sdk.errors import Unavailable

__all__ = ["dev"]

_PORT = 7400
_HOST = "127.0.0.1"
_STOP_S = 10.0


class Stopped(BaseException):
    """Ctrl-C or SIGTERM."""


@command(
    "orbit dev app.py", "orbit dev app.py --reload", "orbit dev app.py --port 7500 --lease 5s --ephemeral"
)
def dev(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET…]",
            help="Python files or modules with workflows and handlers; without any, the server alone.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65_535, help="0 takes a free one.")] = _PORT,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep nothing after the end.")] = False,
    audit: Annotated[
        bool,
        typer.Option("--workflow-audit-access", help="The token may read the audit timeline (orbit events)."),
    ] = False,
    lease: Annotated[
        str | None, typer.Option("--lease", metavar="30s", help="How long an attempt may be silent.")
    ] = None,
    workflow: Annotated[bool, typer.Option("--publish/--no-publish", help="Publish what is loaded.")] = True,
    slots: Annotated[
        int, typer.Option("--slots", min=1, help="How many attempts the worker runs at once.")
    ] = 16,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Check, publish and start the worker anew when a file changes."),
    ] = False,
    log_level: Annotated[str, typer.Option("--log-level", help="Of the worker.")] = "WARNING",
    json: Json = False,
) -> None:
    """Run a server with an embedded database here, and a worker for the given module, until Ctrl-C.

    It listens on this machine only, keeps its data in .orbit/ and leaves a profile there that all other
    commands find by themselves. Every setting of the server can also be given in the environment, as
    ORBIT_LEASE_MS=5000.
    """
    out = Output(json=json)
    settings = () if lease is None else ("--lease", f"{duration_ms(lease, '--lease')}ms")
    options = DevOptions(tuple(targets or ()), port, settings, audit, ephemeral, log_level.upper(), slots)
    _check_port(port)
    children = Children(grace=_STOP_S)
    with _signals(children), data_folder(options) as data:
        try:
            with children:
                _run(Session(options, data, children), out, publish=workflow, reload=reload)
        except Stopped:
            pass
        if json:
            out.event({"event": "stopped"})
        else:
            out.note("stopped" + ("; nothing is kept" if ephemeral else ""), "dim")


def _run(session: Session, out: Output, *, publish: bool, reload: bool) -> None:
    session.start_server()
    targets = session.options.targets
    # Looked at before they are loaded: a change in between is one that was not loaded.
    files = Files.of(targets) if reload else None
    loaded = load(targets) if targets else Loaded(())
    if not loaded.ok:
        if out.json:
            out.event({"event": "refused", "findings": [found.to_json() for found in loaded.findings]})
        else:
            render(loaded.findings, out)
            out.note(summary(loaded), "bold")
        raise typer.Exit(ExitCode.REFUSED)
    session.await_server()
    answers = session.publish(loaded) if publish else []
    if loaded.handlers:
        session.start_worker()
    _say_ready(session, loaded, answers, out)
    for said in session.watch(None if files is None else _reloading(session, files, out, publish=publish)):
        if out.json:
            out.event({"event": "worker", "message": said})
        else:
            out.note(said, "yellow")


def _reloading(session: Session, files: Files, out: Output, *, publish: bool) -> Callable[[], Iterator[str]]:
    """Looks for changed files; what it says is printed by whoever watches."""
    targets = session.options.targets

    def look() -> Iterator[str]:
        changed = files.changed()
        if not changed:
            return
        change = check_again(targets, session.url, session.data.token, publish=publish)
        if change.ok:
            session.restart_worker()
        if out.json:
            out.event({"event": "reloaded" if change.ok else "refused", **change.data})
        else:
            yield from say(change, changed)

    return look


def _say_ready(session: Session, loaded: Loaded, answers: list[dict[str, Any]], out: Output) -> None:
    """At most eight lines: where it is, what it loaded, what to do next, how to stop."""
    data, changed = session.data, [answer for answer in answers if answer["outcome"] == "changed"]
    if out.json:
        out.event(
            {
                "event": "ready",
                "url": session.url,
                "token": data.token,
                "database": str(data.database),
                "workflows": answers,
                "handlers": [one.key for one in loaded.handlers],
                "pids": {**session.pids, "dev": os.getpid()},
            }
        )
        return
    from importlib.metadata import version

    kept = "gone at the end" if session.options.ephemeral else "kept"
    out.line(f"Orbit {version('orbit-sdk')}  {_short(data.database)} ({kept})", "bold")
    out.line(f"  API     {session.url}")
    out.line(f"  Token   {data.token}")
    out.line(f"  Loaded  {_loaded(loaded)}")
    if changed:
        names = ", ".join(
            f"{answer['definition_id']} version {answer['version']} ({few(answer['changes'])})"
            for answer in changed
        )
        out.line(
            f"  Changed {names}: published otherwise before, and left so; raise the version",
            "yellow",
        )
    out.line(f"  Next    {_next(loaded)}", "green")
    out.line("  Stop    Ctrl-C")


def _loaded(loaded: Loaded) -> str:
    names = [f"{source.id}@{source.version}" for source in loaded.sources]
    handlers = len(loaded.handlers)
    parts = [", ".join(names) or "no workflow"]
    if handlers:
        parts.append(f"{handlers} handler" + ("s" if handlers > 1 else ""))
    return "; ".join(parts) if loaded.sources or handlers else "nothing (orbit dev app.py loads one)"


def _next(loaded: Loaded) -> str:
    source = loaded.sources[0] if loaded.sources else None
    if source is None or source.definition is None:
        return "orbit --help"
    return f"orbit start {source.id} --input {shlex.quote(_sample(source))} --watch"


def _sample(source: Source) -> str:
    assert source.definition is not None
    document = source.definition.to_json()
    return json_module.dumps(sample(document["input"], document["types"]), ensure_ascii=False)


def _check_port(port: int) -> None:
    """Raises Unavailable naming who holds the port, and the way out."""
    if port == 0 or is_free(_HOST, port):
        return
    holder = holder_of(port)
    who = "another process" if holder is None else f"process {holder[0]} ({holder[1]})"
    raise Unavailable(f"port {port} is held by {who}: stop it, or take another with --port {port + 1}")


@contextmanager
def _signals(children: Children) -> Generator[None]:
    """The first Ctrl-C or SIGTERM stops in good order, a second one at once."""
    stopping = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        if stopping:
            children.hurried = True
            return
        stopping = True
        raise Stopped

    wanted = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before: list[tuple[signal.Signals, Callable[..., Any] | int | None]] = [
        (one, signal.signal(one, on_signal)) for one in wanted
    ]
    try:
        yield
    finally:
        for one, old in before:
            signal.signal(one, old)


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
