"""From Python types to Orbit's normal form of JSON Schema.

Own walk over the declared types, not pydantic's generator: a comment, a docstring or another pydantic
release must never change a digest. No titles, no descriptions, no defaults; one spelling for each type;
classes become named entries of `types`, everything else is written in place. What JSON cannot carry
exactly is refused by name.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union

import pydantic
import typing_extensions

from orbit_sdk.handlers.constraints import constrained, is_sensitive
from orbit_sdk.handlers.type_fields import TypeRefused, alias_value, fields_of, is_alias, is_record, type_name
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json

__all__ = ["Schema", "TypeBook", "TypeRefused"]

Schema = dict[str, Json]

_PLAIN: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    pydantic.AwareDatetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    timedelta: {"type": "string", "format": "duration"},
    Decimal: {"type": "string", "format": "decimal"},
    pydantic.AnyUrl: {"type": "string", "format": "uri"},
    pydantic.AnyHttpUrl: {"type": "string", "format": "uri"},
    pydantic.HttpUrl: {"type": "string", "format": "uri"},
    pydantic.EmailStr: {"type": "string", "format": "email"},
    Any: {},
    pydantic.JsonValue: {},
}

_SECRETS = "secrets never travel: pass orbit.SecretRef, whose name the worker resolves"
_NAIVE = "declare an aware datetime (pydantic.AwareDatetime or datetime with a zone)"
_REFUSED: Mapping[object, tuple[str, str]] = {
    tuple: ("a tuple has no JSON form of its own", "use a list, or a model with named fields"),
    set: ("a set has no JSON form and no order", "use a list"),
    frozenset: ("a set has no JSON form and no order", "use a list"),
    bytes: ("bytes have no JSON form", "use a text (base64), or orbit.FileRef for what is large"),
    bytearray: ("bytes have no JSON form", "use a text (base64), or orbit.FileRef for what is large"),
    pydantic.SecretStr: ("a secret must not be stored", _SECRETS),
    pydantic.SecretBytes: ("a secret must not be stored", _SECRETS),
    pydantic.NaiveDatetime: ("a time without a zone names no instant", _NAIVE),
    time: ("a time of day without a date and a zone names no instant", "use a text, or an aware datetime"),
    pydantic.PastDatetime: ("what is past depends on when it is read", _NAIVE),
    pydantic.FutureDatetime: ("what is future depends on when it is read", _NAIVE),
    pydantic.PastDate: ("what is past depends on when it is read", "use a date"),
    pydantic.FutureDate: ("what is future depends on when it is read", "use a date"),
    complex: ("a complex number has no JSON form", "use a model with two numbers"),
    object: ("`object` says nothing about its JSON form", "name the type, or use pydantic.JsonValue"),
}
_LISTS: tuple[Any, ...] = (list, Sequence)
_DICTS: tuple[Any, ...] = (dict, Mapping)
_UNIONS: tuple[Any, ...] = (Union, types.UnionType)
_LITERALS: tuple[Any, ...] = (Literal, typing_extensions.Literal)
_MARKS: tuple[Any, ...] = (typing.Required, typing.NotRequired, typing_extensions.ReadOnly, typing.Final)


@dataclass(slots=True)
class TypeBook:
    """Collects the named types that a definition, or one handler, uses."""

    types: dict[str, Schema] = field(default_factory=dict)
    _owners: dict[str, object] = field(default_factory=dict)
    _open_aliases: dict[int, bool] = field(default_factory=dict)

    def schema(self, annotation: object, where: str) -> Schema:
        """The normal form of a type; `where` names the place in messages. Raises TypeRefused."""
        plain = self._simple(annotation, where)
        if plain is not None:
            return plain
        origin = typing.get_origin(annotation)
        if origin is Annotated or origin is typing_extensions.Annotated:
            inner, *extras = typing.get_args(annotation)
            return self._annotated(inner, extras, where)
        if is_alias(annotation):
            return self._alias(annotation, where)
        if isinstance(annotation, typing.NewType):
            return self.schema(annotation.__supertype__, where)
        if isinstance(annotation, type) and origin is None:
            return self._class(annotation, where)
        if origin is not None:
            return self._generic(annotation, origin, where)
        raise TypeRefused(where, f"{annotation!r} is not a type that JSON can carry", "name a concrete type")

    def _simple(self, annotation: object, where: str) -> Schema | None:
        try:
            refused = _REFUSED.get(annotation)
            plain = _PLAIN.get(annotation)
        except TypeError:  # an unhashable annotation, such as Annotated[int, []]
            return None
        if refused is not None:
            raise TypeRefused(where, refused[0], refused[1])
        return None if plain is None else dict(plain)

    def _annotated(self, inner: object, extras: Sequence[object], where: str) -> Schema:
        schema = constrained(self.schema(inner, where), extras, where)
        return {**schema, "sensitive": True} if is_sensitive(extras) else schema

    def _alias(self, alias: typing_extensions.TypeAliasType, where: str) -> Schema:
        """Aliases are written in place, unless they hold themselves."""
        name = type_name(alias.__name__)
        if id(alias) in self._open_aliases:
            self._open_aliases[id(alias)] = True
            return {"$ref": f"#/types/{name}"}
        if self._owners.get(name) is alias:
            return {"$ref": f"#/types/{name}"}
        self._open_aliases[id(alias)] = False
        try:
            schema = self.schema(alias_value(alias, where), where)
        finally:
            recursive = self._open_aliases.pop(id(alias))
        if not recursive:
            return schema
        self._claim(name, alias, where)
        self.types[name] = schema
        return {"$ref": f"#/types/{name}"}

    def _class(self, kind: type[Any], where: str) -> Schema:
        if issubclass(kind, Enum):
            return choice([member.value for member in kind], where)
        if issubclass(kind, pydantic.RootModel):
            return self.schema(kind.model_fields["root"].annotation, where)
        if is_record(kind):
            return self._record(kind, where)
        if (kind.__module__, kind.__qualname__) == ("uuid", "UUID"):  # by name: this layer makes no ids
            return {"type": "string", "format": "uuid"}
        if kind in (list, dict):
            return {"type": "array"} if kind is list else {"type": "object"}
        for base, (found, instead) in _REFUSED.items():
            if isinstance(base, type) and base is not object and issubclass(kind, base):
                raise TypeRefused(where, f"{kind.__name__}: {found}", instead)
        raise TypeRefused(
            where,
            f"{kind.__module__}.{kind.__qualname__} has no JSON form that Orbit knows",
            "use a pydantic model, a dataclass, a TypedDict or a plain JSON type",
        )

    def _record(self, kind: type[Any], where: str) -> Schema:
        name = type_name(kind.__name__)
        ref: Schema = {"$ref": f"#/types/{name}"}
        if self._owners.get(name) is kind:
            return ref
        self._claim(name, kind, where)
        properties: dict[str, Json] = {}
        required: list[Json] = []
        for item in fields_of(kind, where):
            path = f"{kind.__name__}.{item.name}"
            properties[item.name] = inner = self._annotated(item.annotation, item.extras, path)
            # What the SDK writes is complete, and an absent property reads as null: so a property may only
            # be absent where its default is null, and references never differ from the declared type.
            if not (item.left_out or (item.default is None and _takes_null(inner))):
                required.append(item.name)
        schema: Schema = {"type": "object"}
        if properties:
            schema["properties"] = dict(sorted(properties.items()))
        if required:
            schema["required"] = sorted(required, key=str)
        if _forbids_extra(kind):
            schema["additionalProperties"] = False
        self.types[name] = schema
        return ref

    def _claim(self, name: str, owner: object, where: str) -> None:
        if name in self._owners:
            raise TypeRefused(
                where,
                f"two different types are called {name}, and a definition names its types",
                "give one of them another name",
            )
        self._owners[name] = owner

    def _generic(self, annotation: object, origin: object, where: str) -> Schema:
        args = typing.get_args(annotation)
        if origin in _LITERALS:
            return choice([value.value if isinstance(value, Enum) else value for value in args], where)
        if origin in _UNIONS:
            return union([self.schema(option, where) for option in args])
        if origin in _LISTS:
            items = self.schema(args[0], f"{where}[]")
            return {"type": "array", "items": items} if items else {"type": "array"}
        if origin in _DICTS:
            if args[0] is not str:
                raise TypeRefused(where, "JSON objects have texts as keys", "use dict[str, …]")
            values = self.schema(args[1], f"{where}{{}}")
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        if is_alias(origin):
            return self.schema(origin.__value__[args], where)
        if origin in _MARKS:
            return self.schema(args[0], where)
        if is_record(origin):  # a generic dataclass or TypedDict with its arguments
            raise TypeRefused(
                where, f"{annotation!r} is generic", "use a pydantic generic model, or a concrete class"
            )
        self._simple(origin, where)
        raise TypeRefused(
            where, f"{annotation!r} has no JSON form that Orbit knows", "name a concrete JSON type"
        )


def union(options: Sequence[Schema]) -> Schema:
    """One of several: flat, each once, in a fixed order, null last. One option is just that."""
    flat: dict[str, Schema] = {}
    sensitive = False
    for option in options:
        members = option.get("anyOf")
        sensitive = sensitive or (members is not None and "sensitive" in option)
        for member in members if isinstance(members, list) else [option]:
            assert isinstance(member, dict)
            flat[canonical_json(member)] = member
    if "{}" in flat:
        return {}
    ordered = [flat[text] for text in sorted(flat, key=lambda text: (text == '{"type":"null"}', text))]
    if len(ordered) == 1:
        return ordered[0]
    found: Schema = {"anyOf": list[Json](ordered)}
    return {**found, "sensitive": True} if sensitive else found


def choice(values: Sequence[object], where: str) -> Schema:
    """One of several constants: sorted and each once; one value is a `const`, null is a type of its own."""
    plain: list[str | int | None] = []
    for value in values:
        if value is not None and not isinstance(value, str | int):
            raise TypeRefused(
                where, f"{value!r} is neither text, whole number nor boolean", "use such values"
            )
        plain.append(value)
    constants: dict[str, Json] = {canonical_json(value): value for value in plain}
    nullable = constants.pop("null", False) is None
    ordered = [constants[text] for text in sorted(constants)]
    if not ordered and not nullable:
        raise TypeRefused(where, "no value is allowed here at all", "give the enum members")
    schema: Schema = {"const": ordered[0]} if len(ordered) == 1 else {"enum": ordered}
    if not nullable:
        return schema
    return union([schema, {"type": "null"}]) if ordered else {"type": "null"}


def _takes_null(schema: Schema) -> bool:
    options = schema.get("anyOf")
    return (
        not schema
        or schema.get("type") == "null"
        or (isinstance(options, list) and {"type": "null"} in options)
    )


def _forbids_extra(kind: type[Any]) -> bool:
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    return bool(config.get("extra") == "forbid")
