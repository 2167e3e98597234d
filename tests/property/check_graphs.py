"""Random definitions that nest properly, and single faults to put into them.

Values are kept out of the way: every handler takes and gives anything, every wait has its own signal, so that
only the graph and what is known where decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.unit.check.documents import (
    Document,
    const,
    decide,
    document,
    end,
    fail,
    handler,
    join,
    merge,
    parallel,
    poll,
    ref,
    task,
    timer,
    wait,
)

CHOOSING = ("TASK", "WAIT", "POLL", "BRANCH")


@dataclass
class Sketch:
    """Nodes under construction; blocks are built from the end, each knowing where it goes on."""

    draw: st.DrawFn
    left: int
    nodes: Document = field(default_factory=dict)

    def key(self, prefix: str) -> str:
        self.left -= 1
        return f"{prefix}{len(self.nodes)}"

    def put(self, prefix: str, node: Document) -> str:
        key = self.key(prefix)
        self.nodes[key] = node
        return key

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def blocks(self, following: str, depth: int, most: int, *, empty: bool = True, inside: bool) -> str:
        """Zero to `most` blocks one after the other; the key at which they begin."""
        for _ in range(self.draw(st.integers(0 if empty else 1, most))):
            if self.left > 0 or not empty:
                following = self.block(following, depth, inside=inside)
                empty = True
        return following

    def block(self, following: str, depth: int, *, inside: bool) -> str:
        simple = ("task", "timer", "wait")
        nested = ("caught", "late", "poll", "branch", "merged", "parallel", "parallel", "ended")
        kind = self.pick(*simple, *(nested if depth > 0 and self.left > 2 else ()))
        match kind:
            case "timer":
                return self.put("t", timer(following))
            case "wait":
                return self.put("w", wait(following))
            case "caught":
                return self.put(
                    "c", task(following, on_failure={"next": self.side(following, depth, inside)})
                )
            case "late":
                return self.put(
                    "l", wait(following, on_timeout={"next": self.side(following, depth, inside)})
                )
            case "poll":
                return self.put("q", poll(following, on_failed={"next": self.side(following, depth, inside)}))
            case "branch":
                return self.branch(following, depth, inside)
            case "merged":
                meeting = self.put("m", merge(following, {}))
                return self.branch(meeting, depth, inside)
            case "parallel":
                return self.parallel(following, depth)
            case "ended":
                ending = self.put("f", fail() if inside else end())
                return self.put("b", decide((condition(len(self.nodes)), ending), otherwise=following))
            case _:
                return self.put("a", task(following))

    def side(self, following: str, depth: int, inside: bool) -> str:
        return self.blocks(following, depth - 1, 1, inside=inside)

    def branch(self, following: str, depth: int, inside: bool) -> str:
        targets = [self.side(following, depth, inside) for _ in range(self.draw(st.integers(2, 3)))]
        cases = [(condition(len(self.nodes) + number), target) for number, target in enumerate(targets[:-1])]
        return self.put("b", decide(*cases, otherwise=targets[-1]))

    def parallel(self, following: str, depth: int) -> str:
        meeting = self.put("j", join(following))
        count = self.draw(st.integers(2, 3))
        arms = [self.blocks(meeting, depth - 1, 2, empty=False, inside=True) for _ in range(count)]
        return self.put("p", parallel(meeting, *arms))


def condition(number: int) -> Document:
    """A condition that nothing is known about, different for every number."""
    return {"eq": [ref("input.amount"), const(number)]}


def edges_of(nodes: Document) -> list[tuple[str, str, str]]:
    """(source, exit, target) of every exit, read from the JSON alone."""
    return [(key, name, target) for key, node in nodes.items() for name, target in exits_of(node)]


def exits_of(node: Document) -> list[tuple[str, str]]:
    found = [("next", node["next"])] if "next" in node else []
    caught = [name for name in ("on_failure", "on_timeout", "on_failed") if isinstance(node.get(name), dict)]
    found += [(name, node[name]["next"]) for name in caught]
    found += [(f"cases.{number}", case["next"]) for number, case in enumerate(node.get("cases", ()))]
    found += [("otherwise", node["otherwise"])] if "otherwise" in node else []
    return found + [(f"arms.{name}", entry) for name, entry in node.get("arms", {}).items()]


def redirected(nodes: Document, source: str, exit_name: str, target: str) -> Document:
    """The same nodes with one exit leading elsewhere."""
    node = dict(nodes[source])
    first, _, rest = exit_name.partition(".")
    if first == "cases":
        node["cases"] = [
            {**case, "next": target} if number == int(rest) else case
            for number, case in enumerate(node["cases"])
        ]
    elif first == "arms":
        node["arms"] = {**node["arms"], rest: target}
    elif first in ("next", "otherwise"):
        node[first] = target
    else:
        node[first] = {"next": target}
    return {**nodes, source: node}


def with_merge_inputs(draw: st.DrawFn, nodes: Document, makers: list[str]) -> Document:
    """Every MERGE gets an input for each edge that leads to it."""
    filled = dict(nodes)
    for key, node in nodes.items():
        if node["kind"] == "MERGE":
            inputs = [
                {"from": source, "exit": exit_name, "value": draw(reads(makers))}
                for source, exit_name, target in edges_of(nodes)
                if target == key
            ]
            filled[key] = {**node, "inputs": inputs}
    return filled


def reads(makers: list[str]) -> st.SearchStrategy[Document]:
    nothing = st.just(const(1))
    return st.one_of(nothing, st.sampled_from(makers).map(ref)) if makers else nothing


@st.composite
def sound_nodes(draw: st.DrawFn, size: int = 12) -> tuple[str, Document]:
    """(start, nodes) of a graph that nests, without references to results."""
    sketch = Sketch(draw, size)
    last = sketch.put("e", end())
    start = sketch.blocks(last, 2, 4, inside=False)
    nodes = with_merge_inputs(draw, sketch.nodes, [])
    return start, nodes


@st.composite
def reading_nodes(draw: st.DrawFn, size: int = 12) -> tuple[str, Document]:
    """As `sound_nodes`, with references to facts of steps wherever they may stand, certain or not."""
    start, nodes = draw(sound_nodes(size))
    makers = [key for key, node in nodes.items() if node["kind"] in ("TASK", "WAIT", "POLL", "MERGE")]
    nodes = with_merge_inputs(draw, nodes, makers)
    failing = [key for key, node in nodes.items() if node["kind"] == "TASK"]
    for key, node in nodes.items():
        if node["kind"] in ("TASK", "POLL"):
            values = {
                f"x{number}": value for number, value in enumerate(draw(st.lists(reads(makers), max_size=2)))
            }
            caught = draw(st.booleans())
            if failing and caught:
                values["broken"] = ref(draw(st.sampled_from(failing)), of="failure")
            nodes[key] = {**node, "input": values}
        elif node.get("outcome") == "SUCCEEDED":
            nodes[key] = {**node, "output": draw(reads(makers))}
    return start, nodes


@st.composite
def broken_nodes(draw: st.DrawFn, size: int = 12) -> tuple[str, Document]:
    """A sound graph with one change that may or may not break it."""
    start, nodes = draw(sound_nodes(size))
    general = [_redirect, _flip_end, _remove, _without_exit]
    aimed = [_other_join, _swap_joins, _empty_arm, _jump, _fail_before_join, _no_parallel]
    has_arms = any(node["kind"] == "PARALLEL" for node in nodes.values())
    change = draw(st.sampled_from(general + (aimed * 2 if has_arms else [])))
    if draw(st.integers(0, 9)) == 0:
        start = draw(st.sampled_from(sorted(nodes)))
    nodes = change(draw, nodes)
    # Mostly tidied up, so that what the change itself breaks is not hidden behind what it leaves lying about.
    return start, _tidied(start, nodes) if draw(st.integers(0, 3)) else nodes


def _tidied(start: str, nodes: Document) -> Document:
    """Without nodes that cannot be reached, and with the right inputs for every MERGE."""
    reached: set[str] = set()
    todo = [start]
    while todo:
        key = todo.pop()
        if key in nodes and key not in reached:
            reached.add(key)
            todo += [target for _, target in exits_of(nodes[key])]
    kept = {key: node for key, node in nodes.items() if key in reached}
    for key in _of_kind(kept, "MERGE"):
        inputs = [
            {"from": source, "exit": name, "value": const(1)}
            for source, name, target in edges_of(kept)
            if target == key
        ]
        kept[key] = {**kept[key], "inputs": inputs}
    return kept or nodes


def _redirect(draw: st.DrawFn, nodes: Document) -> Document:
    """One or two exits lead elsewhere."""
    edges = edges_of(nodes)
    for source, exit_name, _ in draw(st.lists(st.sampled_from(edges), max_size=2)) if edges else ():
        nodes = redirected(nodes, source, exit_name, draw(st.sampled_from(sorted(nodes))))
    return nodes


def _flip_end(draw: st.DrawFn, nodes: Document) -> Document:
    ending = draw(st.sampled_from([key for key, node in nodes.items() if node["kind"] == "END"]))
    return {**nodes, ending: end() if nodes[ending]["outcome"] == "FAILED" else fail()}


def _remove(draw: st.DrawFn, nodes: Document) -> Document:
    gone = draw(st.sampled_from(sorted(nodes)))
    return {key: node for key, node in nodes.items() if key != gone} or nodes


def _empty_arm(draw: st.DrawFn, nodes: Document) -> Document:
    key = draw(st.sampled_from(_of_kind(nodes, "PARALLEL")))
    arm = draw(st.sampled_from(sorted(nodes[key]["arms"])))
    return redirected(nodes, key, f"arms.{arm}", nodes[key]["join"])


def _jump(draw: st.DrawFn, nodes: Document) -> Document:
    """An exit that leads to one JOIN leads to another, or past it."""
    source, exit_name, meeting = draw(st.sampled_from(_into_joins(nodes)))
    targets = [*_of_kind(nodes, "JOIN"), nodes[meeting]["next"]]
    return redirected(nodes, source, exit_name, draw(st.sampled_from(targets)))


def _fail_before_join(draw: st.DrawFn, nodes: Document) -> Document:
    source, exit_name, _ = draw(st.sampled_from(_into_joins(nodes)))
    return redirected({**nodes, "z": fail()}, source, exit_name, "z")


def _no_parallel(draw: st.DrawFn, nodes: Document) -> Document:
    """A BRANCH in place of a PARALLEL, so that its JOIN stands alone."""
    key = draw(st.sampled_from(_of_kind(nodes, "PARALLEL")))
    *first, last = nodes[key]["arms"].values()
    cases = [(condition(1000 + number), entry) for number, entry in enumerate(first)]
    return {**nodes, key: decide(*cases, otherwise=last)}


def _of_kind(nodes: Document, kind: str) -> list[str]:
    return [key for key, node in nodes.items() if node["kind"] == kind]


def _into_joins(nodes: Document) -> list[tuple[str, str, str]]:
    return [edge for edge in edges_of(nodes) if nodes[edge[2]]["kind"] == "JOIN"]


def _other_join(draw: st.DrawFn, nodes: Document) -> Document:
    parallels = [key for key, node in nodes.items() if node["kind"] == "PARALLEL"]
    joins = [key for key, node in nodes.items() if node["kind"] == "JOIN"]
    if not parallels:
        return nodes
    key = draw(st.sampled_from(parallels))
    return {**nodes, key: {**nodes[key], "join": draw(st.sampled_from(joins))}}


def _swap_joins(draw: st.DrawFn, nodes: Document) -> Document:
    """Two PARALLELs name each other's JOIN."""
    one, other = (draw(st.sampled_from(_of_kind(nodes, "PARALLEL"))) for _ in range(2))
    swapped = {
        one: {**nodes[one], "join": nodes[other]["join"]},
        other: {**nodes[other], "join": nodes[one]["join"]},
    }
    return {**nodes, **swapped}


