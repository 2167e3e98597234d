"""What a server may be told: one frozen value, from options or from the environment (`ORBIT_*`).

Options win over the environment, the environment over the defaults. Limits may only be lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, get_type_hints

from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.limits import DEFAULT_LIMITS, Limits

ENVIRONMENT_PREFIX: Final = "ORBIT_"
LIMIT_PREFIX: Final = "ORBIT_LIMIT_"
KEEP_MS: Final = (1_000, 36_600 * 24 * 3_600_000)
"""The shortest and the longest time that anything is kept: a second, a hundred years."""
_DAY_MS: Final = 24 * 3_600_000
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off", ""})


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations are milliseconds.

    Args:
        database: `sqlite:///<path>` or `mysql://user:password@host:port/name`.
        host, port: where to listen; port 0 takes a free one.
        certfile, keyfile: TLS of this server.
        behind_proxy: a proxy in front speaks TLS; needed off loopback without a certificate of our own.
        development: the default namespace is made as a DEVELOPMENT one, where drafts are allowed.
        log_level: DEBUG, INFO, WARNING or ERROR.
        lease_ms: how long an attempt may be silent; a renewal is due every third of it.
        heartbeat_ms: how often a worker's connection says that it lives.
        session_silence_ms: a silent session is closed after this.
        verify_within_ms: how long verification is asked again before a person is.
        loop_ms: the longest that background work waits for its next look; hints make it shorter.
        idle_loop_ms: the same for work that is never urgent (heartbeats of nodes).
        stop_grace_ms: what a stopping server waits for requests and workers.
        stop_limit_ms: after this a stopping process ends itself, whatever still runs.
        body_timeout_ms: how long a request's body may take to arrive.
        queue_max: commands that may wait for the database.
        lanes: concurrent transactions on MySQL. More of them make smaller groups; two keep one process busy.
        requests_max: requests in work at one time; more are told to come back.
        keep_tasks_ms: finished tasks of no workflow, and notices of tasks, go so long after.
        keep_workflows_ms: finished workflows go so long after their end, with all that belongs to them.
        keep_schedules_ms: occurrences and records of schedules are kept so long.
        keep_audit_ms: who did what is kept so long, and always as long as what it was done to.
        purge_every_ms: how often retention looks for what may go.
        check_every_ms: how often a part of the rules of `orbit verify` is looked at; 0 is never.
        check_limit_ms: how long one such look may take; a longer one is given up, and counted.
        access_log: log every request, not only failures.
        limits: the product limits in force.
    """

    database: str = "sqlite:///orbit.db"
    host: str = "127.0.0.1"
    port: int = 7400
    certfile: str | None = None
    keyfile: str | None = None
    behind_proxy: bool = False
    development: bool = False
    log_level: str = "INFO"
    lease_ms: int = DEFAULTS.lease_ms
    heartbeat_ms: int = DEFAULTS.heartbeat_ms
    session_silence_ms: int = DEFAULTS.session_silence_ms
    verify_within_ms: int = DEFAULTS.verify_within_ms
    loop_ms: int = 1_000
    idle_loop_ms: int = 5_000
    stop_grace_ms: int = 10_000
    stop_limit_ms: int = 30_000
    body_timeout_ms: int = 20_000
    queue_max: int = 10_000
    lanes: int = 2
    requests_max: int = 2_000
    keep_tasks_ms: int = 30 * _DAY_MS
    keep_workflows_ms: int = 90 * _DAY_MS
    keep_schedules_ms: int = 90 * _DAY_MS
    keep_audit_ms: int = 400 * _DAY_MS
    purge_every_ms: int = 600_000
    check_every_ms: int = 15_000
    check_limit_ms: int = 500
    access_log: bool = False
    limits: Limits = field(default_factory=lambda: DEFAULT_LIMITS)

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            first = problems[0]
            raise InvalidArgument(f"{first.field} {first.reason}", problems)

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def tls(self) -> bool:
        return self.certfile is not None

    def check_transport(self) -> None:
        """Tokens never travel in the clear between machines: raises InvalidArgument with the ways out."""
        if self.on_loopback or self.tls or self.behind_proxy:
            return
        raise InvalidArgument(
            f"refusing to listen on {self.host} without TLS: give --certfile and --keyfile, or say "
            "--behind-proxy when a proxy in front of this server speaks TLS, or listen on 127.0.0.1",
            [Detail("host", "is reachable from other machines")],
        )


