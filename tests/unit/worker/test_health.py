"""What a worker tells of itself, in words and figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbit_sdk.worker import LeftBehind, WorkerReport
from orbit_sdk.worker.health import Health

WELL = Health(
    connected=True, draining=False, slots=4, busy=1, stuck=0, stuck_max=4, lost=0, replaced=0, sessions=1,
    outcomes=(("FINAL", 1), ("SUCCEEDED", 7)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("health", "live", "ready"),
    [
        (WELL, 200, 200),
        (replace(WELL, connected=False), 200, 503),
        (replace(WELL, draining=True), 200, 503),
        (replace(WELL, stuck=4), 200, 200),
        (replace(WELL, stuck=5), 503, 503),
    ],
)
def test_only_what_a_restart_would_mend_is_told_as_dead(health: Health, live: int, ready: int) -> None:
    assert health.answer("/healthz")[0] == live
    assert health.answer("/readyz")[0] == ready


def test_figures_are_told_as_prometheus_reads_them() -> None:
    status, text = replace(WELL, stuck=2, replaced=3).answer("/metrics")
    lines = text.splitlines()
    assert status == 200
    assert "orbit_sdk_worker_stuck_handlers 2" in lines
    assert "orbit_sdk_worker_threads_replaced_total 3" in lines
    assert 'orbit_sdk_worker_results_total{outcome="SUCCEEDED"} 7' in lines
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")} <= named


def test_an_unknown_page_names_those_that_there_are() -> None:
    status, text = WELL.answer("/")
    assert status == 404
    assert "/healthz" in text


def test_a_report_names_what_was_left_behind() -> None:
    clean = WorkerReport("w", "b", 1, {"SUCCEEDED": 2, "FINAL": 1}, 0, 0, ())
    assert clean.clean
    assert list(clean.lines()) == ["results: 1 FINAL, 2 SUCCEEDED; leases lost: 0; threads replaced: 0"]
    left = replace(clean, left=(LeftBehind("t" * 32, "a" * 32, "s.deaf@1", "RUNNING"),))
    assert not left.clean
    assert "s.deaf@1" in list(left.lines())[1]
    assert left.json()["left"] == [
        {"task_id": "t" * 32, "attempt_id": "a" * 32, "handler": "s.deaf@1", "how": "RUNNING"}
    ]
