"""Value types: Orbit's normal form of a documented subset of JSON Schema 2020-12.

One spelling for each type: no titles or comments; `enum` alone, sorted; one value is a `const`; an
optional is `anyOf` of the type and null; empty `properties` and `required` are absent; an object
without `additionalProperties` is open. What lies outside the subset is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import orjson
from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from orbit_sdk.definition.base import (
    FieldName,
    JsonValue,
    Marked,
    Maybe,
    Model,
    SortedSeveral,
    SortedSome,
    tag_by_key,
)
from orbit_sdk.definition.patterns import Pattern
from orbit_sdk.definition.problems import invalid
from orbit_sdk.values.canonical import canonical_bytes
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import MAX_SAFE_INTEGER
from orbit_sdk.values.paths import PathPart

__all__ = [
    "FORMATS",
    "AnyType",
    "ArrayType",
    "BooleanType",
    "ConstType",
    "EnumType",
    "Format",
    "IntegerType",
    "NullType",
    "NumberType",
    "ObjectType",
    "RefType",
    "StringType",
    "TypeSchema",
    "UnionType",
    "load_type",
    "named_types_of",
    "parts_of_type",
    "resolve",
    "type_to_json",
]

Format: TypeAlias = Literal["date-time", "date", "time", "duration", "decimal", "uuid", "email", "uri"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)

_Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
_Whole: TypeAlias = Annotated[int, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
_WholeStep: TypeAlias = Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
_Number: TypeAlias = Annotated[float, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
_NumberStep: TypeAlias = Annotated[float, Field(gt=0, le=MAX_SAFE_INTEGER)]


class _Type(Model):
    """Any type may carry the mark that its values are masked for readers without the right."""

    sensitive: Maybe[Marked] = None


class AnyType(_Type):
    """`{}`: any JSON value."""


class RefType(_Type):
    """A type of the document's `types`."""

    ref: Annotated[str, Field(alias="$ref", pattern=r"^#/types/[A-Za-z][A-Za-z0-9_]{0,127}$")]

    @property
    def target(self) -> str:
        """The name in `types`."""
        return self.ref.removeprefix("#/types/")


class ObjectType(_Type):
    """An object; without `additionalProperties` further properties may hold anything."""

    type: Literal["object"]
    properties: Maybe[Annotated[dict[FieldName, TypeSchema], Field(min_length=1)]] = None
    required: Maybe[SortedSome[FieldName]] = None
    additional: Maybe[_Additional] = Field(default=None, alias="additionalProperties")

    @property
    def fields(self) -> Mapping[str, TypeSchema]:
        """The declared properties, perhaps none."""
        return self.properties or {}

    @property
    def required_names(self) -> tuple[str, ...]:
        """The properties that must be there, sorted."""
        return self.required or ()


class ArrayType(_Type):
    """An array; without `items` they may be anything."""

    type: Literal["array"]
    items: Maybe[TypeSchema] = None
    min_items: Maybe[_Count] = Field(default=None, alias="minItems")
    max_items: Maybe[_Count] = Field(default=None, alias="maxItems")


class StringType(_Type):
    """A text; lengths count code points, `pattern` searches anywhere and takes linear time."""

    type: Literal["string"]
    min_length: Maybe[_Count] = Field(default=None, alias="minLength")
    max_length: Maybe[_Count] = Field(default=None, alias="maxLength")
    pattern: Maybe[Pattern] = None
    format: Maybe[Format] = None


class IntegerType(_Type):
    """A whole number within what JSON carries exactly; `1.0` is one."""

    type: Literal["integer"]
    minimum: Maybe[_Whole] = None
    maximum: Maybe[_Whole] = None
    exclusive_minimum: Maybe[_Whole] = Field(default=None, alias="exclusiveMinimum")
    exclusive_maximum: Maybe[_Whole] = Field(default=None, alias="exclusiveMaximum")
    multiple_of: Maybe[_WholeStep] = Field(default=None, alias="multipleOf")


class NumberType(_Type):
    """A double."""

    type: Literal["number"]
    minimum: Maybe[_Number] = None
    maximum: Maybe[_Number] = None
    exclusive_minimum: Maybe[_Number] = Field(default=None, alias="exclusiveMinimum")
    exclusive_maximum: Maybe[_Number] = Field(default=None, alias="exclusiveMaximum")
    multiple_of: Maybe[_NumberStep] = Field(default=None, alias="multipleOf")


class BooleanType(_Type):
    """true or false."""

    type: Literal["boolean"]


class NullType(_Type):
    """null."""

    type: Literal["null"]


class EnumType(_Type):
    """One of several constants."""

    enum: SortedSeveral[JsonValue]


class ConstType(_Type):
    """Exactly this value."""

    const: JsonValue


def _union_order(members: tuple[Any, ...]) -> tuple[Any, ...]:
    """Members sorted by their canonical form, null last, each once: their order has no meaning."""
    by_text = {_canonical(member): member for member in members}
    if len(by_text) != len(members):
        raise PydanticCustomError("twice", "names a type twice")
    return tuple(by_text[text] for text in sorted(by_text, key=lambda text: (text == _NULL, text)))


