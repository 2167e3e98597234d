"""Small words of the language: `build`, `text`, `fail`, `instance`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Never, cast

from typing_extensions import ParamSpec, TypeVar

from orbit_sdk.builder import shapes
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.express import express_fields, record_fields
from orbit_sdk.builder.express import use as use_ref
from orbit_sdk.builder.graph import ArmFailed
from orbit_sdk.builder.guards import is_text, shown_reference
from orbit_sdk.builder.refs import Ref, RefData, ref_data
from orbit_sdk.builder.trace import Trace
from orbit_sdk.handlers.type_fields import is_record
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import is_error_code

__all__ = ["Instance", "build", "fail", "instance", "text"]

P = ParamSpec("P")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Instance:
    """What a running workflow knows of itself (always met as a reference)."""

    workflow_id: str
    business_key: str | None
    started_at: datetime
    started_by: str
    origin: str | None
    planned_at: datetime | None


def build(model: Callable[P, M], *args: P.args, **kwargs: P.kwargs) -> M:
    """A value of a model, dataclass or TypedDict, made of references and literals.

    The model's own constructor would judge references as if they were values; this one records them.
    """
    trace = current_trace("orbit.build")
    kind = cast(Any, model)
    name = str(getattr(kind, "__name__", repr(kind)))
    if not is_record(model):
        found = f"orbit.build is given {name}, which is no model"
        raise trace.refuse("BUILD", found, "give it a pydantic model or a dataclass")
    given = dict(kwargs)
    if args:
        names = [item.name for item in record_fields(trace, kind, name)]
        if not dataclasses.is_dataclass(kind) or len(args) > len(names):
            raise trace.refuse("ARGUMENT", f"{name} is given values without names", "write field=value")
        given = {**dict(zip(names, args, strict=False)), **given}
    expr = express_fields(trace, kind, given, name)
    if "const" in expr:
        trace.check_constant(kind, expr["const"])
    return cast(M, trace.ref(expr, trace.schema(kind, name)))


def text(template: str, *values: object) -> str:
    """A text with `{}` for each value: for keys and the like. Values are texts or whole numbers."""
    trace = current_trace("orbit.text")
    if not is_text(template):
        raise trace.refuse(
            "TEXT_TEMPLATE", f"the template is {template!r}", 'write orbit.text("job-{}", ref)'
        )
    if (shown := shown_reference(template)) is not None:
        found = f"the template holds {shown!r}, which is how a reference is shown"
        raise trace.refuse("TEXT_TEMPLATE", found, "write {} there, and give the reference as a value")
    literals = _split(trace, template)
    if len(literals) != len(values) + 1:
        raise trace.refuse(
            "TEXT_TEMPLATE",
            f"{template!r} has {len(literals) - 1} places and {len(values)} values",
            "give one value for each {}",
        )
    pieces: list[Json] = []
    for number, start in enumerate(literals):
        _append(pieces, start)
        if number < len(values):
            _append(pieces, _piece(trace, values[number], f"value {number + 1} of orbit.text"))
    if all(isinstance(piece, str) for piece in pieces):
        return cast(str, trace.ref({"const": "".join(str(piece) for piece in pieces)}, {"type": "string"}))
    return cast(str, trace.ref({"text": pieces}, {"type": "string"}))


def _split(trace: Trace, template: str) -> list[str]:
    """The literal parts around each `{}`; `{{` and `}}` stand for braces."""
    plain = template.replace("{{", "\0").replace("}}", "\1")
    parts = plain.split("{}")
    if any("{" in part or "}" in part for part in parts):
        raise trace.refuse(
            "TEXT_TEMPLATE", f"{template!r} has a brace that is no {{}}", "write {} or {{ and }}"
        )
    return [part.replace("\0", "{").replace("\1", "}") for part in parts]


def _append(pieces: list[Json], piece: Json) -> None:
    if isinstance(piece, str):
        if not piece:
            return
        if pieces and isinstance(last := pieces[-1], str):
            pieces[-1] = last + piece
            return
    pieces.append(piece)


def _piece(trace: Trace, value: object, where: str) -> Json:
    if isinstance(value, Ref):
        kinds = [one.get("type") for one in shapes.members(ref_data(value).schema, trace.book.types)]
        expr = use_ref(trace, value, where, {"type": "string"})
        if any(kind in ("number", "boolean", "array", "object") for kind in kinds):
            raise trace.refuse("TEXT_TEMPLATE", f"{where} is {value!r}", "use texts and whole numbers")
        if "const" in expr:
            return str(expr["const"])
        if "text" in expr or "ref" not in expr:
            raise trace.refuse("TEXT_TEMPLATE", f"{where} is itself put together", "write one orbit.text")
        return expr
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise trace.refuse("TEXT_TEMPLATE", f"{where} is {value!r}", "use texts and whole numbers")


def fail(code: str, message: str) -> Never:
    """End here as FAILED; inside a parallel arm the arm fails. Nothing after it is built."""
    trace = current_trace("orbit.fail")
    if not is_text(code) or not is_error_code(code):
        raise trace.refuse(
            "FAIL", f"{code!r} is not an error code", 'write capitals: orbit.fail("REFUSED", "…")'
        )
    if not is_text(message) or not message:
        raise trace.refuse("FAIL", f"the message is {message!r}", "write a plain sentence; it is a constant")
    if (shown := shown_reference(message)) is not None:
        found = f"the message holds {shown!r}, which is how a reference is shown"
        raise trace.refuse("FAIL", found, "write a plain sentence; it is a constant")
    body = {"outcome": "FAILED", "error": {"code": code, "message": message}}
    trace.add("END", trace.make_key(None, code), body, None)
    raise ArmFailed


def instance() -> Instance:
    """What the running workflow knows of itself."""
    trace = current_trace("orbit.instance")
    text_type: dict[str, Json] = {"type": "string"}
    instant: dict[str, Json] = {"type": "string", "format": "date-time"}
    properties: dict[str, Json] = {
        "workflow_id": text_type,
        "business_key": {"anyOf": [text_type, shapes.NULL]},
        "started_at": instant,
        "started_by": text_type,
        "origin": {"anyOf": [text_type, shapes.NULL]},
        "planned_at": {"anyOf": [instant, shapes.NULL]},
    }
    names: list[Json] = list(properties)
    schema: dict[str, Json] = {"type": "object", "properties": properties, "required": names}
    return cast(Instance, Ref(RefData(trace, {"ref": "instance"}, schema, trace.root)))
