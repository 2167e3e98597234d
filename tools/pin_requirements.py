"""Resolve the dependencies of pyproject.toml and write them, pinned and hashed, to requirements/.

Three files: what the build of this project needs, what a server needs, and what a developer needs.
The hashes make an install fail rather than take a file nobody has seen. The files name no package index,
so they hold wherever the reader's own configuration fetches from.

    python tools/pin_requirements.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "requirements"
BANNER = "# Written by tools/pin_requirements.py from pyproject.toml. Do not edit.\n"
COMMON = (
    "--quiet",
    "--generate-hashes",
    "--allow-unsafe",
    "--strip-extras",
    "--no-annotate",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
)
# Developers first: the smaller sets are then held to the very same versions.
SETS = {
    "dev": ("--extra", "server", "--extra", "dev"),
    "server": ("--extra", "server"),
    "build": ("--build-deps-for", "editable", "--only-build-deps"),
}


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        venv.create(folder / "env", with_pip=True)
        python = str(folder / "env" / "bin" / "python")
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--upgrade", "pip", "pip-tools"], check=True
        )
        constraint: tuple[str, ...] = ()
        for name, options in SETS.items():
            output = folder / f"{name}.txt"
            command = [python, "-m", "piptools", "compile", *COMMON, *options, *constraint]
            subprocess.run([*command, "--output-file", str(output), "pyproject.toml"], check=True, cwd=ROOT)
            constraint = constraint or ("--constraint", str(output))
            (TARGET / f"{name}.txt").write_text(BANNER + "\n" + output.read_text())
            print(f"requirements/{name}.txt written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
