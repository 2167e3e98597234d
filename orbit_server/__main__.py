"""`python -m orbit_server`: a server process. Its settings come from `ORBIT_*` variables and these options.

Once it answers requests it prints one line of JSON to standard output: `{"url": …}`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import fields

from orbit_sdk.errors import OrbitError
from orbit_server.bootstrap import run
from orbit_server.settings import Settings, load_settings


def main() -> int:
    """Exit code 0 after an orderly stop, 2 for wrong settings, 3 when the database is not fit."""
    parser = argparse.ArgumentParser(prog="python -m orbit_server", description="Run an Orbit server.")
    for each in fields(Settings):
        if each.name == "limits":
            continue
        option = f"--{each.name.replace('_', '-')}"
        if each.type == "bool":
            parser.add_argument(option, action="store_const", const=True)
        else:
            parser.add_argument(option, type=int if each.type == "int" else str)
    options = vars(parser.parse_args())
    try:
        settings = load_settings(os.environ, **options)
        settings.check_transport()
    except OrbitError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    try:
        run(settings, started=_started)
    except (OrbitError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


def _started(url: str) -> None:
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
