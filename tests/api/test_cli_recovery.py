"""Probing, granting, adopting and signalling by key from the command line, with a real server and worker."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.test_cli_dev import Shop
from tests.unit.cli.apps import write

BANK = """\
from datetime import timedelta

from pydantic import BaseModel

import orbit_sdk as orbit


class Order(BaseModel):
    number: str


class Receipt(BaseModel):
    id: str


class Paid(BaseModel):
    amount: int


PAID = orbit.Signal("order.paid", Paid)


@orbit.handler("bank.pay", version=1, queue="bank", recovery=orbit.Recovery.VERIFIABLE)
async def pay(ctx: orbit.TaskContext, number: str) -> Receipt:
    raise orbit.NeedsPerson("the line went dead")


@pay.verify
async def paid(ctx: orbit.TaskContext, number: str) -> orbit.Happened[Receipt]:
    return orbit.Happened(Receipt(id=f"R-{number}"))


@orbit.handler("bank.look_up", version=1, queue="bank", recovery=orbit.Recovery.READ_ONLY)
async def look_up(ctx: orbit.TaskContext, number: str) -> Receipt:
    return Receipt(id=f"L-{number}")


@orbit.workflow("bank.paying", version=1)
def paying(order: Order) -> Receipt:
    return pay(order.number)


@orbit.workflow("bank.waiting", version=1)
def waiting(order: Order) -> Paid:
    return PAID.wait(match=order.number, timeout=timedelta(days=2), on_timeout="REVIEW")
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One running `orbit dev` for every test here."""
    with pytest.MonkeyPatch.context() as patch:
        folder: Path = tmp_path_factory.mktemp("bank")
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("ORBIT_")]:
            patch.delenv(name)
        shop = Shop(write(folder, app=BANK))
        with shop.dev("app.py"):
            yield shop


def test_a_probe_says_what_it_found_and_a_decision_adopts_it(shop: Shop) -> None:
    shop.run("start", "bank.paying", "-i", '{"number": "A-1"}', "--key", "A-1")
    shop.run("watch", "key:A-1", "--stop-on-review", code=1)
    told = shop.run("review", "probe", "key:A-1", "pay", "--reason", "did they get it?")
    assert "SUCCEEDED" in told
    assert "R-A-1" in told
    shown = shop.json("review", "show", "key:A-1", "pay")
    [found] = [item for item in shown["evidence"] if item["kind"] == "PROBE_HAPPENED"]
    assert found["id"] in shop.run("review", "show", "key:A-1", "pay")
    adopting = ("review", "resolve", "key:A-1", "pay", "succeeded", "--adopt", found["id"])
    assert "exclude" in shop.run(*adopting, "--result", "{}", "--reason", "r", code=2)
    shop.run(*adopting, "--reason", "the bank says so", "--on-behalf-of", "Ms Chen")
    done = shop.json("show", "key:A-1")
    assert (done["state"], done["output"]) == ("SUCCEEDED", {"id": "R-A-1"})


def test_a_bulk_may_ask_a_handler_by_name(shop: Shop) -> None:
    shop.run("start", "bank.paying", "-i", '{"number": "A-5"}', "--key", "A-5")
    shop.run("watch", "key:A-5", "--stop-on-review", code=1)
    naming = ("--ask", "bank.look_up@1", "--within", "2m", "--key", "A-5", "--reason", "r")
    assert "does not fit" in shop.run("bulk", "plan", "pause", *naming, code=2)
    plan = shop.json("bulk", "plan", "probe", *naming)
    assert shop.json("bulk", "apply", plan["id"])["applied"] == "1"
    [item] = shop.json("bulk", "items", plan["id"])["items"]
    probe = shop.json("task", "show", item["made_id"])
    assert (probe["handler"], probe["recovery"]) == ("bank.look_up", "READ_ONLY")


def test_granted_attempts_are_shown_and_asked_about_first(shop: Shop) -> None:
    shop.run("start", "bank.paying", "-i", '{"number": "A-2"}', "--key", "A-2")
    shop.run("watch", "key:A-2", "--stop-on-review", code=1)
    granting = ("review", "grant", "key:A-2", "pay", "--reason", "they are back")
    assert "say what is granted" in shop.run(*granting, code=2)
    shop.run(*granting, "--attempts", "2", "--time", "1h", "--dry-run")
    shop.run(*granting, "--attempts", "2", "--time", "1h")
    assert "2 attempts, 0 rounds, 3600000 ms" in shop.run("review", "show", "key:A-2", "pay")
    assert "at most 20" in shop.run(*granting, "--attempts", "19", code=1)


def test_a_signal_finds_its_workflow_by_definition_and_key(shop: Shop) -> None:
    shop.run("start", "bank.waiting", "-i", '{"number": "A-3"}', "--key", "A-3")
    sending = ("signal", "key:A-3", "order.paid", '{"amount": 3}', "--definition", "bank.waiting")
    assert "CONSUMED" in shop.run(*sending, "--on-behalf-of", "Ms Chen")
    assert "no such open workflow of bank.waiting" in shop.run(*sending, code=1)
    assert "is key:<business key>" in shop.run("signal", "0" * 32, *sending[2:], code=2).replace("\n", " ")


def test_a_restart_is_asked_about_first(shop: Shop) -> None:
    shop.run("start", "bank.waiting", "-i", '{"number": "A-4"}', "--key", "A-4")
    shop.run("cancel", "key:A-4", "--reason", "r")
    told = shop.run("restart", "key:A-4", "--effects", "same", "--reason", "again", "--dry-run")
    assert "WAITING" in told
    assert len(shop.json("list", "--definition", "bank.waiting", "--key", "A-4")["items"]) == 1


def test_an_export_tells_what_each_of_its_lines_is(shop: Shop) -> None:
    shop.run("start", "bank.paying", "-i", '{"number": "A-9"}', "--key", "A-9")
    shop.run("watch", "key:A-9", "--stop-on-review", code=1)
    lines = [json.loads(line) for line in shop.run("export", "key:A-9").splitlines()]
    records = Counter(line["record"] for line in lines)
    assert records == {"workflow": 1, "step": 2, "activation": 1, "task": 1, "attempt": 1, "left_out": 2}
    assert {line["kind"] for line in lines if line["record"] == "step"} == {"TASK", "END"}


def _all_it_said(shop: Shop, *arguments: str) -> str:
    """With the advice beside the answer."""
    return subprocess.run(
        shop.command(*arguments),
        cwd=shop.folder,
        env=shop.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        text=True,
    ).stdout


def test_a_plan_that_allows_nothing_is_not_recommended(shop: Shop) -> None:
    shop.run("start", "bank.waiting", "-i", '{"number": "A-10"}', "--key", "A-10")
    planning = ("bulk", "plan", "resume", "--reason", "they are back", "--key")
    told = _all_it_said(shop, *planning, "A-10")
    assert "nothing of it may be done" in told
    assert "bulk apply" not in told
    assert "nothing fits the filter" in _all_it_said(shop, *planning, "A-11")
    pausing = ("bulk", "plan", "pause", "--reason", "a test", "--key", "A-10")
    assert "bulk apply" in _all_it_said(shop, *pausing)
