"""Lanes where a claim would get nothing: a limit is full, or its tokens are spent. Plain bookkeeping."""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.values.ids import Id
from orbit_server.pulse.dispatch.slots import Lane

Place = tuple[Id, str | None]
"""A queue, or a whole namespace where the queue is None."""


class HeldLanes:
    """Until when which places are held, in monotonic microseconds."""

    def __init__(self) -> None:
        self._until: dict[Place, int] = {}

    def hold(self, place: Place, until_us: int) -> None:
        """Nothing is claimed there before this instant, unless it is freed."""
        self._until[place] = until_us

    def free(self, place: Place) -> None:
        """There is room again, as far as anybody knows."""
        self._until.pop(place, None)

    def holds(self, lane: Lane, now_us: int) -> bool:
        """Whether the lane is held now."""
        if not self._until:
            return False
        return any(self._until.get(place, 0) > now_us for place in (lane, (lane[0], None)))

    def next_us(self, now_us: int) -> int | None:
        """How long until the first place is free by itself; those that are free already are forgotten."""
        if not self._until:
            return None
        self._until = {place: until for place, until in self._until.items() if until > now_us}
        return min(self._until.values(), default=now_us) - now_us

    def places(self) -> Iterable[Place]:
        """What is held."""
        return tuple(self._until)


class VirtualTimes:
    """How far claims have come in lanes where fairness counts, since it was last written down."""

    def __init__(self) -> None:
        self._come: dict[Lane, int] = {}

    def claimed(self, lane: Lane, virtual_start: int, *, fair: bool) -> None:
        """A task was claimed there. A lane counts from its first task with a fairness key on."""
        if fair or lane in self._come:
            self._come[lane] = max(self._come.get(lane, 0), virtual_start)

    def taken(self) -> tuple[tuple[Lane, int], ...]:
        """What has to be written down now."""
        come = tuple(sorted((lane, at) for lane, at in self._come.items() if at))
        self._come = dict.fromkeys(self._come, 0)
        return come
