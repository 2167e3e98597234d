"""A COMMIT whose answer was lost: whoever asks again with the same key hears what happened, and it happened
once.
"""

from __future__ import annotations

from typing import Any

import pytest

from orbit_server.weave.control.commands import Action
from tests.documents import document, end, task, wait
from tests.storage.trouble import Script, unknown
from tests.storage.weave.paper import Paper, succeeds


def flow() -> dict[str, Any]:
    return document({"ask": wait("work"), "work": task("done", "safe"), "done": end({"ref": "work"})})


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_lost_answer_changes_nothing(migrated_mariadb_url: str, arrived: bool) -> None:
    script = Script()

    def lose() -> None:
        (script.after if arrived else script.before).append(unknown())

    async with Paper(migrated_mariadb_url, {"safe": succeeds(1)}, faults=script) as paper:
        lose()
        published = await paper.publish(flow())
        assert published.row.version == 1
        lose()
        instance = await paper.start(1, key="k")
        assert await paper.start(1, key="k") == instance
        lose()
        paused = await paper.control(instance, Action.PAUSE, expected=1, key="p")
        assert await paper.control(instance, Action.PAUSE, expected=1, key="p") == paused
        await paper.control(instance, Action.RESUME, expected=2)
        lose()
        sent = await paper.signal(instance, key="s")
        assert sent["state"] == "CONSUMED"
        worker = paper.worker()
        worker.holding = True
        (offer,) = await paper.held(worker)
        lose()
        await worker.play(offer)
        await paper.until(instance, "SUCCEEDED")
        counts = await paper.rows(
            "SELECT (SELECT COUNT(*) FROM instances), (SELECT COUNT(*) FROM signals),"
            " (SELECT COUNT(*) FROM tasks), (SELECT COUNT(*) FROM definitions)"
        )
        assert tuple(counts[0]) == (1, 1, 1, 1)
        doubled = await paper.rows(
            "SELECT COUNT(*) FROM (SELECT aggregate_id, aggregate_revision, type FROM events"
            " GROUP BY aggregate_id, aggregate_revision, type HAVING COUNT(*) > 1) d"
        )
        assert doubled[0][0] == 0
