"""Short ways to write complete definitions; every function gives plain JSON with all fields in place."""

from __future__ import annotations

from typing import Any

from orbit_sdk.check import Diagnostic, check_definition
from orbit_sdk.definition.models import Definition, load_definition
from orbit_sdk.values.limits import DEFAULT_LIMITS

Document = dict[str, Any]

TEXT: Document = {"type": "string"}
INTEGER: Document = {"type": "integer"}
NUMBER: Document = {"type": "number"}
BOOLEAN: Document = {"type": "boolean"}
NULL: Document = {"type": "null"}
OPEN: Document = {"type": "object"}
RETRY: Document = {
    "max_attempts": 3,
    "backoff_ms": 1000,
    "factor_percent": 200,
    "max_backoff_ms": 60000,
    "jitter_percent": 20,
}


def one_of(*values: Any) -> Document:
    """An enum, or a const for a single value."""
    return {"const": values[0]} if len(values) == 1 else {"enum": list(values)}


def optional(schema: Document) -> Document:
    return {"anyOf": [schema, NULL]}


def record(*, maybe: Document | None = None, **fields: Document) -> Document:
    """An open object; `maybe` holds the properties that may be absent."""
    found: Document = {"type": "object"}
    if fields or maybe:
        found["properties"] = {**fields, **(maybe or {})}
    if fields:
        found["required"] = sorted(fields)
    return found


INPUT = record(
    order=TEXT,
    amount=INTEGER,
    tier=one_of("BASIC", "PLUS", "TOP"),
    express=BOOLEAN,
    remark=optional(TEXT),
    customer=TEXT,
)


def ref(path: str, **more: Any) -> Document:
    """`a.b.c` as a reference to `b.c` of `a`."""
    first, *rest = path.split(".")
    return {"ref": first, **({"path": rest} if rest else {}), **more}


def const(value: Any) -> Document:
    return {"const": value}


def task(next_key: str, handler: str = "do.it@1", **more: Any) -> Document:
    """A TASK; its `input` holds expressions by parameter name."""
    return {
        "kind": "TASK",
        "handler": handler,
        "queue": "work",
        "input": {},
        "attempt_timeout_ms": 60000,
        "total_timeout_ms": 3600000,
        "priority": 5,
        "retry": RETRY,
        "on_failure": "REVIEW",
        "next": next_key,
        **more,
    }


def poll(next_key: str, handler: str = "ask.it@1", **more: Any) -> Document:
    return {
        "kind": "POLL",
        "handler": handler,
        "queue": "work",
        "input": {},
        "every_ms": 30000,
        "max_rounds": 60,
        "within_ms": 1800000,
        "attempt_timeout_ms": 20000,
        "priority": 5,
        "retry": RETRY,
        "state": {"path": ["state"], "pending": ["RUN"], "succeeded": ["OK"], "failed": ["BAD"]},
        "on_failed": "FAIL",
        "on_exhausted": "REVIEW",
        "next": next_key,
        **more,
    }


def wait(next_key: str, **more: Any) -> Document:
    return {
        "kind": "WAIT",
        "signal": "decided",
        "match": ref("input.order"),
        "timeout_ms": 3600000,
        "early": "DROP",
        "on_timeout": "REVIEW",
        "next": next_key,
        **more,
    }


def timer(next_key: str, delay_ms: int = 1000) -> Document:
    return {"kind": "TIMER", "delay_ms": delay_ms, "next": next_key}


def choose(subject: Document, *cases: tuple[Any, str], otherwise: str | None = None) -> Document:
    """A BRANCH on a value; each case is (value or list of values, target)."""
    found: Document = {
        "kind": "BRANCH",
        "on": subject,
        "cases": [
            {"equals": value if isinstance(value, list) else [value], "next": target}
            for value, target in cases
        ],
    }
    return found if otherwise is None else {**found, "otherwise": otherwise}


def decide(*cases: tuple[Document, str], otherwise: str) -> Document:
    """A BRANCH on conditions."""
    return {
        "kind": "BRANCH",
        "cases": [{"when": when, "next": target} for when, target in cases],
        "otherwise": otherwise,
    }


def express(yes: str, no: str) -> Document:
    """The simplest exhaustive BRANCH."""
    return choose(ref("input.express"), (True, yes), (False, no))


def parallel(join: str, *entries: str, **named: str) -> Document:
    """A PARALLEL whose arms are called like their entries, or as named."""
    arms = {**{entry: entry for entry in entries}, **named}
    return {"kind": "PARALLEL", "arms": arms, "join": join, "on_arm_failure": "STOP_OTHERS"}


def join(next_key: str) -> Document:
    return {"kind": "JOIN", "next": next_key}


def merge(next_key: str, result: Document, *inputs: tuple[str, str, Document]) -> Document:
    """A MERGE; each input is (step, exit, value)."""
    listed = [{"from": key, "exit": exit_name, "value": value} for key, exit_name, value in inputs]
    return {"kind": "MERGE", "result": result, "inputs": listed, "next": next_key}


def end(output: Document | None = None) -> Document:
    return {"kind": "END", "outcome": "SUCCEEDED", "output": output or const(None)}


def fail(code: str = "NO") -> Document:
    return {"kind": "END", "outcome": "FAILED", "error": {"code": code, "message": "it did not work"}}


def handler(result: Document | None = None, *, recovery: str = "IDEMPOTENT", **more: Any) -> Document:
    """A declaration; `parameters` are all required unless `required` says otherwise."""
    parameters = more.pop("parameters", {})
    return {
        "parameters": parameters,
        "required": sorted(parameters),
        "result": result or OPEN,
        "recovery": recovery,
        "verify": False,
        **more,
    }


HANDLERS: Document = {
    "do.it@1": handler(),
    "ask.it@1": handler(record(state=one_of("RUN", "OK", "BAD")), recovery="READ_ONLY"),
}


def document(nodes: Document, start: Any = None, **more: Any) -> Document:
    """A whole definition; `handlers` and `signals` are added to the usual ones."""
    handlers = {**HANDLERS, **more.pop("handlers", {})}
    signals = {"decided": {"body": record(answer=one_of("YES", "NO", "LATER"))}, **more.pop("signals", {})}
    return {
        "schema_version": 1,
        "id": "shop.order",
        "version": 1,
        "types": {},
        "handlers": handlers,
        "signals": signals,
        "input": INPUT,
        "output": {},
        "start": start or next(iter(nodes)),
        "nodes": nodes,
        **more,
    }


def definition(nodes: Document, start: Any = None, **more: Any) -> Definition:
    return load_definition(document(nodes, start, **more))


def findings(
    nodes: Document, start: Any = None, *, limits: Any = DEFAULT_LIMITS, **more: Any
) -> tuple[Diagnostic, ...]:
    return check_definition(definition(nodes, start, **more), limits)


def told(nodes: Document, start: Any = None, **more: Any) -> list[tuple[str, str | None]]:
    """What a check finds, as (code, step)."""
    return [(found.code, found.node) for found in findings(nodes, start, **more)]
