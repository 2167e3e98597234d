"""One arm per constant, and the words that people look for and Orbit does not have."""

# Some of what is written here is wrong on purpose.
# mypy: ignore-errors

import contextlib
from typing import Any

import pytest

import orbit_sdk as orbit
from orbit_sdk.builder.absent import ABSENT
from tests.unit.builder.shop import Color, Order, nodes, refused, work


def test_each_constant_has_its_own_arm() -> None:
    def body(order: Order) -> Any:
        found = orbit.parallel_each(
            ["north", "south", "west"],
            lambda region: work(orbit.text("{}-" + region, order.order_id)),
            on_arm_failure="LET_OTHERS_FINISH",
            title="Regions",
        )
        assert len(found) == 3
        return work(found[2].value)

    node = nodes(body)
    assert node["work_and_work_2_and_work_3"]["arms"].keys() == {"work", "work_2", "work_3"}
    assert node["work_and_work_2_and_work_3"]["title"] == "Regions"
    assert node["work_2"]["input"]["text"]["text"][1] == "-south"
    assert node["work_4"]["input"]["text"] == {"ref": "work_3", "path": ["value"]}


def test_each_takes_members_pairs_and_references() -> None:
    def body(order: Order) -> Any:
        orbit.parallel_each(Color, lambda color: work(color.value))
        orbit.parallel_each({"a": 1, "b": 2}.items(), lambda pair: work(pair[0], pair[1]), key="pairs")
        orbit.parallel_each([order.order_id, "x"], work, key="both")

    node = nodes(body)
    assert [node[f"work{n}"]["input"]["text"]["const"] for n in ("", "_2", "_3", "_4")] == [
        *("red", "blue"),
        *("a", "b"),
    ]
    assert node["work_5"]["input"]["text"] == {"ref": "input", "path": ["order_id"]}


def test_one_constant_makes_no_parallel() -> None:
    def body(order: Order) -> Any:
        (only,) = orbit.parallel_each(["a"], work)
        return only

    assert [one["kind"] for _key, one in sorted(nodes(body).items())] == ["END", "TASK"]


@pytest.mark.parametrize(
    ("code", "constants"),
    [("PARALLEL", []), ("PARALLEL", "ab"), ("PARALLEL", {"a", "b"}), ("PARALLEL", 3)],
)
def test_what_is_no_list_of_constants_is_refused(code: str, constants: Any) -> None:
    assert refused(lambda _: orbit.parallel_each(constants, work)).reason == code


def test_a_list_that_only_the_data_knows_is_refused_by_name() -> None:
    for body in (
        lambda order: orbit.parallel_each(order.tags, work),
        lambda order: [work(tag) for tag in order.tags],
    ):
        assert "start one workflow per item" in str(refused(body))


def test_other_options_and_arms_are_refused() -> None:
    assert refused(lambda _: orbit.parallel_each(["a", "b"], work("a"))).reason == "EAGER_ARM"
    assert refused(lambda _: orbit.parallel_each(["a", "b"], lambda _one: None)).reason == "EMPTY_ARM"
    error = refused(lambda _: orbit.parallel_each(["a"], work, keyy="a"))
    assert (error.reason, "Did you mean 'key'?" in error.problems[0].instead) == ("OPTION", True)


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_a_word_that_does_not_exist_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=f"there is no orbit.{name}: "):
        getattr(orbit, name)

    def swallowed(order: Order) -> Any:
        with contextlib.suppress(Exception):
            getattr(orbit, name)(lambda: work("a"))
        work("b")

    error = refused(swallowed)
    assert error.reason == "ABSENT"
    assert error.problems[0].instead
    assert error.place is not None
    assert error.place.file == __file__


def test_the_place_of_a_word_that_does_not_exist_is_where_it_is_used() -> None:
    def body(_: Order) -> Any:
        work("a")
        orbit.loop(lambda: work("b"))  # type: ignore[attr-defined]

    (problem,) = refused(body).problems
    assert problem.code == "ABSENT"
    assert problem.place is not None
    assert problem.place.line == body.__code__.co_firstlineno + 2


def test_other_names_are_unknown_as_everywhere() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        orbit.nothing  # noqa: B018 - what is tested
    assert not hasattr(orbit, "race")


@pytest.mark.parametrize("option", ["compete", "wait_for", "join"])
def test_a_parallel_has_no_other_join(option: str) -> None:
    error = refused(lambda _: orbit.parallel(lambda: work("a"), lambda: work("b"), **{option: True}))
    assert error.reason == "ABSENT"
    assert "first-wins and partial joins do not exist" in str(error)
    assert option in str(error)


def test_a_misspelt_option_of_a_parallel_is_named() -> None:
    error = refused(lambda _: orbit.parallel(lambda: work("a"), lambda: work("b"), titel="T"))
    assert error.reason == "OPTION"
    assert "did you mean title?" in str(error)
