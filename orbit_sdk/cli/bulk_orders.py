"""What `orbit bulk plan` sends: options as the bodies of the interface."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from orbit_sdk.cli.control import Effects
from orbit_sdk.cli.reviews import Basis
from orbit_sdk.cli.values import duration_ms, json_value

__all__ = [
    "Kind",
    "Verdict",
    "action_body",
    "filter_body",
    "grant_body",
    "keys_of",
    "probe_body",
    "restart_body",
]


class Kind(StrEnum):
    """What a bulk does to each item."""

    REVIEW = "review"
    PROBE = "probe"
    GRANT = "grant"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RESTART = "restart"
    TASK_CANCEL = "task-cancel"
    TASK_REVIEW = "task-review"
    TASK_RETRY = "task-retry"
    TASK_PROBE = "task-probe"


class Verdict(StrEnum):
    """What a person may decide; rerun is for steps, cancelled for tasks."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RERUN = "rerun"
    CANCELLED = "cancelled"


VerdictOption = Annotated[
    Verdict | None,
    typer.Option("--verdict", help="For review and task-review: the truth.", case_sensitive=False),
]
BasisOption = Annotated[
    Basis,
    typer.Option("--basis", help="What a decision rests on. PROVEN needs --evidence.", case_sensitive=False),
]
EffectsOption = Annotated[
    Effects | None,
    typer.Option("--effects", help="For restart. same: the effects of the origin. new: other ones."),
]
AdoptOption = Annotated[
    bool, typer.Option("--adopt", help="Each decision takes its own newest stored evidence.")
]
Attempts = Annotated[int, typer.Option("--attempts", min=0, help="For grant: so many attempts more.")]
Rounds = Annotated[int, typer.Option("--rounds", min=0, help="For grant: so many rounds more.")]
Time = Annotated[
    str | None, typer.Option("--time", metavar="DURATION", help="For grant: so much later a deadline, 2h.")
]
ToVersion = Annotated[int | None, typer.Option("--to-version", min=1, help="For restart: another version.")]
Ask = Annotated[
    str | None,
    typer.Option(
        "--ask",
        metavar="NAME@VERSION",
        help="For probe and task-probe: a READ_ONLY handler. Default: the verify handler of each.",
    ),
]
Within = Annotated[
    str | None,
    typer.Option("--within", metavar="DURATION", help="For probes: how long each waits for a worker. [10m]"),
]
Definition = Annotated[str | None, typer.Option("--definition", help="Only of this definition.")]
Version = Annotated[int | None, typer.Option("--version", min=1, help="Only of this version.")]
State = Annotated[str | None, typer.Option("--state", help="Only in this state.")]
Paused = Annotated[
    bool | None, typer.Option("--paused/--not-paused", help="Only paused workflows, or only others.")
]
Step = Annotated[str | None, typer.Option("--step", help="Only this step.")]
ReviewClass = Annotated[
    str | None, typer.Option("--class", help="Only reviews of this class, such as UNKNOWN.")
]
Because = Annotated[
    str | None, typer.Option("--because", help="Only reviews for this reason, as `orbit stuck` tells it.")
]
Queue = Annotated[str | None, typer.Option("--queue", help="Only tasks of this queue.")]
Handler = Annotated[str | None, typer.Option("--handler", help="Only tasks of this handler.")]
Error = Annotated[str | None, typer.Option("--error", help="Only tasks with this error code.")]
Keys = Annotated[
    list[str] | None, typer.Option("--key", help="Only with this business key; may be repeated.")
]
KeysFrom = Annotated[
    Path | None,
    typer.Option(
        "--keys-from", help="Only with a business key of this file, one a line.", exists=True, dir_okay=False
    ),
]
_PROBES = (Kind.PROBE, Kind.TASK_PROBE)
_DECIDES = (Kind.REVIEW, Kind.TASK_REVIEW)
_RESTS = (*_DECIDES, Kind.TASK_RETRY)


def action_body(  # an order in its parts
    kind: Kind,
    verdict: Verdict | None,
    basis: Basis,
    said: Mapping[str, str | None],
    result: str | None,
    *,
    adopt: bool,
) -> dict[str, Any]:
    """The action. Raises BadParameter for options that do not fit it."""
    name = kind.value.replace("-", ".") if kind.value.startswith("task-") else f"workflow.{kind.value}"
    body: dict[str, Any] = {"kind": name}
    if (verdict is None) == (kind in _DECIDES):
        wants = "is needed for a review" if verdict is None else f"does not fit {kind.value}"
        raise typer.BadParameter(wants, param_hint="--verdict")
    if kind not in _RESTS:
        return body
    if adopt and (kind not in _DECIDES or result is not None):
        raise typer.BadParameter("is for decisions, and stands instead of --result", param_hint="--adopt")
    if basis is Basis.PROVEN and not said.get("evidence") and not adopt:
        raise typer.BadParameter(
            "say what proves it; without proof, say --basis accepted_risk", param_hint="--evidence"
        )
    body["basis"] = basis.value
    if verdict is not None:
        body["verdict"] = verdict.value.upper()
    body.update({key: value for key, value in said.items() if value is not None})
    if adopt:
        body["adopt"] = True
    if result is not None:
        if verdict is not Verdict.SUCCEEDED:
            raise typer.BadParameter("only what succeeded has a result", param_hint="--result")
        body["result"] = json_value(result, "--result")
    return body


def grant_body(kind: Kind, attempts: int, rounds: int, time: str | None) -> dict[str, Any]:
    """What a grant says beside its kind. Raises BadParameter."""
    said = {"attempts": attempts, "rounds": rounds, "time_ms": duration_ms(time, "--time") if time else 0}
    given = {name: value for name, value in said.items() if value}
    if bool(given) != (kind is Kind.GRANT):
        wants = f"does not fit {kind.value}" if given else "say what is granted"
        raise typer.BadParameter(wants, param_hint="--attempts, --rounds, --time")
    return given


def probe_body(kind: Kind, ask: str | None, within: str | None) -> dict[str, Any]:
    """What a probe says beside its kind. Raises BadParameter."""
    if kind not in _PROBES and (ask is not None or within is not None):
        raise typer.BadParameter(f"does not fit {kind.value}", param_hint="--ask, --within")
    said: dict[str, Any] = {} if ask is None else {"handler": ask}
    return said if within is None else {**said, "start_within_ms": duration_ms(within, "--within")}


def restart_body(kind: Kind, effects: Effects | None, to_version: int | None) -> dict[str, Any]:
    """What a restart says beside its kind. Raises BadParameter."""
    if kind is not Kind.RESTART:
        if effects is not None or to_version is not None:
            raise typer.BadParameter(f"does not fit {kind.value}", param_hint="--effects, --to-version")
        return {}
    if effects is None:
        raise typer.BadParameter("say whose effects a restart means", param_hint="--effects")
    said: dict[str, Any] = {"effects": effects.value.upper()}
    return said if to_version is None else {**said, "version": to_version}


def filter_body(**given: Any) -> dict[str, Any]:
    """The filter: what was given, with states and classes as the interface writes them."""
    body = {name: value for name, value in given.items() if value is not None}
    for name in ("state", "review_class"):
        if name in body:
            body[name] = body[name].upper()
    return body


def keys_of(given: list[str] | None, file: Path | None) -> list[str] | None:
    """Business keys that were given one by one or in a file."""
    keys = list(given or ())
    if file is not None:
        keys += [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return keys or None
