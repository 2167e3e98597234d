"""The rules about graphs once more, slowly and word for word: sets of nodes, and every run played through.

Shares no code with the checks. Only for small graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.property.check_graphs import edges_of, exits_of
from tests.unit.check.documents import Document

Fact = tuple[str, str]
"""A step, and which of its facts."""

Reading = tuple[str, Fact]
"""Where, and what is read there."""


def is_structured(start: str, nodes: Document) -> bool:
    """Whether start, edges, reachability, ends and arms are as they should be."""
    if start not in nodes or any(target not in nodes for _, _, target in edges_of(nodes)):
        return False
    if any(key in _after(nodes, key) for key in nodes):
        return False
    if {start} | _after(nodes, start) != set(nodes):
        return False
    ends = {key for key, node in nodes.items() if node["kind"] == "END"}
    if any(key not in ends and not (_after(nodes, key) & ends) for key in nodes):
        return False
    return _arms_are_sound(nodes) and _merges_are_complete(nodes)


def _after(nodes: Document, key: str, stop: str | None = None) -> set[str]:
    """Everything that can be reached from a node in at least one step, `stop` neither entered nor passed."""
    found: set[str] = set()
    todo = [target for _, target in exits_of(nodes[key])]
    while todo:
        target = todo.pop()
        if target not in found and target != stop:
            found.add(target)
            todo += [further for _, further in exits_of(nodes[target])]
    return found


def _arms_are_sound(nodes: Document) -> bool:
    owners: dict[str, list[str]] = {key: [] for key, node in nodes.items() if node["kind"] == "JOIN"}
    for key, node in nodes.items():
        if node["kind"] == "PARALLEL":
            if node["join"] not in owners:
                return False
            owners[node["join"]].append(key)
    if any(len(parallels) != 1 for parallels in owners.values()):
        return False
    return all(_parallel_is_sound(nodes, owner[0], meeting) for meeting, owner in owners.items())


def _parallel_is_sound(nodes: Document, parallel: str, meeting: str) -> bool:
    arms: list[set[str]] = []
    for entry in nodes[parallel]["arms"].values():
        if entry == meeting:
            return False
        arms.append({entry} | _after(nodes, entry, stop=meeting))
    for number, arm in enumerate(arms):
        if any(arm & other for other in arms[number + 1 :]):
            return False
    entries = list(nodes[parallel]["arms"].values())
    before = [source for source, _, target in edges_of(nodes) if target == meeting]
    if any(all(source not in arm for arm in arms) for source in before):
        return False
    return all(
        _arm_is_sound(nodes, parallel, entry, arm) and any(source in arm for source in before)
        for entry, arm in zip(entries, arms, strict=True)
    )


def _arm_is_sound(nodes: Document, parallel: str, entry: str, arm: set[str]) -> bool:
    for source, _, target in edges_of(nodes):
        if target in arm and source not in arm and not (target == entry and source == parallel):
            return False
    for key in arm:
        node = nodes[key]
        if node.get("outcome") == "SUCCEEDED":
            return False
        if node["kind"] == "PARALLEL" and node["join"] not in arm:
            return False
    return True


def _merges_are_complete(nodes: Document) -> bool:
    for key, node in nodes.items():
        if node["kind"] == "MERGE":
            named = sorted((item["from"], item["exit"]) for item in node["inputs"])
            if named != sorted((source, name) for source, name, target in edges_of(nodes) if target == key):
                return False
    return True


def runs_of(nodes: Document) -> int:
    """How many ways of choosing exits there are."""
    count = 1
    for options in _choices(nodes).values():
        count *= len(options)
    return count


def _choices(nodes: Document) -> dict[str, list[tuple[str, str]]]:
    return {
        key: exits_of(node)
        for key, node in nodes.items()
        if node["kind"] != "PARALLEL" and len(exits_of(node)) > 1
    }


def uncertain_readings(start: str, nodes: Document) -> set[Reading]:
    """Every reading of a fact that some run reaches without having the fact. For structured graphs only."""
    found: set[Reading] = set()
    choices = _choices(nodes)
    for chosen in product(*choices.values()):
        _Run(nodes, dict(zip(choices, chosen, strict=True)), found).walk(start, None, frozenset(), None)
    return found


class _Run:
    """One run: at every step the exit is given; arms are walked one after the other, blind to each other."""

    def __init__(self, nodes: Document, chosen: dict[str, tuple[str, str]], found: set[Reading]) -> None:
        self._nodes = nodes
        self._chosen = chosen
        self._found = found

    def walk(
        self, key: str, came: tuple[str, str] | None, known: frozenset[Fact], stop: str | None
    ) -> frozenset[Fact] | None:
        """What is known on arrival at `stop`; None when an END is met first."""
        while key != stop:
            node = self._nodes[key]
            for fact in _read(node, came):
                if fact not in known:
                    self._found.add((key, fact))
            if node["kind"] == "END":
                return None
            if node["kind"] == "PARALLEL":
                arrived = [
                    self.walk(entry, (key, f"arms.{name}"), known, node["join"])
                    for name, entry in node["arms"].items()
                ]
                if any(one is None for one in arrived):
                    return None
                known = frozenset().union(*(one for one in arrived if one is not None))
                key, came = node["join"], None
                continue
            exit_name, target = self._chosen.get(key) or exits_of(node)[0]
            known |= _made(key, node, exit_name)
            key, came = target, (key, exit_name)
        return known


def _made(key: str, node: Document, exit_name: str) -> frozenset[Fact]:
    match node["kind"], exit_name:
        case "TASK" | "WAIT" | "POLL" | "MERGE", "next":
            return frozenset({(key, "result")})
        case "POLL", "on_failed":
            return frozenset({(key, "result")})
        case "TASK", "on_failure":
            return frozenset({(key, "failure")})
        case _:
            return frozenset()


def _read(node: Document, came: tuple[str, str] | None) -> Iterator[Fact]:
    values = [*node.get("input", {}).values(), *([node["output"]] if "output" in node else [])]
    values += [item["value"] for item in node.get("inputs", ()) if (item["from"], item["exit"]) == came]
    for value in values:
        if value.get("ref", "input") != "input":
            yield value["ref"], value.get("of", "result")
