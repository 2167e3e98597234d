"""The one error that the author of a handler or a workflow meets before anything runs."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Literal

from orbit_sdk.check.diagnostics import Place, Related
from orbit_sdk.errors import Code, OrbitError

__all__ = [
    "BuildCode",
    "BuildError",
    "Place",
    "Problem",
    "caller_place",
    "function_place",
    "is_author",
    "raised_place",
    "shorten",
]

BuildCode = Literal[
    "ABSENT",
    "AFTER_FAIL",
    "ARGUMENT",
    "ARM_RAISED",
    "ASSIGN",
    "ASYNC",
    "AWAIT",
    "BRANCH",
    "BUILD",
    "CALLED",
    "CLASS_TEST",
    "COMPARE",
    "COMPUTE",
    "CONDITION_VALUE",
    "CONSTRUCTOR",
    "CONTRACT",
    "DURATION",
    "EAGER_ARM",
    "EMPTY_ARM",
    "ENDLESS",
    "ERRORS",
    "EXCEPT",
    "FAIL",
    "FINISHED",
    "FORGOTTEN_CALL",
    "GENERATOR",
    "HANDLER_SHAPE",
    "HANDLER_TWICE",
    "HASH",
    "IDENTITY",
    "INVERT",
    "KEY",
    "LATE_BINDING",
    "LITERAL",
    "MATCH",
    "MATCH_STATEMENT",
    "META",
    "MISSING_ANNOTATION",
    "NAME",
    "NESTED",
    "NOT_A_CONDITION",
    "NOT_EXHAUSTIVE",
    "NO_FIELD",
    "NO_SUCH_VALUE",
    "OPTION",
    "OPTIONAL",
    "OTHER_WORKFLOW",
    "OUTSIDE_ARM",
    "OUTSIDE_WORKFLOW",
    "PARALLEL",
    "POLL_QUERY",
    "POLL_STATE",
    "SIGNAL_TWICE",
    "TEXT",
    "TEXT_TEMPLATE",
    "TRUTH_VALUE",
    "TYPE",
    "UNKNOWN_NAME",
    "UNUSABLE",
    "VERIFY_SHAPE",
    "VERSION",
    "WORKFLOW_SHAPE",
]
"""The closed set of misuses; `docs/reference/builder.md` explains each."""

_PACKAGE = __name__.partition(".")[0]
_LIBRARY = str(PurePath(inspect.__file__).parent)
"""Where Python keeps its own modules."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One misuse: a stable code, what was found, what to write instead, and where in the author's source.

    The code is a `BuildCode`, or that of a finding of `orbit_sdk.check`; `related` is what else takes part.
    """

    code: str
    found: str
    instead: str
    place: Place | None = None
    related: tuple[Related, ...] = ()

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place is not None else ""
        return f"{where}{self.code}: {self.found}\n  Instead: {self.instead}"


class BuildError(OrbitError):
    """A declaration or a workflow cannot be built. `problems` holds every misuse seen, in order."""

    code = Code.INVALID_ARGUMENT

    def __init__(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise ValueError("a BuildError needs a problem")
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    @property
    def reason(self) -> str:
        """The stable code of the first problem."""
        return self.problems[0].code

    @property
    def place(self) -> Place | None:
        """Where the first problem is."""
        return self.problems[0].place


def caller_place() -> Place | None:
    """The innermost position outside of Orbit, pydantic and Python itself: the author's own line."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        if is_author(frame):
            return _position(frame.f_code, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return None


def raised_place(error: BaseException) -> Place | None:
    """The innermost position outside of Orbit, pydantic and Python itself where an error came from."""
    found: Place | None = None
    step = error.__traceback__
    while step is not None:
        if is_author(step.tb_frame):
            found = _position(step.tb_frame.f_code, step.tb_lasti, step.tb_lineno)
        step = step.tb_next
    return found


def is_author(frame: FrameType) -> bool:
    """Whether a frame belongs to neither Orbit nor pydantic nor Python itself."""
    name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return name not in (_PACKAGE, "pydantic") and not _is_python_s_own(name, frame.f_code.co_filename)


def _is_python_s_own(name: str, file: str) -> bool:
    """A file of the author may be called like a module of Python: both must hold."""
    return name in sys.stdlib_module_names and file.startswith((_LIBRARY, "<frozen "))


def function_place(function: object) -> Place | None:
    """Where a function, or what a decorator made of it, is written."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    line = linecache.getline(code.co_filename, code.co_firstlineno)
    indented = len(line) - len(line.lstrip()) if line.strip() else 0
    return Place(shorten(code.co_filename), code.co_firstlineno, indented + 1)


def _position(code: CodeType, last: int, line: int) -> Place:
    column = 0
    found = next(islice(code.co_positions(), max(last, 0) // 2, None), None)
    if found is not None and found[0] is not None:
        line, column = found[0], found[2] or 0
    return Place(shorten(code.co_filename), line, column + 1)


def shorten(file: str) -> str:
    """Interactive cells keep their name; files lose nothing but a leading `./`."""
    return file if file.startswith("<") else str(PurePath(file))
