"""From what a worker says to a report that can be decided on."""

from __future__ import annotations

import orjson
import pytest

from orbit_sdk.errors import InvalidArgument
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told, report_of


def test_a_result_is_kept_in_its_canonical_form() -> None:
    report = report_of(Told(Said.SUCCEEDED, {"b": 1.0, "a": 2}))
    assert report.result == '{"a":2,"b":1}'
    assert report.digest == report_of(Told(Said.SUCCEEDED, {"a": 2, "b": 1})).digest
    assert report.error is None


def test_a_result_above_the_limit_happened_all_the_same() -> None:
    report = report_of(Told(Said.SUCCEEDED, "x" * 9_000), result_bytes=8_000)
    assert (report.said, report.code) == (Said.INVALID_RESULT, "RESULT_TOO_LARGE")
    assert orjson.loads(report.result or "")["bytes"] == 9_002
    assert report_of(Told(Said.SUCCEEDED, "x" * 7_998), result_bytes=8_000).said is Said.SUCCEEDED


def test_an_ill_typed_result_keeps_its_value_where_it_is_short() -> None:
    report = report_of(Told(Said.INVALID_RESULT, {"n": "seven"}, code="ILL_TYPED", message="n: not a number"))
    assert report.result == '{"n":"seven"}'
    assert report.error == '{"code":"ILL_TYPED","message":"n: not a number"}'


def test_an_error_carries_code_message_and_details() -> None:
    report = report_of(Told(Said.FINAL, code="NO_FUNDS", message="short", details={"by": 3}))
    assert report.error == '{"code":"NO_FUNDS","details":{"by":3},"message":"short"}'
    assert report.code == "NO_FUNDS"
    bare = report_of(Told(Said.EXCEPTION))
    assert bare.error == '{"code":"EXCEPTION","message":""}'
    assert bare.digest != report.digest


def test_what_json_cannot_carry_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        report_of(Told(Said.SUCCEEDED, float("nan")))
