"""One handler per family of types: what another pydantic or another Python might describe differently."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar
from uuid import UUID

import pydantic
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType, TypedDict

import orbit_sdk as orbit

T = TypeVar("T")


class Color(StrEnum):
    """A docstring that must not reach the definition."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tail: float | None = None


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Names = TypeAliasType("Names", list[str])


class Tree(BaseModel):
    """Holds itself."""

    name: str = Field(description="not part of the meaning", examples=["oak"])
    branches: list["Tree"] = []


class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int = Field(ge=0)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", title="Another title")
    name: str


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


class Loose(TypedDict):
    name: str
    size: NotRequired[int]


@orbit.handler("zoo.plain", version=1)
def plain(ctx: orbit.TaskContext, a: str, b: int, c: float, d: bool, e: None, f: Any) -> None: ...


@orbit.handler("zoo.formats", version=1)
def formats(
    ctx: orbit.TaskContext,
    due: datetime,
    aware: pydantic.AwareDatetime,
    day: date,
    span: timedelta,
    price: Decimal,
    link: pydantic.HttpUrl,
    number: UUID,
) -> None: ...


@orbit.handler("zoo.choices", version=1)
def choices(
    ctx: orbit.TaskContext,
    color: Color,
    level: Level,
    word: Literal["a", "b"],
    one: Literal[1],
    either: int | str | None,
    default: Color = Color.RED,
) -> Color: ...


@orbit.handler("zoo.records", version=1)
def records(
    ctx: orbit.TaskContext,
    pet: Pet,
    tree: Tree,
    page: Page[Cat],
    free: Open,
    point: Point,
    loose: Loose,
    names: Names,
) -> Page[Tree] | None: ...


@orbit.handler("zoo.bounds", version=1)
def bounds(
    ctx: orbit.TaskContext,
    count: Annotated[int, Field(ge=1, le=10)],
    ratio: Annotated[float, Field(gt=0, lt=1)],
    name: Annotated[str, Field(min_length=1, max_length=9, pattern="^[a-z]+$")],
    many: Annotated[list[int], Field(min_length=1, max_length=3)],
    step: Annotated[int, Field(multiple_of=5)],
    secret: Annotated[str, orbit.Sensitive],
    phone: Annotated[str | None, orbit.Sensitive] = None,
) -> dict[str, list[int]]: ...


@orbit.handler("zoo.large", version=1)
def large(ctx: orbit.TaskContext, file: orbit.FileRef, key: orbit.SecretRef) -> orbit.FileRef: ...


@orbit.workflow("zoo.visit", version=1)
def visit(tree: Tree) -> Tree:
    plain("a", 1, 0.5, True, None, {"any": [1, "b", None]})
    choices(Color.BLUE, Level.HIGH, "a", 1, tree.name)
    bounds(1, 0.25, "abc", [1, 2], 10, tree.name)
    formats(
        datetime.fromisoformat("2026-01-02T03:04:05.060000+00:00"),
        datetime.fromisoformat("2026-01-02T03:04:05+02:00"),
        date(2026, 1, 2),
        timedelta(days=1, seconds=1, milliseconds=500),
        Decimal("1.50"),
        pydantic.HttpUrl("https://example.org/a?b=c"),
        UUID("0189f0a0-0000-7000-8000-000000000001"),
    )
    records(
        orbit.build(Cat, kind="cat"),
        orbit.build(Tree, name=tree.name),
        orbit.build(Page[Cat], items=[orbit.build(Cat, kind="cat", lives=3)], total=1),
        Open(name="free"),
        orbit.build(Point, 1.0, tags=[tree.name]),
        {"name": tree.name},
        ["a", tree.name],
    )
    return tree
