"""Install what the tests need and Debian has, where this user may do that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

__all__ = ["install"]


def install(program: str, packages: Sequence[str]) -> bool:
    """Install packages with apt-get, as root or with password-free sudo. True when that worked."""
    apt = shutil.which("apt-get")
    if apt is None:
        return False
    prefix: list[str] = []
    if os.geteuid() != 0:
        sudo = shutil.which("sudo")
        if (
            sudo is None
            or subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode != 0
        ):
            return False
        prefix = [sudo, "-n"]
    print(f"{program} is missing: installing {packages[0]}", file=sys.stderr)
    quiet = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", apt, "-qq"]
    # An outdated package list is no reason to fail: the install itself decides.
    subprocess.run([*quiet, "update"], check=False, stdout=sys.stderr)
    command = [*quiet, "install", "-y", "--no-install-recommends", *packages]
    return subprocess.run(command, check=False, stdout=sys.stderr).returncode == 0
