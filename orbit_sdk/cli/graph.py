"""`orbit graph`: workflows as pictures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.check import SomeTargets
from orbit_sdk.cli.command import command
from orbit_sdk.cli.compiling import load_or_leave
from orbit_sdk.cli.config import find_config
from orbit_sdk.cli.connection import Token, Url, connected, workflow_id
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from orbit_sdk.definition.models import Definition

__all__ = ["graph"]

_LARGEST_FILE = 64 * 1024 * 1024


class Format(StrEnum):
    """What a picture is written as."""

    SVG = "svg"
    MERMAID = "mermaid"


@command(
    "orbit graph app.py > app.svg",
    "orbit graph app.py --format mermaid",
    "orbit graph workflows/ --output docs/pictures",
    "orbit graph app.py:payment --state key:A-17 --output now.svg",
)
def graph(
    targets: SomeTargets = None,
    form: Annotated[Format, typer.Option("--format", help="What to write.")] = Format.SVG,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="A file, or a folder for several.", show_default=False
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="WORKFLOW",
            help="Colour the steps of an instance: its id, key:<key>, or a file of `orbit show --json`.",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Draw workflows: arms, catches and time-outs told apart, for light and dark pages."""
    out = Output(json=json)
    loaded = load_or_leave(find_config().targets(targets), out)
    definitions = [source.definition for source in loaded.sources if source.definition is not None]
    states = None if state is None else _states(state, url, token)
    if states is not None and (form is Format.MERMAID or len(definitions) > 1):
        raise typer.BadParameter("--state needs one workflow (file.py:name) and the format svg")
    texts = {f"{each.id}.v{each.version}": _text(each, form, states) for each in definitions}
    if output is None:
        _print(texts, out)
        return
    written = _write(texts, output, form)
    if json:
        out.data({"written": [str(path) for path in written]})
    for path in written:
        out.note(f"wrote {path}")


def _text(definition: Definition, form: Format, states: dict[str, str] | None) -> str:
    from orbit_sdk.check.picture import picture_mermaid, picture_svg

    return picture_svg(definition, states) if form is Format.SVG else picture_mermaid(definition)


def _print(texts: dict[str, str], out: Output) -> None:
    if out.json:
        out.data({"items": [{"name": name, "text": text} for name, text in texts.items()]})
    elif len(texts) == 1:
        out.line(next(iter(texts.values())).rstrip("\n"))
    else:
        raise typer.BadParameter("there are several workflows: give --output, or name one file.py:name")


def _write(texts: dict[str, str], output: Path, form: Format) -> list[Path]:
    suffix = ".svg" if form is Format.SVG else ".mmd"
    is_file = len(texts) == 1 and bool(output.suffix)
    paths = [output] if is_file else [output / f"{name}{suffix}" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return paths


def _states(text: str, url: str | None, token: str | None) -> dict[str, str]:
    if Path(text).is_file():
        return _states_of_file(Path(text))
    with connected(url, token) as client:
        steps = client.workflows.steps(workflow_id(client, text))
    return {step.key: str(step.state) for step in steps.items}


def _states_of_file(path: Path) -> dict[str, str]:
    from orbit_sdk.values.json_strict import parse_json

    document: Any = parse_json(path.read_bytes(), max_bytes=_LARGEST_FILE)
    try:
        return {step["key"]: step["state"] for step in document["steps"]}
    except (TypeError, KeyError):
        raise InvalidArgument(f"{path} holds no steps: write it with `orbit show … --json`") from None
