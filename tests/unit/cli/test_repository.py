"""The command line in a repository: configuration, ignores, formats, committed definitions, figures."""

from __future__ import annotations

import json
import linecache
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import yaml

from orbit_sdk.cli.config import find_config
from tests.unit.cli import apps
from tests.unit.cli.apps import CHANGED, COUNT, MISSPELT, PAYMENT

Run = Callable[..., Any]
ROOT = Path(__file__).parents[3]

UNEVEN = """\
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel

import orbit_sdk as orbit


class Status(BaseModel):
    state: Literal["RUN", "OK"]


@orbit.handler("job.status", version=1, queue="jobs", recovery=orbit.Recovery.READ_ONLY)
def status(ctx: orbit.TaskContext, number: str) -> Status: ...


@orbit.workflow("jobs.polled", version=1)
def polled(number: str) -> str:{head}
    final = orbit.poll({line}
        lambda: status(number),
        every=timedelta(seconds=30),
        within=timedelta(hours=1),
        max_rounds=5,
        state=lambda found: found.state,
        pending={{"RUN"}},
        succeeded={{"OK"}},
    )
    return final.state
"""


def write(folder: Path, **texts: str) -> None:
    """Modules as they are now, for commands of one process that import them again and again."""
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    linecache.clearcache()
    for name in texts:
        sys.modules.pop(name, None)
    apps.write(folder, **texts)


def polled(folder: Path, *, head: str = "", line: str = "") -> None:
    write(folder, app=UNEVEN.format(head=head, line=line))


def configure(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.orbit]\n{text}\n", encoding="utf-8")


def codes(result: Any) -> list[str]:
    found = json.loads(result.stdout)["workflows"]
    return [each["code"] for workflow in found for each in workflow["findings"]]


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path, orbit: Run) -> Path:
    """A repository with one workflow whose compiled form is committed."""
    write(folder, shop=PAYMENT)
    configure(folder, 'paths = ["shop.py"]\noutput = "definitions"\nbudget = "budget.json"')
    assert orbit("compile", "--all").exit_code == 0
    assert orbit("budget", "--output", "budget.json").exit_code == 0
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


# Configuration


def test_the_configuration_names_what_is_looked_at(orbit: Run, folder: Path) -> None:
    write(folder, shop=PAYMENT)
    assert orbit("check").exit_code == 2
    configure(folder, 'paths = ["shop.py"]')
    result = orbit("check")
    assert result.exit_code == 0
    assert "orders.payment version 1" in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("path = []", "tool.orbit.path must be one of"),
        ("paths = 1", "tool.orbit.paths must be a list"),
        ("output = 1", "tool.orbit.output must be a path"),
        ('severities = {A = "loud"}', "tool.orbit.severities must be codes with one of"),
        ("= 1", "cannot be read"),
    ],
)
def test_a_wrong_configuration_is_wrong_use(orbit: Run, folder: Path, text: str, said: str) -> None:
    write(folder, shop=PAYMENT)
    configure(folder, text)
    result = orbit("check", "shop.py")
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())


def test_severities_raise_a_warning_or_put_it_out(orbit: Run, folder: Path) -> None:
    polled(folder)
    assert orbit("check", "app.py").exit_code == 0
    configure(folder, 'severities = {POLL_ROUNDS_UNEVEN = "error"}')
    result = orbit("check", "app.py", "--json")
    assert result.exit_code == 1
    assert codes(result) == ["POLL_ROUNDS_UNEVEN"]
    configure(folder, 'severities = {POLL_ROUNDS_UNEVEN = "off"}')
    assert codes(orbit("check", "app.py", "--json")) == []


# Ignores


@pytest.mark.parametrize("at", ["head", "line"])
def test_an_ignore_with_a_reason_accepts_a_warning(orbit: Run, folder: Path, at: str) -> None:
    polled(folder, **{at: "  # orbit: ignore[POLL_ROUNDS_UNEVEN] five rounds are enough here"})
    assert codes(orbit("check", "app.py", "--json")) == []


