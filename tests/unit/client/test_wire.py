"""From calls to bytes, and from bytes to values and errors."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest

from orbit_sdk.client.wire import Call, Patience, answer_of, check_address, new_key
from orbit_sdk.errors import Code, InvalidArgument, OrbitError, Unavailable, error_of


def envelope(**parts: object) -> bytes:
    return json.dumps({"request_id": "0" * 32, **parts}).encode()


def test_the_data_of_a_success_is_the_answer() -> None:
    assert answer_of(200, envelope(data={"a": [1]}), None) == {"a": [1]}
    assert answer_of(201, envelope(data=None), None) is None


@pytest.mark.parametrize("code", list(Code))
def test_every_code_comes_back_as_its_own_error(code: Code) -> None:
    error = {"code": code.value, "message": "why", "details": [{"field": "f", "reason": "r"}]}
    with pytest.raises(OrbitError) as caught:
        answer_of(400, envelope(error=error), None)
    assert type(caught.value) is type(error_of(code, ""))
    assert caught.value.message == "why"
    assert [(item.field, item.reason) for item in caught.value.details] == [("f", "r")]


def test_a_code_that_is_not_known_yet_is_internal() -> None:
    with pytest.raises(OrbitError) as caught:
        answer_of(418, envelope(error={"code": "TEAPOT", "message": "short", "details": [1]}), None)
    assert caught.value.code is Code.INTERNAL


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b"null", b"{}", b'{"error": 5}', b"\xff\xfe", b'{"data": 1']
)
def test_what_is_no_answer_of_orbit_is_unavailable(content: bytes) -> None:
    with pytest.raises(Unavailable):
        answer_of(502, content, None)


def test_data_beside_a_failing_status_is_not_believed() -> None:
    with pytest.raises(Unavailable):
        answer_of(500, envelope(data=1), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2", 2_000), ("0", 0), ("soon", None), (formatdate(0, usegmt=True), 0), (None, None), ("-1", None)],
)
def test_retry_after_is_read_in_both_forms(text: str | None, expected: int | None) -> None:
    error = {"code": "RESOURCE_EXHAUSTED", "message": "m"}
    with pytest.raises(OrbitError) as caught:
        answer_of(429, envelope(error=error), text)
    assert caught.value.retry_after_ms == expected


def test_a_call_shows_its_token_and_key_and_leaves_out_what_is_absent() -> None:
    call = Call("POST", "/x", params={"a": None, "b": True, "c": 3}, body={"b": 1, "a": "é"}, key="k")
    headers = call.headers("t")
    assert headers["authorization"] == "Bearer t"
    assert headers["idempotency-key"] == "k"
    assert call.query() == {"b": "true", "c": "3"}
    assert call.content() == '{"a":"é","b":1}'.encode()
    bare = Call("GET", "/x")
    assert bare.content() is None
    assert "content-type" not in bare.headers("t")


def test_fresh_keys_differ() -> None:
    assert len({new_key() for _ in range(100)}) == 100


def test_patience_waits_longer_and_longer_and_ends() -> None:
    patience = Patience(time.monotonic() + 1_000, 0.1, 0.4)
    pauses = [patience.pause() for _ in range(20)]
    assert all(pause is not None and 0 <= pause <= 0.4 for pause in pauses)
    assert patience.pause(asked_ms=2_000_000) is None
    assert Patience(time.monotonic() - 1, 0.1, 0.4).pause() is None


def test_patience_with_what_may_never_help_is_short() -> None:
    patience = Patience(time.monotonic() + 1_000, 0.001, 0.001)
    tries = 0
    while patience.pause(doubtful=True) is not None:
        tries += 1
    assert tries == 3


@pytest.mark.parametrize("url", ["", "127.0.0.1:7400", "ftp://x", "http://", "://x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="url"):
        check_address(url, "orbit_x")


@pytest.mark.parametrize("token", ["a b", "a\nb", "é", "a\x00"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgument, match="token"):
        check_address("http://x", token)
