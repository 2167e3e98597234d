"""Make sure the tests find Node, which the worker in JavaScript runs on, and print where it is.

When it is missing and this user may install system packages (Debian's apt-get, as root or with password-free
sudo), it is installed. Otherwise the exit code is 1 and the message says what to do: that a stranger can
write a worker from the protocol's page must not go unproved unnoticed. ORBIT_TEST_WITHOUT_NODE=1 is the one
way to run without it.

    python tools/find_node.py
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.debian import install  # a script finds its neighbours only now

WITHOUT = "ORBIT_TEST_WITHOUT_NODE"
PACKAGE = "nodejs"
OLDEST = 18


def find() -> str | None:
    """Path of a Node that is new enough, or None."""
    for name in ("node", "nodejs"):
        path = shutil.which(name)
        if path is not None and (_major(path) or 0) >= OLDEST:
            return path
    return None


def _major(path: str) -> int | None:
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.", told)
    return None if found is None else int(found[1])


def missing() -> str:
    """What to do about it."""
    return (
        f"Node {OLDEST} or newer is missing and could not be installed. Install it (on Debian and Ubuntu:\n"
        f"apt-get install {PACKAGE}) or set {WITHOUT}=1 to run only what does not need it."
    )


def main() -> int:
    path = find()
    if path is None and os.environ.get(WITHOUT) == "1":
        print(f"Node is missing; {WITHOUT}=1: tests that need it are skipped", file=sys.stderr)
        return 0
    if path is None and install("Node", [PACKAGE]):
        path = find()
    if path is None:
        print(missing(), file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
