"""Random definitions that are structurally valid: nested branches, parallels, waits, timers, polls and
merges.

Built backwards: a part is written for the node it leads to, and gives back the node it is entered by.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.documents import branch, document, end, failed, join, merge, parallel, poll, ref, task, timer, wait

SIGNAL_KEYS = ("m", "n")
CHOICES = ("x", "y", "w")


class _Writer:
    """Writes one document; `random` decides everything."""

    def __init__(self, random: Random, size: int) -> None:
        self.random = random
        self.left = size
        self.nodes: dict[str, dict[str, Any]] = {}
        self.count = 0

    def key(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def add(self, kind: str, node: dict[str, Any]) -> str:
        key = self.key(kind)
        self.nodes[key] = node
        return key

    def sequence(self, then: str, depth: int, *, at_least: int = 1) -> str:
        """One to three parts that lead to `then`."""
        for _ in range(max(at_least, self.random.randint(at_least, 3))):
            then = self.part(then, depth)
        return then

    def part(self, then: str, depth: int) -> str:
        self.left -= 1
        simple = [self.task, self.task, self.wait, self.timer, self.poll]
        nested = [self.branch, self.merged, self.parallel] if depth > 0 and self.left > 0 else []
        return self.random.choice(simple + nested)(then, depth)

    def policy(self, then: str) -> Any:
        """What a failure exit does; a catch arm ends in a failure or goes on with the others."""
        chosen = self.random.choice(("REVIEW", "FAIL", "END", "GOTO"))
        if chosen in ("REVIEW", "FAIL"):
            return chosen
        if chosen == "END":
            return {"next": self.add("failed", failed())}
        return {"next": self.sequence(then, 0) if self.left > 0 and self.random.random() < 0.5 else then}

    def task(self, then: str, _depth: int) -> str:
        handler = self.random.choice(("read", "safe", "risky"))
        more: dict[str, Any] = {"attempts": self.random.randint(1, 3)}
        if self.random.random() < 0.2:
            more["start_within_ms"] = 1_800_000
        return self.add("task", task(then, handler, self.policy(then), value=ref("input"), **more))

    def wait(self, then: str, _depth: int) -> str:
        early = self.random.choice(("DROP", "KEEP"))
        key = self.random.choice(SIGNAL_KEYS)
        node = wait(then, self.policy(then), key, early, self.random.choice((60, 3600)))
        return self.add("wait", node)

    def timer(self, then: str, _depth: int) -> str:
        return self.add("timer", timer(then, self.random.choice((1, 60, 900))))

    def poll(self, then: str, _depth: int) -> str:
        node = poll(
            then,
            self.policy(then),
            receipt=self.random.random() < 0.5,
            rounds=self.random.randint(1, 4),
            within=self.random.choice((60, 600)),
            attempts=self.random.randint(1, 3),
        )
        return self.add("poll", node)

    def branch(self, then: str, depth: int) -> str:
        cases = {
            value: self.sequence(then, depth - 1, at_least=0)
            for value in CHOICES[: self.random.randint(1, 2)]
        }
        return self.add("branch", branch(ref("input", "choice"), then, **cases))

    def merged(self, then: str, _depth: int) -> str:
        """Two exclusive tasks whose values meet in a MERGE."""
        key = self.key("merge")
        left, right = (self.add("task", task(key, "read", "FAIL", value=ref("input"))) for _ in range(2))
        self.nodes[key] = merge(then, (left, "next", ref(left)), (right, "next", {"const": 1}))
        return self.add("branch", branch(ref("input", "choice"), right, x=left))

    def parallel(self, then: str, depth: int) -> str:
        meet = self.add("join", join(then))
        names = ("left", "middle", "right")[: self.random.randint(2, 3)]
        arms = {name: self.sequence(meet, depth - 1) for name in names}
        policy = self.random.choice(("STOP_OTHERS", "LET_OTHERS_FINISH"))
        return self.add("parallel", parallel(meet, policy, **arms))


def random_document(random: Random, size: int, depth: int) -> dict[str, Any]:
    """A definition of about `size` nodes, nested at most `depth` deep."""
    writer = _Writer(random, size)
    writer.nodes["finish"] = end()
    start = writer.sequence("finish", depth)
    return document(writer.nodes, start)


def randoms() -> st.SearchStrategy[Random]:
    """A whole history from one seed: evenly spread from the first example on, which drawn choices are not."""
    return st.integers(min_value=0, max_value=2**48).map(Random)


def documents(max_size: int = 12, max_depth: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Structurally valid definitions as JSON. The input is `{"choice": one of CHOICES or another text}`."""
    return st.builds(
        random_document,
        randoms(),
        st.integers(min_value=1, max_value=max_size),
        st.integers(min_value=0, max_value=max_depth),
    )
