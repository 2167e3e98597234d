"""`orbit dev --reload` as a process: what is sound is taken over, what is not leaves everything as it was."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_cli_dev import Shop
from tests.unit.cli.apps import CHANGED, MISSPELT, PAYMENT, write


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ORBIT_")]:
        monkeypatch.delenv(name)
    return Shop(write(tmp_path, app=PAYMENT))


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next event that is about a change."""
    assert process.stdout is not None
    while True:
        event: dict[str, Any] = json.loads(process.stdout.readline())
        if event["event"] in ("reloaded", "refused"):
            return event


def rewrite(shop: Shop, text: str) -> None:
    """Changes the application at once, so that nobody sees half of it."""
    whole = shop.folder / "app.new"
    whole.write_text(text)
    whole.replace(shop.folder / "app.py")


def test_a_change_reaches_server_and_worker_and_a_published_version_stays(shop: Shop) -> None:
    order = json.dumps({"number": "A-1", "amount": 5})
    with shop.dev("app.py", "--reload", lease="60s") as (process, _ready):
        rewrite(shop, PAYMENT.replace("{number}/{amount}", "{number}:{amount}"))
        event = told(process)
        assert (event["event"], event["items"][0]["outcome"]) == ("reloaded", "published")

        shop.json("start", "orders.payment", "--input", order, "--key", "A-1")
        shop.json("signal", "key:A-1", "order.approval", '{"granted": true}')
        assert '{"receipt": "A-1:5"}' in shop.run("watch", "key:A-1")

        rewrite(shop, MISSPELT)
        event = told(process)
        assert event["event"] == "refused"
        assert event["workflows"][0]["findings"]

        rewrite(shop, CHANGED)
        event = told(process)
        assert (event["event"], event["items"][0]["outcome"]) == ("reloaded", "changed")

        rewrite(shop, CHANGED.replace('"orders.payment", version=1', '"orders.payment", version=2'))
        event = told(process)
        assert (event["items"][0]["outcome"], event["items"][0]["current"]) == ("published", True)
