"""The `orbit` command itself: help, exit codes, JSON, and how quickly it is there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text
from typer.main import get_command

from orbit_sdk.cli.app import COMMANDS, ENTRY_POINTS, app, plugins
from orbit_sdk.cli.output import ExitCode, Output, styled
from orbit_sdk.cli.profile import Profile, write_profile
from orbit_sdk.errors import Conflict, Detail, Unavailable
from tests.unit.cli.apps import PAYMENT, write

Run = Callable[..., Any]
GROUPS = {
    "task": ("submit", "show", "list", "cancel", "resolve"),
    "review": ("list", "show", "resolve"),
    "definition": ("list", "drafts", "current", "retire"),
    "bulk": ("plan", "show", "items", "apply", "stop", "list"),
    "schedule": (
        *("preview", "create", "edit", "list", "show", "fires", "records"),
        *("pause", "resume", "trigger", "backfill"),
    ),
    "subscription": ("create", "list", "show", "tail", "end"),
    "wait": ("list", "answer"),
    "queue": ("list", "show", "pause", "resume", "limit", "keys", "weight"),
    "worker": ("run", "list", "block", "unblock"),
}


def every_command() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name in (*COMMANDS, "server", "migrate"):
        found += [(name, inner) for inner in GROUPS[name]] if name in GROUPS else [(name,)]
    return [*found, *[("credential", inner) for inner in ("create", "list", "revoke")]]


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_has_help_with_examples_and_json(orbit: Run, words: tuple[str, ...]) -> None:
    result = orbit(*words, "--help")
    assert result.exit_code == 0, result.output
    assert "--json" in result.output
    assert "Examples:" in result.output
    assert f"orbit {' '.join(words)}" in result.output


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_no_help_text_loses_a_word_in_brackets(words: tuple[str, ...]) -> None:
    """Square brackets are markup where help is shown: what stands in them would vanish."""
    command: Any = get_command(app)
    with typer.Context(command, info_name="orbit") as ctx:
        command = command.get_command(ctx, words[0])
    for word in words[1:]:
        command = command.commands[word]
    for help_ in (command.help, *(each.help for each in command.params)):
        text = (help_ or "").replace("\b", "")
        assert Text.from_markup(text).plain == text


def test_help_lists_every_command(orbit: Run) -> None:
    shown = orbit("--help").output
    for name in (*COMMANDS, "server", "migrate", "credential"):
        assert f" {name} " in shown


def test_the_servers_commands_join_as_entry_points() -> None:
    assert {"server", "migrate", "credential"} <= plugins().keys()


def test_without_arguments_it_shows_the_next_thing_to_do(orbit: Run, folder: Path) -> None:
    assert "orbit dev app.py" in orbit().output
    write(folder, shop=PAYMENT)
    assert "orbit check shop.py" in orbit().output
    (folder / ".orbit").mkdir()
    write_profile(folder / ".orbit", Profile("http://127.0.0.1:7400", "orbit_x"))
    shown = orbit().output
    assert "http://127.0.0.1:7400" in shown
    assert "orbit_x" not in shown
    assert "orbit dev shop.py" in shown


def test_the_version_is_said(orbit: Run) -> None:
    assert orbit("--version").output.startswith("orbit 0.")


def test_an_unknown_command_or_option_is_wrong_use(orbit: Run) -> None:
    assert orbit("publsh").exit_code == 2
    assert orbit("check", "--nonsense", "x").exit_code == 2
    assert orbit("start").exit_code == 2


def test_no_server_known_is_wrong_use_that_says_the_ways(orbit: Run) -> None:
    result = orbit("list")
    assert result.exit_code == 2
    assert "orbit dev" in result.output
    assert "ORBIT_URL" in result.output
    said = json.loads(orbit("list", "--json").output)
    assert said["error"]["code"] == "INVALID_ARGUMENT"


def test_nobody_at_the_address_has_its_own_exit_code(orbit: Run, folder: Path) -> None:
    (folder / ".orbit").mkdir()
    write_profile(folder / ".orbit", Profile("http://127.0.0.1:9", "orbit_x"))
    result = orbit("list")
    assert result.exit_code == 3
    assert "is `orbit dev` running in" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("start", "orders.payment", "--input", "not json"),
        ("start", "orders.payment", "--input", "@missing.json"),
        ("start", "orders.payment@zero"),
        ("start", "orders.payment", "--label", "nothing"),
        ("show", "not-an-id"),
        ("task", "submit", "order.pay", "--queue", "q"),
        ("task", "submit", "order.pay@1", "--queue", "q", "--delay", "soon"),
        ("review", "resolve", "0" * 32, "pay", "perhaps", "--reason", "x"),
        ("review", "resolve", "0" * 32, "pay", "failed", "--reason", "x"),
        ("review", "resolve", "0" * 32, "pay", "failed", "--reason", "x", "--result", "1"),
        ("review", "resolve", "0" * 32, "pay", "succeeded", "--reason", "x", "--code", "X"),
        ("task", "resolve", "abc", "retry", "--reason", "x"),
        ("signal", "0" * 32, "order.approval", "{"),
        ("worker", "nowhere.py"),
        ("credential", "create", "--name", "x"),
        ("credential", "create", "--name", "x", "--for", "nobody"),
        ("server", "--database", "oracle://x"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_told_from_a_refusal(orbit: Run, arguments: tuple[str, ...]) -> None:
    where = ("--url", "http://127.0.0.1:9", "--token", "orbit_x")
    local = arguments[0] in ("credential", "server")
    result = orbit(*arguments, *(() if local else where))
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("publsh",), "command"),
        (("check", "--nonsense", "x"), "--nonsense"),
        (("start",), "DEFINITION"),
        (("cancel", "0" * 32), "--reason"),
        (("task", "subimt"), "command"),
        (("show", "not-an-id", "--url", "http://127.0.0.1:9", "--token", "orbit_x"), "command"),
        (("review", "resolve", "0" * 32, "pay", "failed", "--reason", "x"), "--evidence"),
        (("review", "resolve", "0" * 32, "pay", "perhaps", "--reason", "x"), "VERDICT"),
        (("server", "--database", "oracle://x"), "database"),
    ],
    ids=str,
)
def test_wrong_use_is_told_to_programs_in_json(orbit: Run, arguments: tuple[str, ...], field: str) -> None:
    result = orbit(*arguments, "--json")
    assert result.exit_code == 2, result.output
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["message"]
    assert [detail["field"] for detail in error["details"]] == [field]
    assert error["details"][0]["reason"]


def test_what_comes_after_the_options_asks_for_nothing(orbit: Run) -> None:
    assert "Usage" in orbit("check", "--nonsense", "--", "--json").output


def test_a_file_that_cannot_be_written_is_told_without_a_traceback(orbit: Run, folder: Path) -> None:
    write(folder, app=PAYMENT)
    (folder / "taken").write_text("a file, not a folder")
    result = orbit("compile", "app.py", "--output", "taken")
    assert result.exit_code == 1
    assert "taken" in result.output
    assert "Traceback" not in result.output
    (folder / ".orbit").write_text("")
    assert orbit("dev", "app.py", "--port", "0").exit_code == 1


def test_a_command_whose_package_is_incomplete_says_what_to_install(
    orbit: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("console", "orbit_absent:console", ENTRY_POINTS)
    monkeypatch.setattr("orbit_sdk.cli.app.plugins", lambda: {"console": entry})
    result = orbit("console")
    assert result.exit_code == 2
    assert "pip install 'orbit-sdk[server]'" in result.output
    assert "console" in orbit("--help").output


def test_errors_show_their_details_and_choose_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    error = Conflict("other content", [Detail("digest", "differs")])
    assert Output().error(error) is ExitCode.REFUSED
    assert "digest: differs" in capsys.readouterr().err
    assert Output(json=True).error(Unavailable("away")) is ExitCode.UNAVAILABLE
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "UNAVAILABLE"


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    terminal: Any = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert styled("x", "red", terminal) == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("x", "red", terminal) == "x"


def test_checking_loads_neither_a_client_nor_a_server(folder: Path) -> None:
    write(folder, app=PAYMENT)
    code = (
        "import sys; sys.argv = ['orbit', 'check', 'app.py']\n"
        "from orbit_sdk.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "slow = {'httpx', 'sqlalchemy', 'quart', 'websockets', 'jsonschema', 'rich'} & sys.modules.keys()\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
