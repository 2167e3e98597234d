"""`python -m tests.bench.profile B1a [--dialect sqlite]`: where the CPU time of a step goes, phase by phase.

Every process samples itself (see `sampler/`); the samples are sorted into phases by the code they were in.
The storage's own metrics stand beside them as wall time per step.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from orbit_sdk.client import OrbitClient
from tests.bench.run import ROWS
from tests.bench.sizes import SIZES
from tests.bench.stage import Stage, stage
from tests.databases import running_mariadb
from tests.server import ROOT

_RULES: Final = (
    ("load", "orbit_server/storage/dialects.py", ("select",)),
    ("touch", "orbit_server/storage/dialects.py", ("touch",)),
    ("save", "orbit_server/storage/dialects.py", ("insert", "update", "delete")),
    ("load", "orbit_server/storage/kinds.py", ("load",)),
    ("save", "orbit_server/storage/kinds.py", ("save",)),
    ("resolve", "orbit_server/storage/group.py", ("_gather",)),
    ("save", "orbit_server/storage/group.py", ("_save",)),
    ("decide", "orbit_server/storage/group.py", ()),
    ("decide", "orbit_server/storage/book.py", ()),
    ("commit", "orbit_server/storage/sqlite.py", ("_transact",)),
    ("commit", "orbit_server/storage/mysql.py", ("transact",)),
    ("read", "orbit_server/storage/sqlite.py", ("_read", "read")),
    ("read", "orbit_server/storage/mysql.py", ("_read", "read")),
    ("committer", "orbit_server/storage/", ()),
    ("dispatch", "orbit_server/pulse/dispatch/", ()),
    ("socket", "orbit_server/gateway/", ()),
    ("socket", "orbit_sdk/protocol/", ()),
    ("socket", "/wsproto/", ()),
    ("socket", "/websockets/", ()),
    ("HTTP", "orbit_server/api/", ()),
    ("HTTP", "/quart/", ()),
    ("HTTP", "/hypercorn/", ()),
    ("HTTP", "/h11/", ()),
    ("loops", "orbit_server/loops/", ()),
)
"""Phase, part of a file's path, functions (none: all). The innermost frame that a rule knows decides."""


def phase_of(stack: Sequence[str]) -> str:
    """The phase of a sample, its stack innermost first."""
    for frame in stack:
        path, _, function = frame.rpartition(":")
        for phase, part, functions in _RULES:
            if part in path and (not functions or function in functions):
                return phase
    return "event loop" if any("uvloop" in one or "asyncio" in one for one in stack) else "other"


def storage_wall(text: str) -> dict[str, float]:
    """Seconds per phase from the page of metrics."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith('orbit_storage_phase_seconds_sum{phase="'):
            found[name.split('"')[1]] = float(value)
        elif name in ("orbit_storage_groups_total", "orbit_storage_commands_total"):
            found[name] = float(value)
    return found


def _metrics(built: Stage) -> dict[str, float]:
    async def ask(client: OrbitClient) -> str:
        import httpx

        async with httpx.AsyncClient() as plain:
            answer = await plain.get(f"{built.server.url}/metrics", headers=built.server.headers)
            return answer.text

    return storage_wall(built.run(ask))


def _sorted_samples(path: Path) -> tuple[Counter[str], Counter[str], float]:
    """CPU nanoseconds by phase and by innermost function, and in all."""
    phases: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for spent, _thread, *stack in json.loads(path.read_text()):
        phases[phase_of(stack)] += spent
        inner = next((frame for frame in stack if str(ROOT) in frame or "site-packages" in frame), stack[0])
        path_text, _, function = inner.rpartition(":")
        functions[f"{'/'.join(path_text.split('/')[-3:])}:{function}"] += spent
    return phases, functions, float(sum(phases.values()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-profile")
    parser.add_argument("row", help="a row, or the beginning of one")
    parser.add_argument("--dialect", choices=("sqlite", "mariadb"), default="sqlite")
    parser.add_argument("--top", type=int, default=25, help="functions to name per process")
    options = parser.parse_args()
    name = next(row for row in ROWS if row.startswith(options.row))
    with tempfile.TemporaryDirectory(prefix="orbit-profile-") as folder:
        if options.dialect == "sqlite":
            _profile(name, options, Path(folder), None)
        else:
            with running_mariadb(Path(folder) / "m", durable=True) as server:
                _profile(name, options, Path(folder), server)
    return 0


def _profile(name: str, options: argparse.Namespace, folder: Path, mariadb: Any) -> None:
    samples = folder / "samples"
    samples.mkdir()
    row, size = ROWS[name], replace(SIZES["quick"], runs=1)
    assert row.on_stage is not None, "this row has no server to look into"
    sys.path.insert(0, str(Path(__file__).parent / "sampler"))
    import sitecustomize as sampler  # type: ignore[import-not-found, unused-ignore]

    own = sampler.start(str(samples))
    with stage(options.dialect, mariadb, samples=samples, worker=row.worker) as built:
        before = _metrics(built)
        (samples / "on").touch()
        figures = row.on_stage(built, size)
        (samples / "on").unlink()
        after = _metrics(built)
        roles = {built.server.pid: "server", own: "client"} | {one.pid: "worker" for one in built.workers}
        expected = {samples / f"{pid}.json" for pid in roles}
        sampler.await_files(expected)
    print(f"{name} on {options.dialect}: {row.title}")
    print("  " + "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    steps = figures.get("steps_per_s")
    by_role: dict[str, Any] = defaultdict(list)
    for path in sorted(expected):
        by_role[roles[int(path.stem)]].append(_sorted_samples(path))
    total = sum(one[2] for found in by_role.values() for one in found)
    scale = (figures["cpu_ms_per_step"] / total) if "cpu_ms_per_step" in figures and total else 1 / 1e6
    for role, found in by_role.items():
        for phases, functions, spent in found:
            print(f"\n{role}: {spent * scale:.3f} {'ms CPU per step' if steps else ''} ({spent / 1e9:.2f} s)")
            for phase, part in phases.most_common():
                print(f"  {phase:12} {part * scale:8.4f}  {part / spent:6.1%}")
            print("  the innermost code of ours and of libraries:")
            for function, part in functions.most_common(options.top):
                print(f"    {part / spent:6.1%}  {function}")
    groups = after["orbit_storage_groups_total"] - before["orbit_storage_groups_total"]
    commands = after["orbit_storage_commands_total"] - before["orbit_storage_commands_total"]
    print(f"\nstorage: {groups:.0f} transactions, {commands / max(1, groups):.1f} commands in each; seconds:")
    for phase, seconds in after.items():
        if not phase.startswith("orbit_"):
            print(f"  {phase:12} {seconds - before.get(phase, 0):8.3f}")


if __name__ == "__main__":
    sys.exit(main())