def test_an_ignore_without_a_reason_or_use_is_a_warning_itself(orbit: Run, folder: Path) -> None:
    polled(folder, line="  # orbit: ignore[POLL_ROUNDS_UNEVEN]")
    assert codes(orbit("check", "app.py", "--json")) == ["IGNORE_REASONLESS"]
    polled(folder, line="  # orbit: ignore[POLL_ROUNDS_UNEVEN, CASE_DEAD] some reason")
    assert codes(orbit("check", "app.py", "--json")) == ["IGNORE_UNUSED"]
    polled(folder, line="  # orbit: ignore some reason")
    assert codes(orbit("check", "app.py", "--json")) == ["POLL_ROUNDS_UNEVEN", "IGNORE_UNUSED"]


def test_what_an_ignore_in_a_module_lacks_is_told_with_its_own_workflow(orbit: Run, folder: Path) -> None:
    other = UNEVEN.format(head="", line="  # orbit: ignore[POLL_ROUNDS_UNEVEN] five rounds are enough here")
    write(
        folder,
        app=other.replace("jobs.polled", "jobs.first"),
        later=UNEVEN.format(head="", line="  # orbit: ignore[POLL_ROUNDS_UNEVEN]"),
    )
    told = json.loads(orbit("check", "app.py", "later", "--json").stdout)["workflows"]
    found = {each["id"]: [one["code"] for one in each["findings"]] for each in told}
    assert found == {"jobs.first": [], "jobs.polled": ["IGNORE_REASONLESS"]}


def test_an_error_cannot_be_ignored(orbit: Run, folder: Path) -> None:
    write(
        folder, app=MISSPELT.replace("Order) -> Payment:", "Order) -> Payment:  # orbit: ignore[NO_FIELD] x")
    )
    result = orbit("check", "app.py", "--json")
    assert result.exit_code == 1
    assert codes(result) == ["NO_FIELD", "IGNORE_UNUSED"]


# Formats

TEXT = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {"text": {"type": "string"}},
}
PLACE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "message": TEXT,
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[^\s\\]+$"}},
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {
                        "startLine": {"type": "integer", "minimum": 1},
                        "startColumn": {"type": "integer", "minimum": 1},
                    },
                },
            },
        },
        "logicalLocations": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"fullyQualifiedName": {"type": "string"}, "kind": {"enum": ["member"]}},
            },
        },
    },
}
LEVEL = {"enum": ["error", "warning"]}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "help": TEXT,
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "additionalProperties": False,
                                                    "properties": {"level": LEVEL},
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "ruleIndex", "level"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": TEXT,
                                "locations": {"type": "array", "items": PLACE},
                                "relatedLocations": {"type": "array", "uniqueItems": True, "items": PLACE},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The part of the SARIF 2.1.0 schema that is used, closed where that schema is closed."""


def test_sarif_names_rules_places_and_what_is_related(orbit: Run, folder: Path) -> None:
    write(folder, bad=MISSPELT, late=TWICE_WAITED)
    (folder / "odd.json").write_text('{"schema_version": 1}', encoding="utf-8")
    result = orbit("check", "bad.py", "late.py", "odd.json", "--format", "sarif")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for found in run["results"]:
        assert rules[found["ruleIndex"]] == found["ruleId"]
    by_rule = {found["ruleId"]: found for found in run["results"]}
    place = by_rule["NO_FIELD"]["locations"][0]["physicalLocation"]
    line = MISSPELT.splitlines()[place["region"]["startLine"] - 1]
    assert place["artifactLocation"]["uri"] == "bad.py"
    assert "grated" in line[place["region"]["startColumn"] - 1 :]
    assert by_rule["SIGNAL_REUSED"]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 13
    assert by_rule["FORM_INVALID"]["locations"][0]["logicalLocations"]


TWICE_WAITED = """\
from datetime import timedelta

from pydantic import BaseModel

import orbit_sdk as orbit

OK = orbit.Signal("late.ok", bool)


