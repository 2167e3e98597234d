"""The project's own files, for tests that read them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("orbit_sdk", "orbit_server")
SKIPPED_FOLDERS = frozenset({".git", ".venv", "__pycache__", "_build", "htmlcov", ".hypothesis"})


def python_files(*packages: str) -> list[Path]:
    """Every Python file of the named packages, by path from the root."""
    return [
        path.relative_to(ROOT)
        for package in packages or PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    ]


def text_files() -> Iterator[Path]:
    """Every file of the repository that a reader may open, committed or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        names = [Path(name) for name in done.stdout.decode().split("\0") if name]
    else:  # an unpacked archive has no history
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
    for name in sorted(names):
        if (ROOT / name).is_file() and not SKIPPED_FOLDERS.intersection(name.parts):
            yield name
