"""`orbit worker`: a worker for the handlers of modules."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, address
from orbit_sdk.cli.modules import import_target, split_target, values_of
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.values import duration_ms
from orbit_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from orbit_sdk.handlers import Handler
    from orbit_sdk.worker import Worker

__all__ = ["worker"]

Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="How many of them in threads. Default: all.")
]
Processes = Annotated[
    int | None, typer.Option("--processes", min=1, help="How many of them in processes. Default: all.")
]
HealthPort = Annotated[
    int | None,
    typer.Option(
        "--health-port",
        min=0,
        max=65535,
        help="Answer /healthz, /readyz and /metrics here.",
        metavar="PORT",
    ),
]


@command(
    "orbit worker app.py",
    "orbit worker shop.handlers:HANDLERS --queue payments --slots 32 --grace 60s",
)
def worker(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET…",
            help="Python files or modules; file.py:name for one handler, or a list of them.",
            show_default=False,
        ),
    ],
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", help="Take work from here only; may be given several times."),
    ] = None,
    slots: Annotated[int, typer.Option("--slots", min=1, help="How many attempts run at once.")] = 16,
    threads: Threads = None,
    processes: Processes = None,
    name: Annotated[
        str | None, typer.Option("--name", help="How it is shown. Default: host and pid.")
    ] = None,
    build: Annotated[
        str, typer.Option("--build", envvar="ORBIT_BUILD", help="Which build of your code this is.")
    ] = "",
    grace: Annotated[
        str, typer.Option("--grace", metavar="25s", help="How long a stop waits for what runs.")
    ] = "25s",
    health_port: HealthPort = None,
    log_level: Annotated[str, typer.Option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Run handlers until stopped.

    Ctrl-C or SIGTERM takes nothing new and lets what runs finish; a second one leaves at once.
    """
    from orbit_sdk.worker import Worker

    chosen_url, chosen_token = address(url, token)
    handlers = _handlers(targets)
    _log(log_level)
    options: dict[str, Any] = {
        "slots": slots,
        "threads": threads,
        "processes": processes,
        "name": name or f"{socket.gethostname()}-{os.getpid()}",
        "build": build,
        "grace_ms": duration_ms(grace, "--grace"),
        "health_port": health_port,
    }
    if queue:
        options["queues"] = tuple(queue)
    _work(Worker(chosen_url, chosen_token, handlers, **options), [one.key for one in handlers], json=json)


def _work(made: Worker, names: list[str], *, json: bool) -> None:
    """Until it has left."""
    import asyncio

    from orbit_sdk.worker.loops import new_loop

    out = Output(json=json)
    if json:
        out.event({"worker": made.settings.name, "handlers": names})
    with asyncio.Runner(loop_factory=new_loop) as runner:
        report = runner.run(made.run())
    if json:
        out.event({"left": report.json()})


def _handlers(targets: list[str]) -> list[Handler[..., Any]]:
    """Every handler in the targets. Raises Exit with code 2 for what cannot be imported."""
    from orbit_sdk.handlers import Handler

    found: dict[str, Handler[..., Any]] = {}
    for target in targets:
        module, attribute = split_target(target)
        try:
            values = list(values_of(import_target(module), attribute))
        except ImportError as error:
            if getattr(error, "name", None) not in (None, module):
                raise  # something that their module needs is missing: they want to see where
            Output().note(f"error: {target}: {error}", "red")
            raise typer.Exit(ExitCode.WRONG_USE) from None
        found.update({one.key: one for one in values if isinstance(one, Handler) and one.is_implemented})
    if not found:
        raise InvalidArgument(f"there is no handler in {', '.join(targets)}: nothing to run")
    return list(found.values())


def _log(level: str) -> None:
    if level.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise typer.BadParameter("is DEBUG, INFO, WARNING or ERROR", param_hint="--log-level")
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s  %(message)s"
    )
