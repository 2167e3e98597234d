"""What a node knows of limits: where a row exists, so that commands name it. The row itself decides.

Where no limit is set nothing is asked of the database. A row that another server has just made is known here
at the next look, within a second; a row that exists binds at once, whatever is written into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orbit_sdk.values.ids import Id
from orbit_server.pulse.limits.queries import all_limits
from orbit_server.pulse.tasks.limits.records import LimitRow
from orbit_server.pulse.workers.queries import all_blocked
from orbit_server.storage.database import Database

Lane = tuple[Id, str]


class KnownLimits:
    """One per node. `stale` asks for a new look; `refresh` is it."""

    def __init__(self) -> None:
        self.stale = True
        self._claims: Mapping[tuple[Id, str | None], LimitRow] = {}
        self._backlogs: Mapping[tuple[Id, str | None], LimitRow] = {}
        self.blocked_builds: frozenset[tuple[Id, str]] = frozenset()
        """(namespace, build) of workers that get nothing."""

    async def refresh(self, database: Database) -> None:
        """Read every row."""
        # First, so that a change during the look asks for another one.
        self.stale = False
        try:
            rows, self.blocked_builds = await database.read(
                lambda conn: (all_limits(conn), all_blocked(conn))
            )
        except BaseException:
            self.stale = True
            raise
        self.learn(rows)

    def learn(self, rows: Iterable[LimitRow]) -> None:
        """Take in what was read."""
        found = [((row.namespace_id, row.queue), row) for row in rows]
        self._claims = {
            place: row for place, row in found if row.running_max is not None or row.rate is not None
        }
        self._backlogs = {place: row for place, row in found if row.backlog_max is not None}

    def of_claims(self, lane: Lane) -> tuple[Id, ...]:
        """The rows that a claim in this lane has to ask."""
        return _ids(self._claims, lane) if self._claims else ()

    def of_backlog(self, lane: Lane) -> tuple[Id, ...]:
        """The rows that a submission to this lane has to ask."""
        return _ids(self._backlogs, lane) if self._backlogs else ()

    def most_running(self, lane: Lane) -> int | None:
        """The smallest number of attempts that may run there at once, as last read."""
        rows = [self._claims.get(place) for place in (lane, (lane[0], None))]
        return min(
            (row.running_max for row in rows if row is not None and row.running_max is not None),
            default=None,
        )

    def gives_back(self, place: tuple[Id, str | None]) -> bool:
        """Whether a place that was full had room when it was last read. Tokens only come with time."""
        row = self._claims.get(place)
        return row is None or (
            row.running_max is not None and row.rate is None and row.running < row.running_max
        )


def _ids(rows: Mapping[tuple[Id, str | None], LimitRow], lane: Lane) -> tuple[Id, ...]:
    return tuple(rows[place].id for place in (lane, (lane[0], None)) if place in rows)
