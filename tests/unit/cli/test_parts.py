"""Profiles, addresses, values, findings and samples: what the commands are made of."""

from __future__ import annotations

import io
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from orbit_sdk.cli.changes import changed_paths
from orbit_sdk.cli.connection import address
from orbit_sdk.cli.dev.samples import sample
from orbit_sdk.cli.profile import Profile, find_profile, read_profile, write_profile
from orbit_sdk.cli.publish import few
from orbit_sdk.cli.sources import load
from orbit_sdk.cli.values import duration_ms, json_value, labels, versioned
from orbit_sdk.definition.validate_value import compile_validator
from orbit_sdk.errors import InvalidArgument
from tests.unit.cli.apps import PAYMENT, write


def profile_in(folder: Path, url: str = "http://127.0.0.1:7400") -> Profile:
    (folder / ".orbit").mkdir(exist_ok=True)
    profile = Profile(url, "orbit_secret", audit=True)
    write_profile(folder / ".orbit", profile)
    return profile


def test_a_profile_is_for_its_owner_only_and_reads_as_written(folder: Path) -> None:
    profile = profile_in(folder)
    assert read_profile(folder / ".orbit") == profile
    file = folder / ".orbit" / "profile.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in (folder / ".orbit").iterdir()] == ["profile.json"]


def test_a_profile_is_found_from_the_folder_upwards(folder: Path) -> None:
    profile = profile_in(folder)
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    assert find_profile(inner) == (profile, folder.resolve())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": "x"}', "null"])
def test_a_damaged_profile_is_no_profile(folder: Path, text: str) -> None:
    (folder / ".orbit").mkdir()
    (folder / ".orbit" / "profile.json").write_text(text)
    assert read_profile(folder / ".orbit") is None


def test_options_win_over_the_environment_and_that_over_the_profile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = profile_in(folder)
    assert address(None, None) == (profile.url, profile.token)
    monkeypatch.setenv("ORBIT_URL", "http://env")
    monkeypatch.setenv("ORBIT_TOKEN", "env-token")
    assert address(None, None) == ("http://env", "env-token")
    assert address("http://option", "token") == ("http://option", "token")


def test_a_profiles_token_is_never_shown_to_another_server(folder: Path) -> None:
    profile = profile_in(folder)
    with pytest.raises(InvalidArgument, match="no token is known"):
        address("http://elsewhere", None)
    assert address(profile.url + "/", None)[1] == profile.token
    assert address(None, "other-token") == (profile.url, "other-token")


def test_json_comes_from_the_line_a_file_or_standard_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "order.json").write_text('{"a": [1, 2.5]}')
    monkeypatch.setattr(sys, "stdin", io.StringIO('"text"'))
    assert json_value('{"a": null}', "--input") == {"a": None}
    assert json_value("@order.json", "--input") == {"a": [1, 2.5]}
    assert json_value("-", "--input") == "text"


@pytest.mark.parametrize("text", ["hello", '{"a": 1, "a": 2}', "NaN", "12345678901234567890", ""])
def test_json_is_read_strictly(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        json_value(text, "--input")


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("25s", 25_000), ("1.5h", 5_400_000), ("2m", 120_000), ("1d", 86_400_000)],
)
def test_durations_have_a_unit(text: str, ms: int) -> None:
    assert duration_ms(text, "--delay") == ms


@pytest.mark.parametrize("text", ["5", "s", "-5s", "5 weeks", ""])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration_ms(text, "--delay")


def test_labels_and_versions_are_split_once() -> None:
    assert labels(["a=b=c", "d="], "--label") == {"a": "b=c", "d": ""}
    assert versioned("order.pay@3", "handler") == ("order.pay", 3)
    assert versioned("order.pay", "handler") == ("order.pay", None)


def test_changed_paths_name_what_differs() -> None:
    before = {"nodes": {"a": {"x": 1, "y": [1, 2]}, "b": {}}, "id": "i"}
    after = {"nodes": {"a": {"x": 2, "y": [1, 3]}, "c": {}}, "id": "i"}
    assert changed_paths(before, after) == ["nodes.a.x", "nodes.a.y[1]", "nodes.b", "nodes.c"]
    assert changed_paths(before, before) == []
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "format": "date-time"},
        {"type": "integer", "minimum": 7},
        {"enum": ["x", "y"]},
        {"const": 5},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
        {},
    ],
)
def test_a_sample_fits_its_type(schema: dict[str, Any]) -> None:
    from pydantic import TypeAdapter

    from orbit_sdk.definition.value_types import TypeSchema

    parsed: Any = TypeAdapter(TypeSchema).validate_python(schema)
    assert list(compile_validator(parsed, {})(sample(schema, {}))) == []


def test_the_sample_of_a_workflow_is_an_input_that_it_takes(folder: Path) -> None:
    write(folder, app=PAYMENT)
    [source] = load(["app.py"]).sources
    assert source.definition is not None
    assert source.workflow is not None
    document = source.definition.to_json()
    source.workflow.parse_input(sample(document["input"], document["types"]))


def test_source_places_are_told_from_the_working_folder(folder: Path) -> None:
    write(folder, app=PAYMENT)
    [source] = load(["app.py"]).sources
    assert source.side is not None
    assert {place["file"] for place in source.side.values()} == {"app.py"}
