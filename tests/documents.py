"""Definitions for tests, written shortly: a dict of nodes, everything else has a usual value."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]

STATUS = {
    "type": "object",
    "properties": {"state": {"type": "string"}, "receipt": {"type": "string"}},
    "required": ["state"],
}


def _handler(recovery: str, result: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "parameters": {"value": {}},
        "required": [],
        "result": {} if result is None else result,
        "recovery": recovery,
        "verify": False,
        **more,
    }


HANDLERS = {
    "read@1": _handler("READ_ONLY"),
    "safe@1": _handler("IDEMPOTENT"),
    "risky@1": _handler("CONSERVATIVE"),
    "strict@1": _handler(
        "CONSERVATIVE",
        {"type": "integer"},
        errors=["CLOSED", "NO_FUNDS"],
        parameters={"value": {"type": "integer"}},
    ),
    "status@1": _handler("READ_ONLY", STATUS),
}
SIGNALS = {"approval": {"body": {}}, "receipt": {"body": STATUS}}


def document(nodes: dict[str, Node], start: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "id": "test.flow",
        "version": 1,
        "types": {},
        "handlers": HANDLERS,
        "signals": SIGNALS,
        "input": {},
        "output": {},
        "start": start or next(iter(nodes)),
        "nodes": nodes,
        **more,
    }


def retry(attempts: int = 3) -> dict[str, int]:
    return {
        "max_attempts": attempts,
        "backoff_ms": 1000,
        "factor_percent": 200,
        "max_backoff_ms": 60000,
        "jitter_percent": 0,
    }


def work(handler: str, value: Any = None, attempts: int = 3, **more: Any) -> Node:
    return {
        "handler": f"{handler}@1",
        "queue": "jobs",
        "input": {} if value is None else {"value": value},
        "attempt_timeout_ms": 60_000,
        "priority": 5,
        "retry": retry(attempts),
        **more,
    }


def task(target: str, handler: str = "risky", on_failure: Any = "REVIEW", **more: Any) -> Node:
    node = {"kind": "TASK", "total_timeout_ms": 3_600_000, "on_failure": on_failure, "next": target}
    return node | work(handler, more.pop("value", None), more.pop("attempts", 3), **more)


def wait(
    target: str, on_timeout: Any = "REVIEW", match: Any = "m", early: str = "DROP", seconds: int = 3600
) -> Node:
    return {
        "kind": "WAIT",
        "signal": "approval",
        "match": match if isinstance(match, dict) else {"const": match},
        "timeout_ms": seconds * 1000,
        "early": early,
        "on_timeout": on_timeout,
        "next": target,
    }


def timer(target: str, seconds: int = 60) -> Node:
    return {"kind": "TIMER", "delay_ms": seconds * 1000, "next": target}


def poll(
    target: str, on_failed: Any = "REVIEW", *, receipt: bool = False, rounds: int = 5, **more: Any
) -> Node:
    node: Node = {
        "kind": "POLL",
        "every_ms": more.pop("every", 30) * 1000,
        "max_rounds": rounds,
        "within_ms": more.pop("within", 3600) * 1000,
        "state": {"path": ["state"], "pending": ["pending"], "succeeded": ["done"], "failed": ["rejected"]},
        "on_failed": on_failed,
        "on_exhausted": "REVIEW",
        "next": target,
    }
    if receipt:
        node["final_signal"] = {"signal": "receipt", "match": {"const": "m"}}
    return node | work("status", attempts=more.pop("attempts", 3), **more)


def parallel(join: str, on_arm_failure: str = "STOP_OTHERS", **arms: str) -> Node:
    return {"kind": "PARALLEL", "arms": arms, "join": join, "on_arm_failure": on_arm_failure}


def join(target: str) -> Node:
    return {"kind": "JOIN", "next": target}


def merge(target: str, *inputs: tuple[str, str, Any]) -> Node:
    listed = [{"from": source, "exit": name, "value": value} for source, name, value in inputs]
    return {"kind": "MERGE", "result": {}, "inputs": listed, "next": target}


def branch(on: Any, otherwise: str | None = None, **cases: str) -> Node:
    listed = [{"equals": [value], "next": target} for value, target in cases.items()]
    node: Node = {"kind": "BRANCH", "on": on, "cases": listed}
    return node if otherwise is None else node | {"otherwise": otherwise}


def end(output: Any = None) -> Node:
    return {"kind": "END", "outcome": "SUCCEEDED", "output": {"const": "done"} if output is None else output}


def failed(code: str = "GAVE_UP") -> Node:
    return {"kind": "END", "outcome": "FAILED", "error": {"code": code, "message": "it did not work"}}


def ref(name: str, *path: str, of: str | None = None) -> Node:
    node: Node = {"ref": name}
    if of is not None:
        node["of"] = of
    return node | {"path": list(path)} if path else node
