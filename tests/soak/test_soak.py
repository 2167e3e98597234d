"""A short storm over a whole installation; `make soak` makes it long."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.databases import may_do_without_mariadb
from tests.soak.settings import SoakSettings
from tests.soak.soak import soak

SECONDS = 30


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
async def test_a_storm_breaks_nothing(tmp_path: Path, database: Literal["sqlite", "mariadb"]) -> None:
    if database == "mariadb" and may_do_without_mariadb():
        pytest.skip("no MariaDB on this machine, and ORBIT_TEST_WITHOUT_MARIADB=1")
    outcome = await soak(SoakSettings(SECONDS, database, tmp_path, seed=1, pace=0.7))
    assert not outcome.wrong, str(outcome)
    assert outcome.figures["kills"] > 5
    assert outcome.figures["lost attempts"] > 0
