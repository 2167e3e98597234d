"""B10: what a developer waits for: the import, the check of a file, the compilation of many definitions."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import orbit_sdk as orbit
from orbit_sdk.check import check_definition
from tests.bench.flows import noop
from tests.bench.sizes import Size
from tests.server import ROOT

Figures = dict[str, Any]
NODES: Final = 30
_IMPORT: Final = (
    "import time; began = time.perf_counter(); import orbit_sdk; print(time.perf_counter() - began);"
    "orbit_sdk.workflow; print(time.perf_counter() - began)"
)


def commands(size: Size) -> Figures:
    """Seconds of each, in processes of their own where the process is what is waited for."""
    imported, used = map(float, _run("-c", _IMPORT)[1].split())
    return {
        "import_s": imported,
        "import_and_first_use_s": used,
        "check_one_file_s": _run("-m", "orbit_sdk.cli", "check", str(Path(__file__).parents[1] / "flows.py"))[
            0
        ],
        f"check_and_compile_{size.definitions}_s": _compile(size.definitions),
    }


def _run(*arguments: str) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return time.perf_counter() - began, done.stdout


def _compile(count: int) -> float:
    def chain(n: int) -> int:
        for place in range(NODES - 1):
            n = noop.options(key=f"s{place}")(n)
        return n

    began = time.perf_counter()
    for number in range(count):
        compiled = orbit.workflow(f"bench.w{number}", version=1)(chain).compile()
        assert not check_definition(compiled.definition)
    return time.perf_counter() - began
