"""Prove that digests are equal under the oldest and the newest supported pydantic, on each Python given.

Each combination gets an environment of its own, in which the tests of handlers and builder run; among them is
the one that compares every digest with a file. Run on demand: it installs packages.

    python tools/check_pydantic_floor.py [PYTHON …]      the Pythons to try, default: this one
    python tools/check_pydantic_floor.py --write         write the file of digests anew
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HELD = ROOT / "tests" / "unit" / "builder" / "digests.json"
TESTS = ("tests/unit/builder", "tests/unit/handlers")
BESIDE = ("email-validator", "pytest", "pytest-asyncio", "pytest-timeout")


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        return _write()
    wanted = _dependencies()
    floor = next(found[1] for one in wanted if (found := re.fullmatch(r"pydantic>=([\d.]+)", one)))
    failed = [
        f"{python} with pydantic {version or 'newest'}"
        for python in arguments or [sys.executable]
        for version in (f"{floor}.0" if floor.count(".") == 1 else floor, None)
        if not _passes(python, wanted, version)
    ]
    for one in failed:
        print(f"FAILED: {one}")
    return 1 if failed else 0


def _write() -> int:
    sys.path.insert(0, str(ROOT))
    from tests.unit.builder.test_digests import found

    HELD.write_text(json.dumps(found(), indent=2) + "\n")
    print(f"{HELD.relative_to(ROOT)} written")
    return 0


def _dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [str(one) for one in project["dependencies"]]


def _passes(python: str, wanted: list[str], version: str | None) -> bool:
    pydantic = [f"pydantic=={version}"] if version else ["pydantic"]
    packages = [*(one for one in wanted if not one.startswith("pydantic")), *pydantic, *BESIDE]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        inside = str(Path(folder) / "bin" / "python")
        install = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(install, check=True)
        shown = "import pydantic, sys; print(sys.version.split()[0], 'with pydantic', pydantic.VERSION)"
        subprocess.run([inside, "-c", shown], check=True)
        options = ["-q", "--noconftest", "-c", os.devnull, f"--rootdir={ROOT}", "--asyncio-mode=auto"]
        options += ["--import-mode=importlib", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [inside, "-m", "pytest", *options, *TESTS], check=False, cwd=ROOT, env=environment
        )
        return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
