"""`orbit init`: a small project that works."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.errors import Conflict, InvalidArgument
from orbit_sdk.values.names import is_name

__all__ = ["init"]

_FILES: Final = {
    "app.py": "app.py.txt",
    "test_app.py": "test_app.py.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
}
"""What is written, and the template it is made of."""


@command("orbit init shop", "orbit init .")
def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The folder to make; its name becomes that of the workflow.")
    ],
    json: Json = False,
) -> None:
    """Start a project: a workflow with its handlers, a test and a README.

    Nothing that is there already is changed.
    """
    out = Output(json=json)
    folder = Path(name)
    word = _word(folder.resolve().name)
    written = _write(folder, {"word": word, "title": folder.resolve().name})
    if json:
        out.data({"folder": str(folder), "files": written, "workflow": f"{word}.order"})
        return
    out.line(f"{folder}/ holds {', '.join(written)}", "bold")
    lead = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    out.line(f"  Check   {lead}orbit check app.py", "green")
    out.line(f"  Run     {lead}orbit dev app.py --reload")
    out.line(f'  Start   orbit start {word}.order --input \'{{"number": "A-1", "amount": 100}}\' --watch')
    out.line(f"  Test    {lead}pytest")


def _word(name: str) -> str:
    """The folder's name as the first word of ids. Raises InvalidArgument when nothing is left of it."""
    word = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not is_name(word):
        raise InvalidArgument.at("NAME", f"{name!r} cannot name a workflow: start it with a letter")
    return word


def _write(folder: Path, values: dict[str, str]) -> list[str]:
    """Write every file. Raises Conflict, before the first, when one of them is there already."""
    there = [file for file in _FILES if (folder / file).exists() and file != ".gitignore"]
    if there:
        raise Conflict(f"{folder} holds {', '.join(there)} already: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for file, template in _FILES.items():
        if (folder / file).exists():
            continue
        text = (files("orbit_sdk.cli") / "template" / template).read_text(encoding="utf-8")
        for key, value in values.items():
            text = text.replace("{{" + key + "}}", value)
        (folder / file).write_text(text, encoding="utf-8")
        written.append(file)
    return written
