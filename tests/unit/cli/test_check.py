"""`orbit check` and `orbit compile`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.apps import CHANGED, COUNT, MISSPELT, PAYMENT, write

Run = Callable[..., Any]


def test_a_good_file_is_said_to_be_good(orbit: Run, folder: Path) -> None:
    write(folder, app=PAYMENT)
    result = orbit("check", "app.py")
    assert result.exit_code == 0, result.output
    assert "ok  orders.payment version 1" in result.output
    assert "1 workflow, 0 errors, 0 warnings" in result.output


def test_a_finding_shows_the_source_line_with_a_caret_and_the_way_out(orbit: Run, folder: Path) -> None:
    write(folder, app=MISSPELT)
    result = orbit("check", "app.py")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0].startswith("error[NO_FIELD]")
    source = next(number for number, line in enumerate(lines) if "approval.grated" in line and "|" in line)
    carets = lines[source + 1]
    assert lines[source][carets.index("^") : carets.rindex("^") + 1] == "approval.grated"
    assert f"app.py:{lines[source].split()[0]}" in result.output
    assert "did you mean granted?" in result.output
    assert "help:" in result.output
    assert "\x1b" not in result.output


def test_json_names_every_workflow_with_its_findings(orbit: Run, folder: Path) -> None:
    write(folder, good=COUNT, bad=MISSPELT)
    result = orbit("check", ".", "--json")
    found = json.loads(result.output)
    assert result.exit_code == 1
    assert found["ok"] is False
    by_id = {item["id"]: item for item in found["workflows"]}
    assert by_id["texts.length"]["ok"] is True
    [finding] = by_id["orders.payment"]["findings"]
    assert finding["code"] == "NO_FIELD"
    assert finding["file"].endswith("bad.py")
    assert finding["line"] > 1


def test_both_ways_to_ask_for_json_are_the_same(orbit: Run, folder: Path) -> None:
    write(folder, app=COUNT)
    assert orbit("check", "app.py", "--format", "json").output == orbit("check", "app.py", "--json").output


def test_a_folder_is_searched_and_only_files_with_workflows_are_imported(orbit: Run, folder: Path) -> None:
    inner = folder / "flows" / "deep"
    inner.mkdir(parents=True)
    write(inner, length=COUNT)
    write(folder / "flows", harmful="raise SystemExit('imported')")
    (folder / "flows" / ".hidden").mkdir()
    write(folder / "flows" / ".hidden", other=MISSPELT)
    result = orbit("check", "flows")
    assert result.exit_code == 0, result.output
    assert "texts.length version 2" in result.output


def test_a_module_is_checked_by_its_name_and_a_workflow_by_its_own(orbit: Run, folder: Path) -> None:
    write(folder, shop_app=PAYMENT + COUNT.replace("import orbit_sdk as orbit\n", ""))
    assert "2 workflows" in orbit("check", "shop_app").output
    assert "1 workflow," in orbit("check", "shop_app:length").output
    assert "has no nothing" in orbit("check", "shop_app:nothing").output


def test_a_file_in_a_package_is_imported_as_part_of_it(orbit: Run, folder: Path) -> None:
    package = folder / "shop_package"
    package.mkdir()
    (package / "__init__.py").touch()
    write(package, names="QUEUE = 'texts'", flows=COUNT.replace('queue="texts"', "queue=QUEUE"))
    text = (package / "flows.py").read_text()
    (package / "flows.py").write_text(f"from .names import QUEUE\n{text}")
    assert orbit("check", "shop_package/flows.py").exit_code == 0


def test_a_syntax_error_is_a_finding_with_its_place(orbit: Run, folder: Path) -> None:
    write(folder, app="import orbit_sdk\ndef broken(:\n")
    result = orbit("check", "app.py")
    assert result.exit_code == 1
    assert "error[SYNTAX]" in result.output
    assert "app.py:2" in result.output


def test_an_exception_at_import_is_a_finding_at_the_authors_line(orbit: Run, folder: Path) -> None:
    write(folder, app="import orbit_sdk\n\nvalue = 1 / 0\n")
    result = orbit("check", "app.py")
    assert result.exit_code == 1
    assert "ZeroDivisionError" in result.output
    assert "app.py:3" in result.output


def test_a_file_that_is_missing_is_a_finding(orbit: Run) -> None:
    result = orbit("check", "nowhere.py")
    assert result.exit_code == 1
    assert "there is no file" in result.output


def test_nothing_found_is_no_success(orbit: Run, folder: Path) -> None:
    write(folder, app="x = 1\n")
    result = orbit("check", "app.py")
    assert result.exit_code == 1
    assert "no workflow was found" in result.output


def test_two_contents_under_one_version_are_a_finding(orbit: Run, folder: Path) -> None:
    write(folder, one=PAYMENT, two=CHANGED)
    result = orbit("check", "one.py", "two.py")
    assert result.exit_code == 1
    assert "WORKFLOW_TWICE" in result.output


def test_the_same_file_twice_is_one_workflow(orbit: Run, folder: Path) -> None:
    write(folder, app=COUNT)
    assert "1 workflow," in orbit("check", "app.py", "app").output


def test_a_module_that_raises_when_its_workflow_is_compiled_is_a_finding(orbit: Run, folder: Path) -> None:
    write(folder, app=COUNT.replace("return count(text)", "raise ValueError('no')"))
    result = orbit("check", "app.py")
    assert result.exit_code == 1
    assert "texts.length raised ValueError: no" in result.output
    assert "what needs values belongs into a handler" in result.output


def test_findings_in_json_name_files_from_the_working_folder(orbit: Run, folder: Path) -> None:
    write(folder, app=MISSPELT)
    for target in ("app.py", str(folder / "app.py")):
        [workflow] = json.loads(orbit("check", target, "--json").stdout)["workflows"]
        assert workflow["findings"][0]["file"] == "app.py"


def test_an_option_that_does_not_exist_is_told_with_the_nearest_one(orbit: Run, folder: Path) -> None:
    write(
        folder,
        decorated=COUNT.replace("version=2", "verion=2"),
        stepped=COUNT.replace("count(text)", "count.options(retri=None)(text)"),
        needed=COUNT.replace("version=2", ""),
    )
    found = orbit("check", "decorated.py").output
    assert "error[OPTION]: orbit.workflow has no option 'verion'" in found
    assert "Did you mean 'version'?" in found
    assert "decorated.py:9:2" in found
    found = orbit("check", "stepped.py").output
    assert "error[OPTION]: .options(…) has no option 'retri'" in found
    assert "Did you mean 'retry'?" in found
    assert "stepped.py:11:12" in found
    assert "orbit.workflow needs version" in orbit("check", "needed.py").output


def test_the_caret_stands_where_an_indented_decorator_does(orbit: Run, folder: Path) -> None:
    lines = COUNT.partition("@orbit.workflow")
    inner = "".join(f"    {line}\n" for line in (lines[1] + lines[2]).splitlines())
    write(folder, app=f"{lines[0]}if True:\n{inner.replace('text: str) -> int', 'text) -> int')}")
    assert "app.py:10:5" in orbit("check", "app.py").output


def test_what_cannot_be_compared_with_is_wrong_use(
    orbit: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, app=COUNT)
    monkeypatch.delenv("ORBIT_TOKEN", raising=False)
    for against in ("git:nope", "git:", "nowhere.json", "http://127.0.0.1:9"):
        result = orbit("check", "app.py", "--against", against)
        assert result.exit_code == 2, against


def test_compiled_json_is_checked_and_compiles_to_itself(orbit: Run, folder: Path) -> None:
    write(folder, app=PAYMENT)
    document = json.loads(orbit("compile", "app.py").output)
    assert document["id"] == "orders.payment"
    made = orbit("compile", "app.py", "--output", "build")
    assert made.exit_code == 0, made.output
    [file] = list((folder / "build").iterdir())
    assert file.name == "orders.payment.v1.json"
    assert json.loads(file.read_text()) == document
    assert orbit("check", file).exit_code == 0
    assert json.loads(orbit("compile", file).output) == document


def test_a_damaged_document_is_told_by_path(orbit: Run, folder: Path) -> None:
    write(folder, app=PAYMENT)
    document = json.loads(orbit("compile", "app.py").output)
    document["nodes"]["pay"]["handler"] = 5
    (folder / "damaged.json").write_text(json.dumps(document))
    result = orbit("check", "damaged.json")
    assert result.exit_code == 1
    assert "nodes.pay" in result.output
    (folder / "twice.json").write_text('{"a": 1, "a": 2}')
    assert "error[FORM_INVALID]" in orbit("check", "twice.json").output
    assert orbit("check", "missing.json").exit_code == 1


def test_a_document_that_breaks_a_rule_is_told_with_its_path(orbit: Run, folder: Path) -> None:
    write(folder, app=PAYMENT)
    document = json.loads(orbit("compile", "app.py").output)
    document["nodes"]["pay"]["next"] = "nowhere"
    (folder / "wrong.json").write_text(json.dumps(document))
    result = orbit("check", "wrong.json")
    assert result.exit_code == 1
    assert "wrong.json:1:" in result.output
    assert " (nodes.pay.next)" in result.output
    line, carets = (each.partition("| ")[2] for each in result.output.splitlines()[3:5])
    assert len(line) < 200
    assert line[carets.index("^") :].startswith('"next": "nowhere"')


def test_several_workflows_need_a_folder_or_json(orbit: Run, folder: Path) -> None:
    write(folder, app=PAYMENT, other=COUNT)
    refused = orbit("compile", "app.py", "other.py")
    assert refused.exit_code == 2
    assert len(json.loads(orbit("compile", "app.py", "other.py", "--json").output)["items"]) == 2
    written = json.loads(orbit("compile", ".", "-o", "out", "--json").stdout)
    assert len(written["written"]) == 2


def test_nothing_is_written_when_anything_is_wrong(orbit: Run, folder: Path) -> None:
    write(folder, app=MISSPELT, other=COUNT)
    result = orbit("compile", ".", "--output", "build")
    assert result.exit_code == 1
    assert not (folder / "build").exists()
    assert json.loads(orbit("compile", ".", "--json").output)["ok"] is False
    assert orbit("compile", "nothing_here").exit_code == 1
