"""How Python types look in Orbit's normal form."""

import dataclasses
import sys
import typing
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, NewType, NotRequired, Optional, TypeVar, Union
from uuid import UUID

import annotated_types
import pydantic
import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel, StringConstraints
from typing_extensions import TypeAliasType, TypedDict

import orbit_sdk as orbit
from orbit_sdk.definition.value_types import load_type, type_to_json
from orbit_sdk.handlers.type_schemas import TypeBook, TypeRefused

TEXT = {"type": "string"}
T = TypeVar("T")


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Only(Enum):
    ONE = "one"


class Mixed(Enum):
    TEXT = "a"
    NONE = None


class Leaf(BaseModel):
    """A docstring that must not be seen."""

    name: str = Field(description="nor this", examples=["x"], title="nor that")
    count: int | None = None
    size: int = 3
    tags: list[str] = Field(default_factory=list)


class Tree(BaseModel):
    left: Optional["Tree"] = None
    label: str


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


class Page(BaseModel, Generic[T]):
    items: list[T]


class Names(RootModel[list[str]]): ...


class Empty(BaseModel): ...


@dataclasses.dataclass
class Pair:
    left: str
    right: int | None = None


class Loose(TypedDict):
    name: str
    age: NotRequired[int]


OrderId = NewType("OrderId", str)
Alias = TypeAliasType("Alias", list[str])
Recursive = TypeAliasType("Recursive", "list[Recursive] | str")