def _without_exit(draw: st.DrawFn, nodes: Document) -> Document:
    """An arm, a case or a failure exit less."""
    places = [
        (key, name)
        for key, name, _ in edges_of(nodes)
        if name not in ("next", "otherwise") and not (name == "cases.0" and len(nodes[key]["cases"]) == 1)
    ]
    if not places:
        return nodes
    key, name = draw(st.sampled_from(places))
    node: dict[str, Any] = dict(nodes[key])
    first, _, rest = name.partition(".")
    if first == "arms" and len(node["arms"]) > 2:
        node["arms"] = {arm: entry for arm, entry in node["arms"].items() if arm != rest}
    elif first == "cases":
        node["cases"] = [case for number, case in enumerate(node["cases"]) if number != int(rest)]
    elif first != "arms":
        node[first] = "FAIL"
    return {**nodes, key: node}


def whole(start: str, nodes: Document) -> Document:
    """The complete document: handlers that take and give anything, a signal of its own for each wait."""
    signals: Document = {}
    filled: Document = {}
    for key, node in nodes.items():
        filled[key] = node
        if node["kind"] == "WAIT":
            signals[f"s.{key}"] = {"body": {}}
            filled[key] = {**node, "signal": f"s.{key}", "match": const("k")}
    asked = {"type": "object", "properties": {"state": {"enum": ["BAD", "OK", "RUN"]}}, "required": ["state"]}
    names = ("x0", "x1", "broken")
    handlers = {
        "do.it@1": handler({}, parameters={name: {} for name in names}, required=[]),
        "ask.it@1": handler(
            asked, recovery="READ_ONLY", parameters={name: {} for name in names}, required=[]
        ),
    }
    return document(filled, start, handlers=handlers, signals=signals)
