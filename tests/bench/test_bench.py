"""Every row of the benchmark runs; what it measures is nobody's business here."""

from __future__ import annotations

import pytest

from tests.bench.report import summary, table
from tests.bench.run import ROWS, measure
from tests.bench.sizes import SIZES

ON_STAGE = [name for name, row in ROWS.items() if row.on_stage is not None and name != "B8"]


@pytest.mark.parametrize("row", ON_STAGE)
def test_each_row_that_needs_a_server_measures_something(row: str) -> None:
    assert measure(row, "sqlite", SIZES["tiny"], None)


def test_a_row_also_runs_on_a_durable_database_server(new_mariadb) -> None:  # type: ignore[no-untyped-def]
    assert measure("B1b", "mariadb", SIZES["tiny"], new_mariadb())


def test_the_row_without_a_server_measures_something() -> None:
    assert measure("B10", "sqlite", SIZES["tiny"], None)


def test_a_summary_gives_medians_and_how_far_the_runs_lay_apart() -> None:
    found = summary([{"steps_per_s": 900.0}, {"steps_per_s": 1000.0}, {"steps_per_s": 1200.0}])
    assert found == {"steps_per_s": 1000, "spread": {"steps_per_s": 0.3}}
    assert "±15%" in table({"B1a": {"sqlite": found}}, {"B1a": "chains"})
