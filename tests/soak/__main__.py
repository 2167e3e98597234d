"""`python -m tests.soak --minutes 20 --db mariadb`: exit code 0 when nothing was wrong."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tests.soak.settings import SoakSettings
from tests.soak.soak import soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Storm a whole installation.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--db", choices=["sqlite", "mariadb"], default="sqlite")
    parser.add_argument("--seed", type=int, default=None, help="repeats the faults of an earlier run")
    parser.add_argument("--folder", type=Path, default=None, help="where logs and the report are kept")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    folder = options.folder or Path(tempfile.mkdtemp(prefix="orbit-soak-"))
    settings = SoakSettings(options.minutes * 60, options.db, folder, seed)
    print(f"soak on {options.db} for {options.minutes} minutes, seed {seed}, in {folder}", flush=True)
    outcome = asyncio.run(soak(settings, lambda line: print(line, flush=True)))
    print(outcome)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