@orbit.workflow("late.twice", version=1)
def twice(number: str) -> bool:
    day = timedelta(days=1)
    first = OK.wait(match=number, timeout=day, on_timeout="FAIL")
    second = OK.wait(match=number, timeout=day, on_timeout="FAIL")
    return second
"""


def test_text_shows_related_places_with_their_source_too(orbit: Run, folder: Path) -> None:
    write(folder, late=TWICE_WAITED)
    shown = orbit("check", "late.py").output
    assert "error[SIGNAL_REUSED]" in shown
    assert "--> late.py:14:" in shown
    assert "::: late.py:13:" in shown
    assert shown.count("OK.wait(match=number") == 2


def test_github_shows_annotations_with_their_lines(orbit: Run, folder: Path) -> None:
    write(folder, bad=MISSPELT)
    result = orbit("check", "bad.py", "--format", "github")
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith("::error file=bad.py,line=")
    assert ",title=NO_FIELD::" in line
    assert "%0A" in line


def test_an_exception_in_the_authors_code_is_shown_as_theirs(orbit: Run, folder: Path) -> None:
    write(
        folder,
        app=COUNT + "\n\n@orbit.workflow('x.y', version=1)\ndef flow(a: str) -> str:\n    return {}[1]\n",
    )
    shown = orbit("check", "app.py").output
    assert "x.y raised KeyError: 1" in shown
    assert "return {}[1]" in shown


# Explanations


def test_explain_shows_every_setting_and_where_it_comes_from(orbit: Run, folder: Path) -> None:
    write(folder, shop=PAYMENT)
    polled(folder)
    settings = json.loads(orbit("check", "shop.py", "--explain", "pay", "--json").stdout)
    found = {
        each["name"]: (each["value"], each["origin"]) for each in settings["workflows"]["orders.payment"]
    }
    assert found["retry.attempts"] == ("5", "default")
    assert found["on_failure"] == ("FAIL", "on_failure of the workflow")
    assert found["queue"] == ("payments", "the handler")
    shown = orbit("check", "app.py", "--explain", "status").output
    assert "max_rounds" in shown
    assert "default of polls" in shown
    result = orbit("check", "shop.py", "--explain", "pays")
    assert result.exit_code == 2
    assert "Did you mean 'pay'?" in result.output


# Committed definitions


def test_committed_files_are_checked_and_never_written(orbit: Run, repository: Path) -> None:
    assert orbit("compile", "--all", "--check").exit_code == 0
    write(repository, shop=CHANGED)
    result = orbit("compile", "--all", "--check", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["stale"] == ["definitions/orders.payment.v1.json"]
    assert '"timeout_ms": 172800000' in (repository / "definitions/orders.payment.v1.json").read_text("utf-8")
    (repository / "definitions/orders.payment.v1.json").unlink()
    assert "is missing" in orbit("compile", "--all", "--check").output


def test_content_that_changed_under_its_version_names_the_next_number(orbit: Run, repository: Path) -> None:
    assert orbit("check", "--against", "git:HEAD").exit_code == 0
    write(repository, shop=CHANGED)
    for against in ("git:HEAD", "definitions", "definitions/orders.payment.v1.json"):
        result = orbit("check", "--against", against)
        assert result.exit_code == 1
        assert "error[VERSION_TAKEN]" in result.output
        assert "Give the changed definition version 2." in result.output
        assert "--> shop.py:" in result.output
    write(repository, shop=CHANGED.replace("version=1, on_failure", "version=2, on_failure"))
    assert orbit("check", "--against", "git:main").exit_code == 0


def test_only_what_changed_is_shown_when_asked(orbit: Run, repository: Path) -> None:
    result = orbit("check", "--changed")
    assert result.exit_code == 0
    assert "0 workflows" in result.output
    write(repository, shop=CHANGED)
    write(repository, text=COUNT)
    configure(repository, 'paths = ["shop.py", "text.py"]\noutput = "definitions"')
    shown = json.loads(orbit("check", "--changed", "--json").stdout)["workflows"]
    assert [each["id"] for each in shown] == ["orders.payment", "texts.length"]


def test_code_of_another_revision_never_runs(orbit: Run, repository: Path) -> None:
    write(repository, shop="raise SystemExit('it ran')")
    git(repository, "commit", "-qam", "poison")
    write(repository, shop=PAYMENT)
    assert orbit("check", "--against", "git:HEAD").exit_code == 0


@pytest.mark.parametrize(
    ("against", "said"),
    [
        ("git:nothing", "git ls-tree:"),
        ("git:", "is no revision"),
        ("git:--all", "is no revision"),
        ("nowhere.json", "there is no nowhere.json"),
        ("damaged.json", "is no definition that can be compared with"),
    ],
)
def test_what_cannot_be_compared_with_is_said(orbit: Run, repository: Path, against: str, said: str) -> None:
    (repository / "damaged.json").write_text('{"schema_version": 1, "nodes": {}}', encoding="utf-8")
    result = orbit("check", "--against", against)
    assert result.exit_code == 2
    assert said in result.output


def test_diff_tells_who_is_affected(orbit: Run, repository: Path) -> None:
    assert "0 changed or new, 1 as before" in orbit("diff").output
    assert orbit("diff", "--format", "markdown").stdout == "No workflow changed.\n"
    write(repository, shop=CHANGED.replace("version=1, on_failure", "version=2, on_failure"), text=COUNT)
    configure(repository, 'paths = ["shop.py", "text.py"]\noutput = "definitions"')
    (changed, new) = json.loads(orbit("diff", "--json").stdout)["items"]
    assert (changed["before"], changed["after"], changed["verdict"]) == (1, 2, "SAFE")
    assert (new["before"], new["changes"]) == (None, [])
    table = orbit("diff", "--format", "markdown").stdout
    assert "`orders.payment@1→2`" in table
    assert "signal senders" in table
    assert "(new)" in table
    assert "signal senders" in orbit("diff").stdout


def test_diff_fails_from_the_verdict_that_was_asked_for(orbit: Run, repository: Path) -> None:
    write(repository, shop=PAYMENT.replace("    amount: int\n", "    amount: int\n    currency: str\n", 1))
    assert orbit("diff").exit_code == 0
    assert orbit("diff", "--fail-on", "careful").exit_code == 1
    assert orbit("diff", "--fail-on", "breaking").exit_code == 1
    write(repository, shop=CHANGED)
    assert orbit("diff", "--fail-on", "careful").exit_code == 0


def test_a_budget_that_grew_is_refused(orbit: Run, repository: Path) -> None:
    result = orbit("budget")
    assert result.exit_code == 0
    assert "order.pay@1" in result.output
    write(repository, shop=CHANGED)
    result = orbit("budget", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert {each["code"] for each in found["findings"]} == {"BUDGET_GREW"}
    assert found["items"][0]["human_wait_ms"] == 3 * 86_400_000
    assert "grew from 2 d to 3 d" in orbit("budget", "--against", "budget.json").output
    assert orbit("budget", "--against", "none.json").exit_code == 1


def test_targets_and_all_are_not_given_together(orbit: Run, repository: Path) -> None:
    assert orbit("compile", "--all", "shop.py").exit_code == 2
    configure(repository, 'paths = ["shop.py"]')
    assert orbit("compile", "--all").exit_code == 2
    assert orbit("compile", "--all", "--output", "elsewhere").exit_code == 0


def test_a_configuration_is_found_from_a_folder_below(
    orbit: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = repository / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text("[tool.other]", encoding="utf-8")
    monkeypatch.chdir(below)
    assert "orders.payment version 1" in orbit("check").output


def test_without_an_output_folder_the_whole_revision_is_searched(orbit: Run, repository: Path) -> None:
    (repository / "odd.json").write_text('{"schema_version": 1, "nodes": {}}', encoding="utf-8")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "odd")
    configure(repository, 'paths = ["shop.py"]')
    write(repository, shop=CHANGED)
    assert "error[VERSION_TAKEN]" in orbit("check", "--against", "git:HEAD").output


def test_what_does_not_compile_is_told_although_only_changes_are_asked_for(
    orbit: Run, repository: Path
) -> None:
    write(repository, shop=MISSPELT)
    result = orbit("check", "--changed", "--against", "git:HEAD")
    assert result.exit_code == 1
    assert "error[NO_FIELD]" in result.output


# Pictures


def test_a_workflow_becomes_a_picture(orbit: Run, folder: Path) -> None:
    write(folder, shop=PAYMENT)
    assert ET.fromstring(orbit("graph", "shop.py").stdout).tag.endswith("svg")
    assert orbit("graph", "shop.py", "--format", "mermaid").stdout.startswith("flowchart TD")
    assert orbit("graph", "shop.py", "--output", "flow.svg").exit_code == 0
    assert orbit("graph", "shop.py", "--output", "pictures", "--json").exit_code == 0
    assert (folder / "pictures" / "orders.payment.v1.svg").read_text("utf-8") == (
        folder / "flow.svg"
    ).read_text("utf-8")


def test_a_picture_shows_an_instance_from_a_file(orbit: Run, folder: Path) -> None:
    write(folder, shop=PAYMENT)
    shown = {"steps": [{"key": "pay", "state": "NEEDS_REVIEW"}]}
    (folder / "now.json").write_text(json.dumps(shown), encoding="utf-8")
    assert "is-ask" in orbit("graph", "shop.py", "--state", "now.json").stdout
    (folder / "odd.json").write_text("{}", encoding="utf-8")
    assert orbit("graph", "shop.py", "--state", "odd.json").exit_code == 1
    assert orbit("graph", "shop.py", "--state", "now.json", "--format", "mermaid").exit_code == 2
    write(folder, text=COUNT)
    assert orbit("graph", "shop.py", "text.py").exit_code == 2
    items = json.loads(orbit("graph", "shop.py", "text.py", "--json").stdout)["items"]
    assert [each["name"] for each in items] == ["orders.payment.v1", "texts.length.v2"]


# Hooks and documentation

CI_PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text("utf-8")
OWN = re.findall(r"^### ([A-Z_]+)\n.+?```\{code-block\} python\n(.+?)```", CI_PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("code", "example"), OWN, ids=[code for code, _ in OWN])
def test_the_example_of_a_code_of_the_command_gives_it(
    orbit: Run, folder: Path, code: str, example: str
) -> None:
    write(folder, app=example)
    assert codes(orbit("check", "app.py", "--json")) == [code]


def test_the_page_names_every_code_of_the_command() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "orbit_sdk" / "cli").glob("*.py"))
    named = set(re.findall(r'Finding\("([A-Z_]+)"|code="([A-Z_]+)"', sources))
    assert {code for pair in named for code in pair if code} == {code for code, _ in OWN}


def test_the_documented_configuration_and_pipelines_can_be_read(orbit: Run, folder: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text("utf-8")
    (text,) = re.findall(r"```toml\n(.+?)```", page, re.DOTALL)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    (folder / "services").mkdir()
    config = find_config()
    assert config.paths == ("services", "shared/workflows.py")
    assert config.output == Path("definitions")
    assert config.severities == {"CASE_DEAD": "error", "POLL_ROUNDS_UNEVEN": "off"}
    pipeline, hooks = (yaml.safe_load(each) for each in re.findall(r"```yaml\n(.+?)```", page, re.DOTALL))
    steps = [step["run"] for step in pipeline["jobs"]["check"]["steps"] if "run" in step]
    used = [step.split(" > ")[0] for step in steps if step.startswith("orbit ")]
    used += [hook["entry"] for hook in hooks["repos"][0]["hooks"]]
    for command in used:
        _, name, *options = command.split()
        shown = orbit(name, "--help").output
        assert all(option in shown for option in options if option.startswith("--"))


def test_the_hooks_run_commands_that_exist(orbit: Run) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [hook["id"] for hook in hooks] == ["orbit-check", "orbit-compile"]
    for hook in hooks:
        _, command, *options = hook["entry"].split()
        shown = orbit(command, "--help").output
        assert all(option in shown for option in options)
