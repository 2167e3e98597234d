"""Signals: what people and systems tell a running workflow, and the WAIT for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Generic, Literal, cast

from pydantic import TypeAdapter
from typing_extensions import TypeVar

from orbit_sdk.builder.arms import End
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.durations import milliseconds
from orbit_sdk.builder.express import Target, express_freely
from orbit_sdk.builder.graph import Expr, OpenExit
from orbit_sdk.builder.guards import is_text
from orbit_sdk.builder.refs import Ref, RefData, ref_data
from orbit_sdk.builder.steps import failure_arm, review_guide
from orbit_sdk.builder.trace import Trace
from orbit_sdk.handlers.options import FailurePolicy, Guide
from orbit_sdk.handlers.problems import BuildError, Problem, caller_place
from orbit_sdk.handlers.signature import dump_checked
from orbit_sdk.handlers.type_schemas import Schema
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import is_name

__all__ = ["Signal", "SignalMatch", "SignalMeta"]

B = TypeVar("B")
B_co = TypeVar("B_co", covariant=True)
Early = Literal["DROP", "KEEP"]


@dataclass(frozen=True, slots=True)
class SignalMeta:
    """Who sent a received signal, and when it was accepted (always met as a reference)."""

    actor: str
    accepted_at: datetime
    signal_id: str


@dataclass(frozen=True, slots=True)
class SignalMatch(Generic[B_co]):
    """A signal together with the business key it must carry: the `final_signal` of a poll."""

    name: str
    body: Any
    match: object


class Signal(Generic[B]):
    """A kind of signal: its name, and the type of its body."""

    def __init__(self, name: str, body: type[B]) -> None:
        if not is_text(name) or not is_name(name):
            found = f"{name!r} is not a signal name"
            raise BuildError(
                [Problem("NAME", found, 'write words joined by dots: "job.review"', caller_place())]
            )
        self.name = name
        self.body = body

    @cached_property
    def _adapter(self) -> TypeAdapter[B]:
        return TypeAdapter(self.body)

    def dump_body(self, value: B) -> Json:
        """The JSON of a body. Raises InvalidArgument when the value is not of the declared type."""
        return dump_checked(self._adapter, value, f"the body of the signal {self.name}")

    def match(self, key: object) -> SignalMatch[B]:
        """This signal with this business key."""
        return SignalMatch(self.name, self.body, key)

    def wait(  # noqa: PLR0913 - the vocabulary of a wait
        self,
        *,
        match: object,
        timeout: timedelta,
        on_timeout: FailurePolicy | Callable[[], B],
        early: Early = "DROP",
        key: str | None = None,
        title: str | None = None,
        review: Guide | None = None,
    ) -> B:
        """Wait for the signal whose business key is `match`, `timeout` at most.

        `on_timeout` is `"REVIEW"`, `"FAIL"` or a function that gives the value to go on with. `early="KEEP"`
        lets a signal that was accepted before this wait opened, or was left over, serve it.
        """
        trace = current_trace("Signal.wait")
        where = f"match of the wait for {self.name}"
        schema = register_signal(trace, self.name, self.body)
        body: dict[str, Json] = {
            "signal": self.name,
            "match": match_key(trace, match, where),
            "timeout_ms": milliseconds(trace, timeout, "timeout"),
            "early": _early(trace, early),
        }
        if title is not None:
            body["title"] = title
        if review is not None:
            body["review"] = review_guide(trace, review)
        step = trace.make_key(key, self.name.rpartition(".")[2])
        if on_timeout in ("REVIEW", "FAIL"):
            trace.add("WAIT", step, {**body, "on_timeout": on_timeout})
            return cast(B, trace.ref({"ref": step}, schema, signal=self.name))
        if not callable(on_timeout):
            found = f"on_timeout is {on_timeout!r}"
            raise trace.refuse("OPTION", found, 'write "REVIEW", "FAIL" or a function: lambda: …')
        draft = trace.add("WAIT", step, body)
        received = trace.ref({"ref": step}, schema, signal=self.name)
        return cast(
            B,
            failure_arm(
                trace,
                main=End(received, [OpenExit(draft, "next")]),
                catch=(OpenExit(draft, "on_timeout"), on_timeout, None),
                target=Target(self.body, schema),
            ),
        )

    def meta(self, received: B) -> SignalMeta:
        """Who sent what a wait for this signal received, and when."""
        trace = current_trace("Signal.meta")
        data = ref_data(received) if isinstance(received, Ref) else None
        if data is None or data.signal != self.name or "path" in data.expr:
            raise trace.refuse(
                "META",
                f"{received!r} is not what a wait for {self.name} itself received",
                'wait with on_timeout "REVIEW", "FAIL" or orbit.fail, and ask what it gives back',
            )
        trace.check_current(data.trace, repr(received))
        text: Schema = {"type": "string"}
        names: list[Json] = ["accepted_at", "actor", "signal_id"]
        properties: dict[str, Json] = {
            "accepted_at": {"type": "string", "format": "date-time"},
            "actor": text,
            "signal_id": text,
        }
        schema: Schema = {"type": "object", "properties": properties, "required": names}
        return cast(SignalMeta, Ref(RefData(trace, {**data.expr, "of": "meta"}, schema, data.scope)))

    def __repr__(self) -> str:
        return f"<signal {self.name}>"


def register_signal(trace: Trace, name: str, body: Any) -> Schema:
    """Put a signal into the definition; the type of its body."""
    schema = trace.schema(body, f"the body of {name}")
    known = trace.signals.setdefault(name, schema)
    if known != schema:
        raise trace.refuse("SIGNAL_TWICE", f"two signals are called {name}", "give one of them another name")
    return schema


def match_key(trace: Trace, value: object, where: str) -> Expr:
    """The business key that a signal must carry."""
    if value is None:
        raise trace.refuse("MATCH", f"{where} is None", "give the business key that the sender knows")
    return express_freely(trace, value, where)[0]


def _early(trace: Trace, early: object) -> str:
    if early not in ("DROP", "KEEP"):
        raise trace.refuse("OPTION", f"early is {early!r}", f'write "{DEFAULTS.early}" or "KEEP"')
    return str(early)