_NULL = b'{"type":"null"}'
_TYPES_BY_TAG: Final[dict[str, type[_Type]]] = {
    "<$ref>": RefType,
    "<enum>": EnumType,
    "<const>": ConstType,
    "<any>": AnyType,
    "<object>": ObjectType,
    "<array>": ArrayType,
    "<string>": StringType,
    "<integer>": IntegerType,
    "<number>": NumberType,
    "<boolean>": BooleanType,
    "<null>": NullType,
}
_TAGS_BY_TYPE: Final = {kind: tag for tag, kind in _TYPES_BY_TAG.items()}


def _type_tag(value: Any) -> str | None:
    if isinstance(value, _Type):
        return "<anyOf>" if isinstance(value, UnionType) else _TAGS_BY_TYPE[type(value)]
    if not isinstance(value, dict):
        return None
    tag = tag_by_key(value, ("$ref", "anyOf", "enum", "const"))
    if tag is not None:
        return tag
    if "type" in value:
        name = f"<{value['type']}>"
        return name if name in _TYPES_BY_TAG and name[1] != "$" else None
    return "<any>" if value.keys() <= {"sensitive"} else None


class UnionType(_Type):
    """One of several types; a union inside a union is written flat."""

    any_of: Annotated[
        tuple[_Member, ...],
        Field(strict=False, min_length=2, alias="anyOf", json_schema_extra={"uniqueItems": True}),
        AfterValidator(_union_order),
    ]


_Member: TypeAlias = Annotated[
    Annotated[RefType, Tag("<$ref>")]
    | Annotated[EnumType, Tag("<enum>")]
    | Annotated[ConstType, Tag("<const>")]
    | Annotated[AnyType, Tag("<any>")]
    | Annotated[ObjectType, Tag("<object>")]
    | Annotated[ArrayType, Tag("<array>")]
    | Annotated[StringType, Tag("<string>")]
    | Annotated[IntegerType, Tag("<integer>")]
    | Annotated[NumberType, Tag("<number>")]
    | Annotated[BooleanType, Tag("<boolean>")]
    | Annotated[NullType, Tag("<null>")],
    Discriminator(
        _type_tag,
        custom_error_type="value_type",
        custom_error_message="is not a type that can stand in a union",
    ),
]

TypeSchema: TypeAlias = Annotated[
    Annotated[RefType, Tag("<$ref>")]
    | Annotated[UnionType, Tag("<anyOf>")]
    | Annotated[EnumType, Tag("<enum>")]
    | Annotated[ConstType, Tag("<const>")]
    | Annotated[AnyType, Tag("<any>")]
    | Annotated[ObjectType, Tag("<object>")]
    | Annotated[ArrayType, Tag("<array>")]
    | Annotated[StringType, Tag("<string>")]
    | Annotated[IntegerType, Tag("<integer>")]
    | Annotated[NumberType, Tag("<number>")]
    | Annotated[BooleanType, Tag("<boolean>")]
    | Annotated[NullType, Tag("<null>")],
    Discriminator(_type_tag, custom_error_type="value_type", custom_error_message="is not a value type"),
]


def _additional_tag(value: Any) -> str:
    return "<false>" if isinstance(value, bool) else "<type>"


_Additional: TypeAlias = Annotated[
    Annotated[Literal[False], Tag("<false>")] | Annotated[TypeSchema, Tag("<type>")],
    Discriminator(_additional_tag),
]

_ADAPTER: TypeAdapter[TypeSchema] = TypeAdapter(TypeSchema, config=ConfigDict(defer_build=True))


def load_type(value: Json) -> TypeSchema:
    """The type of a JSON document in normal form; InvalidArgument with every problem and its path."""
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError as error:
        raise invalid("the type", error) from None


def type_to_json(schema: TypeSchema) -> dict[str, Json]:
    """The JSON of a type, keys as in the document."""
    document: dict[str, Json] = orjson.loads(_canonical(schema))
    return document


def _canonical(schema: TypeSchema) -> bytes:
    return canonical_bytes(schema.model_dump(by_alias=True, exclude_unset=True))


def parts_of_type(schema: TypeSchema) -> Iterator[tuple[tuple[PathPart, ...], TypeSchema]]:
    """The types directly inside this one, with their paths; `$ref` is not followed."""
    match schema:
        case ObjectType():
            for name, member in schema.fields.items():
                yield ("properties", name), member
            if schema.additional is not None and schema.additional is not False:
                yield ("additionalProperties",), schema.additional
        case ArrayType(items=items) if items is not None:
            yield ("items",), items
        case UnionType(any_of=members):
            for index, member in enumerate(members):
                yield ("anyOf", index), member
        case _:
            return


def named_types_of(schema: TypeSchema) -> Iterator[tuple[tuple[PathPart, ...], str]]:
    """Every name of `types` that this type mentions, with its path."""
    if isinstance(schema, RefType):
        yield (), schema.target
    for path, part in parts_of_type(schema):
        for inner, name in named_types_of(part):
            yield (*path, *inner), name


def resolve(schema: TypeSchema, types: Mapping[str, TypeSchema]) -> TypeSchema:
    """The type behind a chain of `$ref`; LookupError for an unknown name or a chain without an end."""
    seen: set[str] = set()
    while isinstance(schema, RefType):
        name = schema.target
        if name in seen:
            raise LookupError(f"type {name} is defined by itself")
        seen.add(name)
        if name not in types:
            raise LookupError(f"type {name} does not exist")
        schema = types[name]
    return schema
