"""Names have one grammar; errors have one closed set of codes."""

from __future__ import annotations

import pytest

from orbit_sdk import errors
from orbit_sdk.errors import Code, Detail, InvalidArgument, OrbitError, error_of
from orbit_sdk.values import names


@pytest.mark.parametrize("text", ["a", "a1_b", "a" * 63])
def test_step_keys_are_single_words(text: str) -> None:
    assert names.is_step_key(text)


@pytest.mark.parametrize("text", ["", "A", "1a", "a.b", "a-b", "ä", "a" * 64, "input", "instance", "a\n"])
def test_other_texts_are_no_step_keys(text: str) -> None:
    assert not names.is_step_key(text)


def test_names_join_words_with_dots_up_to_128_characters() -> None:
    longest = ".".join(["a" * 63, "b" * 63, "c"])[:128]
    assert names.is_name("orders.approve")
    assert not names.is_name("orders..approve")
    assert not names.is_name("orders.")
    assert not names.is_name(".".join(["a" * 63] * 3))
    assert len(longest) == 128
    assert not names.is_name(longest)  # it ends with a dot


def test_handler_keys_carry_a_name_and_a_version() -> None:
    assert names.split_handler_key("job.submit@12") == ("job.submit", 12)
    assert names.handler_key("job.submit", 12) == "job.submit@12"
    for text in (
        "job.submit",
        "job.submit@0",
        "job.submit@01",
        "Job@1",
        "@1",
        ".".join(["a" * 63] * 3) + "@1",
    ):
        with pytest.raises(ValueError, match="not a handler key"):
            names.split_handler_key(text)


def test_queues_and_error_codes_have_their_own_grammar() -> None:
    assert names.is_queue_name("gpu-large.eu_1")
    assert not names.is_queue_name("Gpu")
    assert names.is_error_code("NO_FUNDS")
    assert not names.is_error_code("no_funds")


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_its_own_class(code: Code) -> None:
    error = error_of(code, "message", [Detail("a", "b")], retry_after_ms=5)
    assert type(error) is not OrbitError
    assert (error.code, error.message, error.retry_after_ms) == (code, "message", 5)
    assert error.details == (Detail("a", "b"),)


def test_every_public_error_is_of_the_family() -> None:
    kinds = [value for name in errors.__all__ if isinstance(value := getattr(errors, name), type)]
    assert {kind.code for kind in kinds if issubclass(kind, OrbitError)} == set(Code)


def test_an_error_shows_its_details() -> None:
    error = InvalidArgument.at("a.b", "is wrong")
    assert str(error) == "a.b is wrong\n  a.b: is wrong"
    assert (
        repr(error)
        == "InvalidArgument(INVALID_ARGUMENT, 'a.b is wrong', [Detail(field='a.b', reason='is wrong')])"
    )
    assert OrbitError("odd", code=Code.GONE).code is Code.GONE