TYPES: list[tuple[Any, dict[str, Any]]] = [
    (str, TEXT),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (pydantic.JsonValue, {}),
    (Decimal, {"type": "string", "format": "decimal"}),
    (datetime, {"type": "string", "format": "date-time"}),
    (AwareDatetime, {"type": "string", "format": "date-time"}),
    (date, {"type": "string", "format": "date"}),
    (timedelta, {"type": "string", "format": "duration"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (pydantic.HttpUrl, {"type": "string", "format": "uri"}),
    (Color, {"enum": ["blue", "red"]}),
    (Level, {"enum": [1, 10]}),
    (Only, {"const": "one"}),
    (Mixed, {"anyOf": [{"const": "a"}, {"type": "null"}]}),
    (Literal["b", "a"], {"enum": ["a", "b"]}),
    (Literal["a"], {"const": "a"}),
    (Literal[Color.RED, "x"], {"enum": ["red", "x"]}),
    (Literal["a", None], {"anyOf": [{"const": "a"}, {"type": "null"}]}),  # noqa: PYI061 - what is tested
    (str | None, {"anyOf": [TEXT, {"type": "null"}]}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - what is tested
    (Union[int, str, None], {"anyOf": [{"type": "integer"}, TEXT, {"type": "null"}]}),  # noqa: UP007
    (str | int, {"anyOf": [{"type": "integer"}, TEXT]}),
    (int | str, {"anyOf": [{"type": "integer"}, TEXT]}),
    (list[str], {"type": "array", "items": TEXT}),
    (list[Any], {"type": "array"}),
    (list, {"type": "array"}),
    (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, Any], {"type": "object"}),
    (dict, {"type": "object"}),
    (OrderId, TEXT),
    (Alias, {"type": "array", "items": TEXT}),
    (Names, {"type": "array", "items": TEXT}),
    (Annotated[str, orbit.Sensitive], {"type": "string", "sensitive": True}),
    (
        Annotated[str | int, orbit.Sensitive] | None,
        {"anyOf": [{"type": "integer"}, TEXT, {"type": "null"}], "sensitive": True},
    ),
    (Annotated[str, Field(min_length=1, max_length=5)], {"type": "string", "minLength": 1, "maxLength": 5}),
    (Annotated[str, Field(pattern="^a+$")], {"type": "string", "pattern": "^a+$"}),
    (
        Annotated[str, StringConstraints(min_length=2, pattern="b")],
        {"type": "string", "minLength": 2, "pattern": "b"},
    ),
    (Annotated[int, Field(ge=1, lt=9)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
    (
        Annotated[int, annotated_types.Interval(gt=0, le=3)],
        {"type": "integer", "exclusiveMinimum": 0, "maximum": 3},
    ),
    (pydantic.PositiveInt, {"type": "integer", "exclusiveMinimum": 0}),
    (Annotated[float, Field(multiple_of=0.5)], {"type": "number", "multipleOf": 0.5}),
    (Annotated[list[str], Field(max_length=3)], {"type": "array", "items": TEXT, "maxItems": 3}),
    (Annotated[Decimal, Field(ge=0)], {"type": "string", "format": "decimal"}),
]

REFUSED: list[tuple[Any, str]] = [
    (tuple[str, int], "tuple"),
    (tuple, "tuple"),
    (set[str], "set"),
    (frozenset[str], "set"),
    (bytes, "bytes"),
    (list[bytes], "bytes"),
    (pydantic.SecretStr, "secret"),
    (pydantic.NaiveDatetime, "zone"),
    (pydantic.PastDatetime, "past"),
    (time, "instant"),
    (complex, "complex"),
    (object, "object"),
    (dict[int, str], "texts as keys"),
    (type, "no JSON form"),
    (T, "not a type"),
    (Annotated[int, pydantic.PlainSerializer(str)], "changes"),
    (Annotated[int, Field(multiple_of=0.5)], "whole"),
    (Literal[b"a"], "neither text"),
]


@pytest.mark.parametrize(("annotation", "expected"), TYPES, ids=[str(one) for one, _ in TYPES])
def test_a_type_has_one_normal_form(annotation: Any, expected: dict[str, Any]) -> None:
    schema = TypeBook().schema(annotation, "x")
    assert schema == expected
    assert type_to_json(load_type(schema)) == expected


@pytest.mark.parametrize(("annotation", "reason"), REFUSED, ids=[str(one) for one, _ in REFUSED])
def test_what_json_cannot_carry_is_refused_by_name(annotation: Any, reason: str) -> None:
    with pytest.raises(TypeRefused, match=reason) as caught:
        TypeBook().schema(annotation, "x")
    assert caught.value.instead


def test_records_are_named_and_say_nothing_of_their_documentation() -> None:
    book = TypeBook()
    assert book.schema(Leaf, "x") == {"$ref": "#/types/Leaf"}
    assert book.types == {
        "Leaf": {
            "type": "object",
            "properties": {
                "name": TEXT,
                "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "size": {"type": "integer"},
                "tags": {"type": "array", "items": TEXT},
            },
            "required": ["name", "size", "tags"],
        }
    }


def test_types_may_hold_themselves() -> None:
    book = TypeBook()
    assert book.schema(Tree, "x") == {"$ref": "#/types/Tree"}
    assert book.types["Tree"]["properties"] == {
        "label": TEXT,
        "left": {"anyOf": [{"$ref": "#/types/Tree"}, {"type": "null"}]},
    }
    assert book.schema(Recursive, "x") == {"$ref": "#/types/Recursive"}
    assert book.types["Recursive"] == {
        "anyOf": [{"type": "array", "items": {"$ref": "#/types/Recursive"}}, TEXT]
    }


def test_dataclasses_and_typed_dicts_are_records() -> None:
    book = TypeBook()
    book.schema(Pair, "x")
    book.schema(Loose, "x")
    book.schema(Closed, "x")
    book.schema(Empty, "x")
    assert book.types["Pair"]["required"] == ["left"]
    assert book.types["Loose"]["required"] == ["name"]
    assert book.types["Closed"]["additionalProperties"] is False
    assert book.types["Empty"] == {"type": "object"}


def test_unions_may_be_discriminated() -> None:
    book = TypeBook()
    book.schema(Owner, "x")
    assert book.types["Owner"]["properties"] == {
        "pet": {"anyOf": [{"$ref": "#/types/Cat"}, {"$ref": "#/types/Dog"}]}
    }
    assert book.types["Cat"]["properties"] == {"kind": {"const": "cat"}}


def test_generic_models_are_named_by_their_arguments() -> None:
    assert TypeBook().schema(Page[Leaf], "x") == {"$ref": "#/types/Page_Leaf"}


def test_two_types_of_one_name_are_refused() -> None:
    book = TypeBook()
    book.schema(Leaf, "x")
    other = pydantic.create_model("Leaf", number=(int, ...))
    with pytest.raises(TypeRefused, match="two different types"):
        book.schema(other, "y")


def test_an_alias_that_differs_is_refused_with_its_field() -> None:
    class Renamed(BaseModel):
        order_id: str = Field(alias="orderId")

    with pytest.raises(TypeRefused, match="orderId") as caught:
        TypeBook().schema(Renamed, "x")
    assert caught.value.where == "Renamed.order_id"


def test_json_that_is_not_what_the_fields_say_is_refused() -> None:
    class Computed(BaseModel):
        @pydantic.computed_field  # type: ignore[prop-decorator]
        @property
        def twice(self) -> int:
            return 2

    class Hidden(BaseModel):
        name: str = Field(exclude=True)

    for kind in (Computed, Hidden):
        with pytest.raises(TypeRefused):
            TypeBook().schema(kind, "x")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later Pythons tell enough of typing.TypedDict")
def test_a_typed_dict_that_python_tells_too_little_of_is_refused() -> None:
    with pytest.raises(TypeRefused, match="too little") as caught:
        TypeBook().schema(typing.TypedDict("Plain", {"name": str}), "x")
    assert caught.value.instead == "use typing_extensions.TypedDict"


class Unfinished(BaseModel):
    later: "Later"  # noqa: F821 - a name that nobody defines


@dataclasses.dataclass
class UnfinishedToo:
    later: "Later"  # noqa: F821 - a name that nobody defines


@dataclasses.dataclass
class Hidden:
    name: str = dataclasses.field(init=False)


@dataclasses.dataclass
class GenericPair(Generic[T]):
    left: T


class Endless(Enum): ...


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Unfinished, "cannot be resolved"),
        (UnfinishedToo, "cannot be resolved"),
        (Hidden, "cannot be given"),
        (GenericPair[int], "generic"),
        (Endless, "no value"),
        (Annotated[int, Field(ge=Decimal(1))], "not a number"),
        (type("Text", (bytes,), {}), "bytes"),
    ],
)
def test_records_that_do_not_show_their_json_are_refused(annotation: Any, reason: str) -> None:
    with pytest.raises(TypeRefused, match=reason):
        TypeBook().schema(annotation, "x")
