"""Make sure the tests find a MariaDB server program, and print where it is.

When it is missing and this user may install system packages (Debian's apt-get, as root or with
password-free sudo), it is installed: only the server program, no service, nothing listens afterwards.
Otherwise the exit code is 1 and the message says what to do: half of the storage tests must never
disappear unnoticed. ORBIT_TEST_WITHOUT_MARIADB=1 is the one way to run without it.

    python tools/find_mariadbd.py
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.debian import install  # a script finds its neighbours only now

WITHOUT = "ORBIT_TEST_WITHOUT_MARIADB"
FOLDERS = "/usr/sbin:/usr/libexec:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin"
PACKAGE = "mariadb-server-core"


def find(program: str = "mariadbd") -> str | None:
    """Path of a MariaDB program, or None. Server programs often lie outside an ordinary user's PATH."""
    return shutil.which(program, path=os.environ.get("PATH", "") + os.pathsep + FOLDERS)


def main() -> int:
    path = find()
    if path is None and os.environ.get(WITHOUT) == "1":
        print(f"mariadbd is missing; {WITHOUT}=1: tests that need it are skipped", file=sys.stderr)
        return 0
    if path is None and install("mariadbd", [PACKAGE, "mariadb-client-core"]):
        path = find()
    if path is None:
        print(
            f"mariadbd is missing and could not be installed. Install MariaDB (on Debian and Ubuntu:\n"
            f"apt-get install {PACKAGE}) or set {WITHOUT}=1 to run only what does not need it.",
            file=sys.stderr,
        )
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
