"""The server's own commands: `orbit server`, `orbit migrate`, `orbit verify` and `orbit credential`.

They join `orbit` as entry points, and load the server only when they run.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orbit_sdk.cli.command import command, group, solo
from orbit_sdk.cli.credentials import credential_list, credential_revoke
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.values import duration_ms
from orbit_sdk.errors import InvalidArgument, OrbitError, Unavailable

if TYPE_CHECKING:
    from orbit_server.platform.credentials import Rights
    from orbit_server.settings import Settings

__all__ = ["credential", "migrate", "server", "verify"]

TOKEN_VARIABLE: Final = "ORBIT_DEVELOPMENT_TOKEN"  # noqa: S105  # a name, not a secret
AUDIT_VARIABLE: Final = "ORBIT_DEVELOPMENT_AUDIT"

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="sqlite:///path, or mysql://user:password@host:port/name; else ORBIT_DATABASE.",
    ),
]


@command(
    "orbit server --database sqlite:////var/lib/orbit/orbit.db",
    "orbit server --database mysql://orbit@db:3306/orbit --host 0.0.0.0 --behind-proxy",
)
def run_server(
    database: Database = None,
    host: Annotated[str | None, typer.Option("--host", help="Where to listen; else 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="0 takes a free one; else 7400.")] = None,
    certfile: Annotated[
        str | None, typer.Option("--certfile", metavar="FILE", help="TLS certificate.")
    ] = None,
    keyfile: Annotated[str | None, typer.Option("--keyfile", metavar="FILE", help="Its key.")] = None,
    behind_proxy: Annotated[
        bool | None, typer.Option("--behind-proxy", help="A proxy in front of this server speaks TLS.")
    ] = None,
    development: Annotated[
        bool | None, typer.Option("--development", help="The default namespace allows drafts.")
    ] = None,
    lease: Annotated[
        str | None, typer.Option("--lease", metavar="30s", help="How long an attempt may be silent.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", help="DEBUG, INFO, WARNING or ERROR; else INFO.")
    ] = None,
    access_log: Annotated[bool | None, typer.Option("--access-log", help="Log every request.")] = None,
    migrating: Annotated[
        bool, typer.Option("--migrate", help="Bring the schema to the present first.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a server until SIGTERM or Ctrl-C.

    Every setting can also be given in the environment, as ORBIT_HEARTBEAT_MS=5000.
    """
    settings = _settings(
        json=json,
        database=database,
        host=host,
        port=port,
        certfile=certfile,
        keyfile=keyfile,
        behind_proxy=behind_proxy,
        development=development,
        lease_ms=None if lease is None else duration_ms(lease, "--lease"),
        log_level=None if log_level is None else log_level.upper(),
        access_log=access_log,
    )
    settings.check_transport()
    if migrating:
        _migrate(settings.database)
    _serve(settings, Output(json=json))


def _serve(settings: Settings, out: Output) -> None:
    from orbit_server.bootstrap import run

    token = os.environ.pop(TOKEN_VARIABLE, None)
    if token is not None and settings.development:
        asyncio.run(_ensure_token(settings, token, audit=os.environ.get(AUDIT_VARIABLE) == "1"))

    def started(url: str) -> None:
        if out.json:
            out.event({"url": url})
        else:
            out.line(f"listening at {url}")

    try:
        run(settings, started=started)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unavailable(f"cannot listen on {settings.host}:{settings.port}: {reason}") from None


@command("orbit migrate --database mysql://orbit@db:3306/orbit")
def run_migrate(database: Database = None, json: Json = False) -> None:
    """Bring a database to the present schema. Safe to run again, also after an interruption."""
    from orbit_server.storage.migrations import schema_state

    settings = _settings(json=json, database=database)
    before = schema_state(settings.database)
    _migrate(settings.database)
    after = schema_state(settings.database)
    if json:
        Output().data({"before": before.value, "after": after.value})
    else:
        Output().line(f"the schema was {before.value}, and is {after.value}")


_PRESETS: Final[dict[str, tuple[str, ...]]] = {
    "worker": ("workers:connect",),
    "client": (
        "definitions:read",
        "workflows:read",
        "workflows:start",
        "workflows:signal",
        "tasks:read",
        "tasks:submit",
        "payloads:read",
    ),
    "operator": (
        "definitions:read",
        "workflows:read",
        "workflows:signal",
        "workflows:control",
        "workflows:recover",
        "workflows:audit:read",
        "tasks:read",
        "tasks:cancel",
        "tasks:retry",
        "tasks:review",
        "queues:read",
        "payloads:read",
    ),
}


