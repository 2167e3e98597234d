"""What commands say to somebody who meets them for the first time: the error, the way out, the right name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import Orbit
from orbit_sdk.definition.masking import MASK
from tests.api.test_cli_dev import Shop
from tests.unit.cli.apps import write

LETTERS = """\
from datetime import timedelta

from pydantic import BaseModel

import orbit_sdk as orbit


class Letter(BaseModel):
    number: str


class Approval(BaseModel):
    granted: bool


APPROVAL = orbit.Signal("letter.approval", Approval)


@orbit.handler("letter.weigh", version=1, queue="letters", recovery=orbit.Recovery.READ_ONLY)
def weigh(ctx: orbit.TaskContext, number: str) -> int:
    return len(number)


@orbit.handler("letter.send", version=1, queue="letters", recovery=orbit.Recovery.CONSERVATIVE)
async def send(ctx: orbit.TaskContext, number: str, weight: int) -> int:
    raise ValueError("the post office of " + number + " is closed")


@orbit.workflow("letters.sending", version=1)
def sending(letter: Letter) -> int:
    weight = weigh(letter.number)
    return send(letter.number, weight)


@orbit.workflow("letters.asking", version=1)
def asking(letter: Letter) -> Approval:
    return APPROVAL.wait(
        match=letter.number,
        timeout=timedelta(days=2),
        on_timeout=lambda: orbit.build(Approval, granted=False),
    )
"""

SAID = "the post office of L-1 is closed"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One running `orbit dev` for every test here, with L-1 in review and L-2 waiting."""
    with pytest.MonkeyPatch.context() as patch:
        folder: Path = tmp_path_factory.mktemp("letters")
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("ORBIT_")]:
            patch.delenv(name)
        shop = Shop(write(folder, app=LETTERS))
        with shop.dev("app.py"):
            shop.run("start", "letters.sending", "-i", '{"number": "L-1"}', "--key", "L-1")
            shop.run("start", "letters.asking", "-i", '{"number": "L-2"}', "--key", "L-2")
            shop.run("watch", "key:L-1", "--stop-on-review", code=1)
            yield shop


def review(shop: Shop, *more: str) -> dict[str, Any]:
    [found] = shop.json("review", "list", *more)["items"]
    assert isinstance(found, dict)
    return found


def test_a_review_is_listed_with_what_went_wrong_and_what_a_decision_needs(shop: Shop) -> None:
    found = review(shop)
    assert found["error"]["code"] == "EXCEPTION"
    assert SAID in found["error"]["message"]
    assert found["effect_possible"] is True
    assert found["needs_proof"] == ["RERUN"]
    told = shop.run("review", "list")
    assert SAID in told
    assert found["effect_key"] in told
    assert "rerun (needs --basis proven --evidence …)" in told


def test_a_step_in_review_is_shown_with_its_last_error_and_the_choices(shop: Shop) -> None:
    told = shop.run("show", "key:L-1", "--step", "send")
    assert SAID in told
    assert review(shop)["effect_key"] in told
    assert "rerun (needs --basis proven --evidence …)" in told
    assert SAID in shop.run("review", "show", "key:L-1", "send")


def test_a_task_in_review_is_shown_with_its_last_error_and_where_it_is_decided(shop: Shop) -> None:
    found = review(shop)
    told = shop.run("task", "show", found["task_id"])
    assert SAID in told
    assert found["effect_key"] in told
    assert "orbit review resolve" in told


def test_what_a_handler_said_is_masked_for_whoever_may_not_read_payloads(shop: Shop) -> None:
    profile = json.loads((shop.folder / ".orbit" / "profile.json").read_text())
    with Orbit(profile["url"], profile["token"]) as client:
        made = client.credentials.create("narrow", ["workflows:read", "tasks:read"])
    found = review(shop, "--token", made.token)
    assert found["error"] == {"code": "EXCEPTION", "message": MASK}
    task = found["task_id"]
    for words in (
        ("show", "key:L-1", "--step", "send"),
        ("review", "show", "key:L-1", "send"),
        ("task", "show", task),
    ):
        told = shop.run(*words, "--token", made.token)
        assert SAID not in told
        assert "EXCEPTION" in told


def test_a_misspelt_signal_names_the_one_that_was_meant(shop: Shop) -> None:
    for more in ((), ("--match", "L-2")):
        told = shop.run("signal", "key:L-2", "letter.aproval", '{"granted": true}', *more, code=1)
        assert "letter.aproval is not a signal of this workflow" in told
        assert "letter.approval" in told
        assert "Did you mean 'letter.approval'?" in told
    assert "it knows: none" in shop.run("signal", "key:L-1", "letter.aproval", "{}", code=1)


def test_a_signal_to_a_finished_workflow_is_told_that_it_is_finished(shop: Shop) -> None:
    shop.run("start", "letters.asking", "-i", '{"number": "L-3"}', "--key", "L-3")
    shop.run("signal", "key:L-3", "letter.approval", '{"granted": true}')
    shop.run("watch", "key:L-3")
    told = shop.run("signal", "key:L-3", "letter.approval", '{"granted": true}', code=1)
    assert "the workflow is finished (SUCCEEDED)" in told
    told = shop.run("signal", "key:L-3", "letter.approval", '{"granted": true}', "-m", "L-3", code=1)
    assert "REJECTED" in told
    assert "the workflow is finished" in told


def test_tasks_are_listed_by_the_key_of_their_workflow(shop: Shop) -> None:
    found = shop.json("task", "list", "--workflow", "key:L-1")["items"]
    assert {item["step_key"] for item in found} == {"weigh", "send"}
    assert "is not a workflow id" in shop.run("task", "list", "--workflow", "L-1", code=2)


def test_the_timeline_that_may_not_be_read_names_the_option_that_allows_it(shop: Shop) -> None:
    told = shop.run("events", "key:L-1", code=1)
    assert "PERMISSION_DENIED" in told
    assert "orbit dev --workflow-audit-access" in told


def test_a_cancel_does_not_count_what_was_only_read(shop: Shop) -> None:
    assert "weigh" not in shop.run("cancel", "key:L-1", "--reason", "no letter", "--dry-run")


def test_credentials_are_listed_and_revoked(shop: Shop) -> None:
    profile = json.loads((shop.folder / ".orbit" / "profile.json").read_text())
    with Orbit(profile["url"], profile["token"]) as client:
        made = client.credentials.create("passing", ["tasks:read"])
    listed = {item["id"]: item for item in shop.json("credential", "list")["items"]}
    assert listed[made.id]["name"] == "passing"
    assert "passing" in shop.run("credential", "list")
    assert "revoked" in shop.run("credential", "revoke", made.id, "--reason", "gone")
    listed = {item["id"]: item for item in shop.json("credential", "list")["items"]}
    assert listed[made.id]["revoked_at"] is not None
    assert "UNAUTHENTICATED" in shop.run("task", "list", "--token", made.token, code=1)
