"""B10: what a developer waits for: the import, the check of a file, the compilation of many definitions."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import orbit_sdk as orbit
from orbit_sdk.check import check_definition
from orbit_sdk.definition.models import Definition
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
        **_compile(size.definitions),
    }


def _run(*arguments: str) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return time.perf_counter() - began, done.stdout


def _compile(count: int) -> Figures:
    """The whole, and beside it what pydantic alone needs to parse the same documents."""

    def chain(n: int) -> int:
        for place in range(NODES - 1):
            n = noop.options(key=f"s{place}")(n)
        return n

    documents: list[bytes] = []
    began = time.perf_counter()
    for number in range(count):
        compiled = orbit.workflow(f"bench.w{number}", version=1)(chain).compile()
        assert not check_definition(compiled.definition)
        documents.append(compiled.definition.canonical())
    compiled_at = time.perf_counter()
    for document in documents:
        Definition.model_validate_json(document)
    parsed_at = time.perf_counter()
    return {
        f"check_and_compile_{count}_s": compiled_at - began,
        f"pydantic_parses_{count}_s": parsed_at - compiled_at,
    }
