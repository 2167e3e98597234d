"""Settings: what they refuse, and who wins."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.limits import DEFAULT_LIMITS, Limits
from orbit_server.settings import Settings, load_settings


def test_options_win_over_the_environment_and_that_over_defaults() -> None:
    environment = {"ORBIT_PORT": "1", "ORBIT_HOST": "::1", "ORBIT_BEHIND_PROXY": "yes", "ORBIT_TOKEN": "x"}
    settings = load_settings(environment, port=2, host=None)
    assert (settings.port, settings.host, settings.behind_proxy) == (2, "::1", True)
    assert settings.lease_ms == 30_000


def test_every_wrong_variable_is_named_at_once() -> None:
    environment = {"ORBIT_PORT": "many", "ORBIT_BEHIND_PROXY": "perhaps", "ORBIT_LIMIT_NODES": "-1"}
    with pytest.raises(InvalidArgument) as caught:
        load_settings(environment)
    assert {detail.field for detail in caught.value.details} == set(environment)


@pytest.mark.parametrize("name", [each.name for each in fields(Limits)])
def test_a_limit_may_only_be_lowered(name: str) -> None:
    most = getattr(DEFAULT_LIMITS, name)
    variable = f"ORBIT_LIMIT_{name.upper()}"
    assert getattr(load_settings({variable: "1"}).limits, name) == 1
    assert load_settings({variable: str(most)}).limits == DEFAULT_LIMITS
    for bad in (most + 1, 0):
        with pytest.raises(InvalidArgument) as caught:
            load_settings({variable: str(bad)})
        assert [detail.field for detail in caught.value.details] == [f"limits.{name}"]


def test_an_unknown_limit_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="ORBIT_LIMIT_MOONS names no limit"):
        load_settings({"ORBIT_LIMIT_MOONS": "1"})


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"port": 65_536}, "port"),
        ({"database": "postgres://x"}, "database"),
        ({"log_level": "LOUD"}, "log_level"),
        ({"certfile": __file__}, "certfile"),
        ({"certfile": "/no/such", "keyfile": __file__}, "certfile"),
        ({"session_silence_ms": 1_000, "heartbeat_ms": 1_000}, "session_silence_ms"),
        ({"stop_grace_ms": 40_000}, "stop_limit_ms"),
        ({"lease_ms": 1}, "lease_ms"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load_settings({}, **options)
    assert field in {detail.field for detail in caught.value.details}


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("orbit.example", False)],
)  # fmt: skip
def test_off_loopback_needs_tls_or_a_proxy(host: str, local: bool, tmp_path: Path) -> None:
    settings = Settings(host=host)
    assert settings.on_loopback == local
    if local:
        settings.check_transport()
    else:
        with pytest.raises(InvalidArgument, match="--behind-proxy"):
            settings.check_transport()
    Settings(host=host, behind_proxy=True).check_transport()
    file = tmp_path / "pem"
    file.write_text("x")
    Settings(host=host, certfile=str(file), keyfile=str(file)).check_transport()