@command(
    "orbit credential create --name shop-worker --for worker --consume payments",
    "orbit credential create --name shop --permission workflows:start --permission workflows:read --days 90",
    "orbit credential create --name nightly --for client --priority-max 3",
)
def credential_create(
    name: Annotated[
        str, typer.Option("--name", help="Who it is for; audit rows name it.", show_default=False)
    ],
    preset: Annotated[
        str | None,
        typer.Option("--for", help="A usual set of rights: worker, client, operator or everything."),
    ] = None,
    permission: Annotated[
        list[str] | None, typer.Option("--permission", help="One right, as workflows:start; several times.")
    ] = None,
    submit: Annotated[
        list[str] | None, typer.Option("--submit", metavar="QUEUE", help="May submit tasks to it; * for all.")
    ] = None,
    consume: Annotated[
        list[str] | None, typer.Option("--consume", metavar="QUEUE", help="May take work from it; * for all.")
    ] = None,
    signal: Annotated[
        list[str] | None,
        typer.Option(
            "--signal",
            metavar="DEFINITION[:SIGNAL]",
            help="May signal its workflows, with this signal or every one; * for all.",
        ),
    ] = None,
    priority_max: Annotated[
        int | None,
        typer.Option(
            "--priority-max", min=0, max=9, help="The highest priority of what it starts. Default: any."
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="Until it expires. Default: never.")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", help="Where it acts.")] = "default",
    database: Database = None,
    json: Json = False,
) -> None:
    """Create a credential in the database itself, without a server. Its token is shown this once."""
    rights = replace(_rights(preset, permission or [], (submit, consume, signal)), priority_max=priority_max)
    rights.check()
    settings = _settings(json=json, database=database)
    expires_at = None if days is None else time.time_ns() // 1000 + days * 86_400_000_000
    made = asyncio.run(_create(settings, rights, (name, namespace, expires_at)))
    out = Output(json=json)
    if json:
        out.data({"id": made.credential_id, "name": name, "token": made.token, **_as_dict(rights)})
        return
    out.line(made.token)
    out.note(f"credential {made.credential_id} ({name}); the token is not shown again", "dim")


def _rights(preset: str | None, permissions: list[str], names: tuple[list[str] | None, ...]) -> Rights:
    from orbit_server.platform.credentials import Rights
    from orbit_server.platform.permissions import PERMISSIONS

    known = {**_PRESETS, "everything": tuple(sorted(PERMISSIONS))}
    if preset is not None and preset not in known:
        raise typer.BadParameter(f"is one of {', '.join(known)}", param_hint="--for")
    found = [*known.get(preset or "", ()), *permissions]
    if not found:
        raise typer.BadParameter("say what it may do: --for worker, or --permission workflows:start")
    # A preset is of use at once: its names are not limited unless the caller limits them.
    every = ("*",) if preset is not None else ()
    submit, consume, signal = (tuple(given) if given is not None else every for given in names)
    return Rights(tuple(dict.fromkeys(found)), submit, consume, signal)


def _as_dict(rights: Rights) -> dict[str, Any]:
    shown = rights.to_json()
    assert isinstance(shown, dict)
    return dict(shown)


async def _create(settings: Settings, rights: Rights, about: tuple[str, str, int | None]) -> Any:
    from orbit_server.bootstrap import open_database
    from orbit_server.clock import SystemClock
    from orbit_server.platform.offline import create_credential

    name, namespace, expires_at = about
    clock = SystemClock()
    async with open_database(settings, clock) as database:
        return await create_credential(
            database, clock, rights, name=name, namespace=namespace, expires_at=expires_at
        )


async def _ensure_token(settings: Settings, token: str, *, audit: bool) -> None:
    """The credential of a development server: the same token is the same credential, made once."""
    from orbit_sdk.values.ids import derive_id
    from orbit_server.bootstrap import open_database
    from orbit_server.clock import SystemClock, new_seed
    from orbit_server.platform.credentials import CreateCredential, Rights
    from orbit_server.platform.namespaces import (
        DEFAULT_NAMESPACE,
        DEVELOPMENT,
        EnsureNamespace,
        namespace_id,
    )
    from orbit_server.platform.permissions import DEVELOPMENT_PERMISSIONS
    from orbit_server.platform.tokens import is_token, token_hash

    if not is_token(token):
        raise InvalidArgument.at(TOKEN_VARIABLE, "is no token: orbit_ and 64 lower-case hex digits")
    extra = {"workflows:audit:read"} if audit else set[str]()
    clock = SystemClock()
    async with open_database(settings, clock) as database:
        await database.committer.submit(EnsureNamespace(DEFAULT_NAMESPACE, DEVELOPMENT))
        await database.committer.submit(
            CreateCredential(
                id=derive_id("development", token_hash(token)),
                namespace_id=namespace_id(DEFAULT_NAMESPACE),
                name="development",
                token_hash=token_hash(token),
                rights=Rights(tuple(sorted(DEVELOPMENT_PERMISSIONS | extra)), ("*",), ("*",), ("*",)),
                expires_at=None,
                actor="development",
                created_by=None,
                seed=new_seed(clock),
                key=None,
            )
        )


def _settings(*, json: bool, **options: Any) -> Settings:
    """The settings in force. Wrong ones are wrong use of the command: exit code 2."""
    from orbit_server.settings import load_settings

    try:
        return load_settings(os.environ, **options)
    except OrbitError as error:
        Output(json=json).error(error)
        raise typer.Exit(ExitCode.WRONG_USE) from None


@command("orbit verify --database sqlite:////var/lib/orbit/orbit.db", "orbit verify --json")
def run_verify(database: Database = None, json: Json = False) -> None:
    """Look for what must be impossible: every rule over one consistent view of the database.

    Nothing is written or locked, so it may run beside servers. Exit code 1 when something is found.
    """
    from orbit_server.verify import RULES, snapshot

    out = Output(json=json)
    settings = _settings(json=json, database=database)
    with snapshot(settings.database) as conn:
        found = {rule: list(rule.violations(conn)) for rule in RULES}
    every = [finding for findings in found.values() for finding in findings]
    if json:
        out.data(
            {
                "items": [
                    {"rule": item.rule, "kind": item.kind, "subject": item.subject, "message": item.message}
                    for item in every
                ]
            }
        )
    else:
        for rule, findings in found.items():
            out.line(f"{rule.number}  {rule.title}: {len(findings) or 'none'}", "red" if findings else None)
            for finding in findings:
                out.line(f"   {finding.kind} {finding.subject} {finding.message}")
    if every:
        raise typer.Exit(ExitCode.REFUSED)


def _migrate(url: str) -> None:
    from orbit_server.storage.migrations import migrate as bring

    bring(url)


server = solo("server", run_server)
migrate = solo("migrate", run_migrate)
verify = solo("verify", run_verify)
credential = group("Credentials: who may do what.", credential_create, credential_list, credential_revoke)