_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "port": (0, 65_535),
    "lease_ms": (1_000, 3_600_000),
    "heartbeat_ms": (100, 600_000),
    "session_silence_ms": (500, 3_600_000),
    "verify_within_ms": (1_000, 366 * 24 * 3_600_000),
    "loop_ms": (10, 60_000),
    "idle_loop_ms": (10, 600_000),
    "stop_grace_ms": (0, 600_000),
    "stop_limit_ms": (1_000, 900_000),
    "body_timeout_ms": (100, 600_000),
    "queue_max": (1, 1_000_000),
    "lanes": (1, 64),
    "requests_max": (1, 100_000),
    "keep_tasks_ms": KEEP_MS,
    "keep_workflows_ms": KEEP_MS,
    "keep_schedules_ms": KEEP_MS,
    "keep_audit_ms": KEEP_MS,
    "purge_every_ms": (10, 86_400_000),
    "check_every_ms": (0, 86_400_000),
    "check_limit_ms": (10, 60_000),
}


def _problems(settings: Settings) -> list[Detail]:
    problems = [
        Detail(name, f"is {value}; it must lie between {low} and {high}")
        for name, (low, high) in _BOUNDS.items()
        if not low <= (value := getattr(settings, name)) <= high
    ]
    if settings.log_level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        problems.append(
            Detail("log_level", f"is {settings.log_level!r}; it is DEBUG, INFO, WARNING or ERROR")
        )
    if not settings.database.startswith(("sqlite:///", "mysql://", "mariadb://")):
        problems.append(Detail("database", "must begin with sqlite:///, mysql:// or mariadb://"))
    if (settings.certfile is None) != (settings.keyfile is None):
        problems.append(Detail("certfile", "and keyfile come together"))
    for name in ("certfile", "keyfile"):
        path = getattr(settings, name)
        if path is not None and not Path(path).is_file():
            problems.append(Detail(name, f"names no file: {path}"))
    if settings.session_silence_ms <= settings.heartbeat_ms:
        problems.append(Detail("session_silence_ms", "must be longer than heartbeat_ms"))
    if settings.stop_limit_ms <= settings.stop_grace_ms:
        problems.append(Detail("stop_limit_ms", "must be longer than stop_grace_ms"))
    problems += _limit_problems(settings.limits)
    return problems


def _limit_problems(limits: Limits) -> list[Detail]:
    problems = []
    for each in fields(Limits):
        value, most = getattr(limits, each.name), getattr(DEFAULT_LIMITS, each.name)
        if not 1 <= value <= most:
            reason = f"is {value}; it may be lowered, from {most} to at least 1"
            problems.append(Detail(f"limits.{each.name}", reason))
    return problems


def load_settings(environment: Mapping[str, str], **options: object) -> Settings:
    """The settings in force: options that are not None, then `ORBIT_<NAME>`, then the defaults.

    A single limit is lowered with `ORBIT_LIMIT_<NAME>`. Variables of other parts of Orbit are left alone.
    Raises InvalidArgument naming every setting that is wrong.
    """
    hints = get_type_hints(Settings)
    known = {each.name for each in fields(Settings)} - {"limits"}
    values: dict[str, Any] = {}
    problems: list[Detail] = []
    for name in sorted(known):
        variable = ENVIRONMENT_PREFIX + name.upper()
        if options.get(name) is not None:
            values[name] = options[name]
        elif variable in environment:
            try:
                values[name] = _parsed(hints[name], environment[variable])
            except ValueError as error:
                problems.append(Detail(variable, str(error)))
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"there is no such setting: {', '.join(unknown)}")
    limits = _limits(environment, problems)
    if problems:
        raise InvalidArgument(f"{problems[0].field} {problems[0].reason}", problems)
    return Settings(**values, limits=limits)


def _limits(environment: Mapping[str, str], problems: list[Detail]) -> Limits:
    lowered: dict[str, int] = {}
    names = {each.name for each in fields(Limits)}
    for variable, text in sorted(environment.items()):
        if variable.startswith(LIMIT_PREFIX):
            name = variable.removeprefix(LIMIT_PREFIX).lower()
            if name not in names:
                problems.append(Detail(variable, "names no limit"))
                continue
            try:
                lowered[name] = _parsed(int, text)
            except ValueError as error:
                problems.append(Detail(variable, str(error)))
    return replace(DEFAULT_LIMITS, **lowered)


def _parsed(hint: Any, text: str) -> Any:
    if hint is bool:
        if text.lower() in _TRUE:
            return True
        if text.lower() in _FALSE:
            return False
        raise ValueError(f"is {text!r}; it is true or false")
    if hint is int:
        if not text.isascii() or not text.isdigit() or len(text) > 15:
            raise ValueError(f"is {text!r}; it is a whole number")
        return int(text)
    return text
