"""The closed set of permissions, and the principal that a request acts as."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orbit_sdk.errors import NotFound, PermissionDenied

PERMISSIONS: frozenset[str] = frozenset(
    {
        "definitions:read",
        "definitions:publish",
        "definitions:retire",
        "workflows:read",
        "workflows:start",
        "workflows:signal",
        "workflows:control",
        "workflows:recover",
        "workflows:grant",
        "workflows:audit:read",
        "tasks:read",
        "tasks:submit",
        "tasks:cancel",
        "tasks:retry",
        "tasks:review",
        "schedules:read",
        "schedules:manage",
        "queues:read",
        "queues:manage",
        "workers:connect",
        "workers:manage",
        "subscriptions:consume",
        "subscriptions:manage",
        "credentials:manage",
        "namespaces:manage",
        "payloads:read",
        "act:on-behalf",
    }
)

# What the token of a development server may do: everything but reading the audit timeline, which is asked for
# on purpose because it shows more than the workflow itself.
DEVELOPMENT_PERMISSIONS: frozenset[str] = PERMISSIONS - {"workflows:audit:read"}


@dataclass(frozen=True, slots=True)
class Names:
    """A set of names that a right is limited to; `"*"` stands for every name."""

    names: frozenset[str]

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        return cls(frozenset(names))

    def __contains__(self, name: object) -> bool:
        return "*" in self.names or name in self.names


@dataclass(frozen=True, slots=True)
class SignalRights:
    """Which signals may be sent to workflows of which definitions.

    Each right is written `definition:signal`, or `definition` for all its signals; `*` stands for every name
    on either side, and alone for everything.
    """

    rights: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, texts: Iterable[str]) -> SignalRights:
        return cls(frozenset(signal_right(text) for text in texts))

    @property
    def everything(self) -> bool:
        return ("*", "*") in self.rights

    def covers(self, definition: str, signal: str) -> bool:
        """Whether a right reaches this far; `*` asks for every name."""
        return any(given in ("*", definition) and name in ("*", signal) for given, name in self.rights)

    def reaches(self, definition: str) -> bool:
        """Whether any signal of this definition may be sent."""
        return any(given in ("*", definition) for given, _ in self.rights)


def signal_right(text: str) -> tuple[str, str]:
    """The definition and the signal of one right, each a name or `*`."""
    definition, _, signal = text.partition(":")
    return definition, signal or "*"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts: one credential of one namespace with its rights. `actor` is what audit rows record."""

    credential_id: str
    namespace_id: str
    name: str
    permissions: frozenset[str]
    submit_queues: Names
    consume_queues: Names
    signals: SignalRights
    expires_at: int | None = None
    priority_max: int | None = None

    @property
    def actor(self) -> str:
        return self.name

    def allows(self, permission: str) -> bool:
        return permission in self.permissions

    def require(self, permission: str) -> None:
        """Raises PermissionDenied naming the permission."""
        if permission not in self.permissions:
            raise PermissionDenied(f"this credential lacks the permission {permission}")

    def require_submit(self, queue: str) -> None:
        if queue not in self.submit_queues:
            raise PermissionDenied(f"this credential may not submit to the queue {queue!r}")

    def require_signal(self, definition: str, signal: str, what: str = "workflow") -> None:
        """A workflow that no right reaches is out of scope and as good as absent: raises NotFound. Another
        signal of one that it may signal: raises PermissionDenied.
        """
        if not self.signals.reaches(definition):
            raise NotFound(f"no such {what}")
        if not self.signals.covers(definition, signal):
            raise PermissionDenied(f"this credential may not send the signal {signal!r} of {definition!r}")

    def require_priority(self, priority: int) -> None:
        if self.priority_max is not None and priority > self.priority_max:
            raise PermissionDenied(f"this credential submits with a priority of at most {self.priority_max}")

    def sees_all_queues(self, queues: Iterable[str]) -> bool:
        """Whichever right the credential has on a queue counts; every queue must be covered."""
        return all(queue in self.submit_queues or queue in self.consume_queues for queue in queues)

    def require_all_queues(self, queues: Iterable[str], what: str) -> None:
        """Out of scope is told apart from absent by nobody: raises NotFound."""
        if not self.sees_all_queues(queues):
            raise NotFound(f"no such {what}")
