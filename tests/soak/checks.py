"""What must hold at any moment of a soak, and what must hold at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, text

from orbit_server.verify import snapshot, violations
from tests.crash.people import TERMINAL, unlike_what_happened, wrongs_of_effects
from tests.soak.clients import Books
from tests.soak.site import Site

MEMORY_MOST = 400
"""MiB of one process."""
DESCRIPTORS_MOST = 400
GROWTH_MOST = 1.5
"""How much larger a process may be late in its life than when it had warmed up."""
WARM, LONG = 30.0, 120.0
"""Seconds: a process is warm after the first, its growth is judged when it lived the second."""


def wrong_now(site: Site, books: Sequence[Books]) -> list[str]:
    """The ten rules, the clients' books against the database, and effects against recovery levels."""
    found = [line for book in books for line in book.wrong]
    found += wrongs_of_effects(site.ledger)
    # Books first: what is written down afterwards may be newer than the snapshot.
    kept = [
        (dict(book.started), dict(book.submitted), dict(book.signalled), dict(book.finished))
        for book in books
    ]
    with snapshot(site.at.url) as conn:
        found += [str(one) for one in violations(conn)]
        for started, submitted, signalled, finished in kept:
            states = {row.id: row.state for row in conn.execute(text("SELECT id, state FROM instances"))}
            found += _missing("workflow", [one for one, _, _ in started.values()], states)
            found += _missing("task", submitted.values(), _ids(conn, "tasks"))
            found += _missing("signal", [one for one, _ in signalled.values()], _ids(conn, "signals"))
            found += [
                f"workflow {one} was {state} and is {states.get(one)}"
                for one, state in finished.items()
                if states.get(one) != state
            ]
    return found


def _ids(conn: Connection, table: str) -> set[str]:
    return {row[0] for row in conn.execute(text(f"SELECT id FROM {table}"))}


def _missing(kind: str, acknowledged: object, there: object) -> Iterator[str]:
    for one in acknowledged:  # type: ignore[attr-defined]
        if one not in there:  # type: ignore[operator]
            yield f"{kind} {one} was acknowledged and is not in the database"


def unfinished(site: Site) -> tuple[int, int]:
    """Workflows and standalone tasks that have not ended."""
    with snapshot(site.at.url) as conn:
        return (
            conn.execute(text("SELECT COUNT(*) FROM instances WHERE ended_at IS NULL")).scalar_one(),
            conn.execute(
                text("SELECT COUNT(*) FROM tasks WHERE settled_at IS NULL AND instance_id IS NULL")
            ).scalar_one(),
        )


def wrong_at_the_end(site: Site, books: Sequence[Books]) -> list[str]:
    """Everything of `wrong_now`; nothing that nobody asked for; and every end is the one it should be."""
    found = wrong_now(site, books)
    with snapshot(site.at.url) as conn:
        for table, field in (("instances", "started"), ("tasks", "submitted")):
            keys = {key for book in books for key in (*getattr(book, field), *book.unsure)}
            query = f"SELECT business_key FROM {table}"
            if table == "tasks":
                query += " WHERE instance_id IS NULL"
            stored = [row[0] for row in conn.execute(text(query))]
            found += [f"{table}: {key} was never asked for" for key in set(stored) - keys]
            found += [f"{table}: {key} is there twice" for key in set(stored) if stored.count(key) > 1]
        ends = {
            row.id: row
            for row in conn.execute(
                text(
                    "SELECT i.id, i.state, o.output, o.error FROM instances i"
                    " LEFT JOIN instance_outputs o ON o.instance_id = i.id"
                )
            )
        }
    for book in books:
        for workflow_id, definition, order in book.started.values():
            found += _wrong_end(site, book, workflow_id, definition, order.outcome, ends[workflow_id])
    return found


def _wrong_end(
    site: Site, book: Books, workflow_id: str, definition: str, outcome: str, end: object
) -> Iterator[str]:
    import orjson

    state: str = end.state  # type: ignore[attr-defined]
    if state not in TERMINAL:
        yield f"workflow {workflow_id} ({definition}) is stuck in {state}"
    elif workflow_id in book.cancelled:
        if state not in ("CANCELLED", "FAILED"):
            yield f"workflow {workflow_id} ({definition}) was cancelled and is {state}"
    elif state == "SUCCEEDED":
        output = orjson.loads(end.output)  # type: ignore[attr-defined]
        wrong = unlike_what_happened(site.ledger, workflow_id, definition, outcome, output)
        yield from (f"workflow {workflow_id} ({definition}): {one}" for one in wrong)
    elif state == "CANCELLED" and workflow_id not in book.maybe_cancelled:
        yield f"workflow {workflow_id} ({definition}) is CANCELLED and nobody asked for that"
    elif state == "FAILED" and orjson.loads(end.error)["code"] != "NOT_DONE":  # type: ignore[attr-defined]
        yield f"workflow {workflow_id} ({definition}) failed: {end.error}"  # type: ignore[attr-defined]


def swollen(site: Site) -> list[str]:
    """Processes that are too large, or that keep growing."""
    found = []
    for name, samples in site.samples.items():
        memory = max(one.memory for one in samples)
        descriptors = max(one.descriptors for one in samples)
        if memory > MEMORY_MOST or descriptors > DESCRIPTORS_MOST:
            found.append(f"{name} took {memory:.0f} MiB and {descriptors} descriptors")
        if samples[-1].age < LONG:
            continue
        warm = [one for one in samples if WARM <= one.age <= LONG / 2] or samples[:1]
        late = samples[-3:]
        for what in ("memory", "descriptors"):
            before = max(getattr(one, what) for one in warm)
            after = min(getattr(one, what) for one in late)
            if after > before * GROWTH_MOST + 20:
                found.append(f"{name} grew in {what} from {before:.0f} to {after:.0f}")
    return found
