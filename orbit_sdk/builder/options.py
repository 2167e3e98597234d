"""Options that a word of the language does not have, or needs: told with the nearest name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from orbit_sdk.check.words import near

__all__ = ["option_problem"]

_UNEXPECTED = re.compile(r"([A-Za-z_.]+)\(\) got an unexpected keyword argument '(\w+)'")
_MISSING = re.compile(r"([A-Za-z_.]+)\(\) missing \d+ required keyword-only arguments?: (.+)$")
_NAME = re.compile(r"'(\w+)'")


def option_problem(error: BaseException) -> tuple[str, str] | None:
    """What was found and what to write when the author's line gave one of Orbit's words a keyword that is not
    there, or left out one that it needs. None for everything else.
    """
    if not isinstance(error, TypeError):
        return None
    for pattern, tell in ((_UNEXPECTED, _unexpected), (_MISSING, _missing)):
        found = pattern.search(str(error))
        if found is not None:
            word = _words().get(found[1])
            return None if word is None or _is_theirs(error, found[1]) else tell(word, found[2])
    return None


def _unexpected(word: tuple[str, tuple[str, ...]], given: str) -> tuple[str, str]:
    name, options = word
    meant = near(given, options)
    return f"{name} has no option {given!r}", f"write one of {', '.join(options)}.{meant}"


def _missing(word: tuple[str, tuple[str, ...]], names: str) -> tuple[str, str]:
    needed = _NAME.findall(names)
    return f"{word[0]} needs {', '.join(needed)}", f"give {', '.join(f'{each}=…' for each in needed)}"


def _is_theirs(error: BaseException, qualified: str) -> bool:
    """Whether the author's module has a function of its own by this name."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    known = None if step is None else step.tb_frame.f_globals.get(qualified.partition(".")[0])
    module = getattr(known, "__module__", None)
    return isinstance(module, str) and not module.startswith("orbit_sdk.")


@cache
def _words() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """By Python's name of a function: how authors call it, and the keywords that it takes."""
    import orbit_sdk as orbit
    from orbit_sdk.handlers.contracts import Contract
    from orbit_sdk.handlers.declaration import Handler

    spoken: dict[str, Callable[..., Any]] = {
        f"orbit.{name}": getattr(orbit, name)
        for name in (
            *("handler", "contract", "workflow", "branch", "when", "otherwise", "match", "when_some"),
            *("parallel_each", "poll", "sleep", "text", "fail", "Signal", "Retry", "Guide"),
        )
    }
    spoken |= {
        ".options(…)": Handler.options,
        ".accepts(…)": Handler.accepts,
        ".implement(…)": Contract.implement,
        ".wait(…)": orbit.Signal.wait,
        ".match(…)": orbit.Signal.match,
    }
    return {_python_name(function): (name, _keywords(function)) for name, function in spoken.items()}


def _python_name(function: Callable[..., Any]) -> str:
    return f"{function.__qualname__}.__init__" if isinstance(function, type) else function.__qualname__


def _keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return tuple(one.name for one in found if one.kind in kinds and one.name != "self")
