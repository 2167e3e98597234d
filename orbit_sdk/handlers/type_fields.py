"""The fields of a record type (pydantic model, dataclass, TypedDict), all in one shape."""

from __future__ import annotations

import dataclasses
import re
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import typing_extensions
from pydantic import BaseModel, PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

__all__ = [
    "MISSING",
    "RecordField",
    "TypeRefused",
    "alias_value",
    "fields_of",
    "is_alias",
    "is_record",
    "type_name",
]

MISSING: Any = object()
"""No default."""

_ALIASES: tuple[type, ...] = tuple(
    {
        getattr(module, "TypeAliasType", typing_extensions.TypeAliasType)
        for module in (typing, typing_extensions)
    }
)


class TypeRefused(Exception):
    """A type that cannot be used: where it stands, what was found, what to write instead."""

    def __init__(self, where: str, found: str, instead: str) -> None:
        super().__init__(f"{where}: {found}; {instead}")
        self.where = where
        self.found = found
        self.instead = instead


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field: `default` is MISSING when there is none, `factory` says that only a factory gives one.

    `left_out` says that the field may be missing from a value (a TypedDict's NotRequired).
    """

    name: str
    annotation: Any
    extras: tuple[object, ...] = ()
    default: Any = MISSING
    factory: bool = False
    left_out: bool = False


def is_record(kind: object) -> bool:
    """Whether a class has named fields that Orbit understands."""
    if not isinstance(kind, type):
        return False
    return (
        issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind) or typing_extensions.is_typeddict(kind)
    )


def type_name(name: str) -> str:
    """A class's name in the grammar of `types`: `Page[Item]` is `Page_Item`."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "Type"


def fields_of(kind: type[Any], where: str) -> list[RecordField]:
    """The fields of a record type, in order. Raises TypeRefused for what JSON would not show as declared."""
    if issubclass(kind, BaseModel):
        return list(_of_model(kind, where))
    if typing_extensions.is_typeddict(kind):
        if sys.version_info < (3, 12) and type(kind).__module__ == "typing":
            found = f"{kind.__name__} is a typing.TypedDict, which this Python tells too little of"
            raise TypeRefused(where, found, "use typing_extensions.TypedDict")
        hints = _hints(kind, where)
        keys = kind.__required_keys__
        return [RecordField(name, hint, left_out=name not in keys) for name, hint in hints.items()]
    return list(_of_dataclass(kind, where))


def is_alias(annotation: object) -> TypeGuard[typing_extensions.TypeAliasType]:
    """Whether it is a named alias, the language's own (Python 3.12) or the backport's."""
    return isinstance(annotation, _ALIASES)


def alias_value(alias: typing_extensions.TypeAliasType, where: str) -> Any:
    """What an alias stands for, names in quotes resolved in the alias's own module."""
    holder = type(
        "Holder", (), {"__annotations__": {"value": alias.__value__}, "__module__": alias.__module__}
    )
    return _hints(holder, where)["value"]


def _of_model(kind: type[BaseModel], where: str) -> Iterator[RecordField]:
    if not kind.__pydantic_complete__:
        try:
            kind.model_rebuild()
        except PydanticUndefinedAnnotation as error:
            raise _unknown_name(where, str(error)) from None
    decorators = kind.__pydantic_decorators__
    if kind.model_computed_fields or decorators.field_serializers or decorators.model_serializers:
        raise TypeRefused(
            where,
            f"{kind.__name__} has computed fields or serializers: its JSON is not what its fields say",
            "declare plain fields",
        )
    for name, info in kind.model_fields.items():
        _refuse_alias(kind, name, info)
        default = MISSING if info.default is PydanticUndefined else info.default
        extras = (*info.metadata, *([info] if info.exclude else ()))
        yield RecordField(name, info.annotation, extras, default, info.default_factory is not None)


def _refuse_alias(kind: type[Any], name: str, info: FieldInfo) -> None:
    for alias in (info.alias, info.validation_alias, info.serialization_alias):
        if alias is not None and alias != name:
            raise TypeRefused(
                f"{kind.__name__}.{name}",
                f"the alias {alias!r} gives the field another name in JSON than in Python",
                f"name the field as its JSON is named, or drop the alias of {name}",
            )
    if info.exclude:
        raise TypeRefused(
            f"{kind.__name__}.{name}", "the field is left out of the JSON (exclude)", "drop exclude"
        )


def _of_dataclass(kind: type[Any], where: str) -> Iterator[RecordField]:
    hints = _hints(kind, where)
    for item in dataclasses.fields(kind):
        if not item.init:
            raise TypeRefused(
                f"{kind.__name__}.{item.name}", "the field cannot be given (init=False)", "drop init"
            )
        default = MISSING if item.default is dataclasses.MISSING else item.default
        factory = item.default_factory is not dataclasses.MISSING
        if isinstance(default, FieldInfo):
            _refuse_alias(kind, item.name, default)
            factory = factory or default.default_factory is not None
            default = MISSING if default.default is PydanticUndefined else default.default
        yield RecordField(item.name, hints[item.name], (), default, factory)


def _hints(kind: type[Any], where: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise _unknown_name(where, str(error)) from None


def _unknown_name(where: str, reason: str) -> TypeRefused:
    return TypeRefused(
        where,
        f"an annotation cannot be resolved ({reason.splitlines()[0]})",
        "define the type at the top level of a module, and import it outside `if TYPE_CHECKING`",
    )
