"""The scan for silent misuses reads any function: of Python's own library as well as of an author."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import inspect
import logging
import subprocess
import tarfile
import threading
import typing
import unittest.mock
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

import pytest

from orbit_sdk.builder.scan.bytecode import silent_in_bytecode
from orbit_sdk.builder.scan.loops import loop_names
from orbit_sdk.builder.scan.scanning import scan
from orbit_sdk.builder.scan.sources import function_node
from orbit_sdk.builder.words import WORDS

MODULES = [
    *(argparse, dataclasses, functools, inspect, logging),
    *(threading, subprocess, tarfile, typing, unittest.mock),
]


def functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods of a module that take something."""
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for one in members:
            if (
                isinstance(one, FunctionType)
                and one.__code__.co_argcount
                and one.__module__ == module.__name__
            ):
                yield one


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_any_function_is_read_and_findings_lie_inside_it(module: ModuleType) -> None:
    read = 0
    for function in functions(module):
        lines, first = inspect.getsourcelines(function)
        for problem in scan(function, WORDS):
            assert problem.place is not None
            assert first <= problem.place.line < first + len(lines)
        read += function_node(function.__code__) is not None
        for code in codes(function.__code__):
            assert loop_names(code) <= set(code.co_freevars)
    assert read > 10


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_the_bytecode_tells_the_source_tells_too(module: ModuleType) -> None:
    for function in functions(module):
        if function_node(function.__code__) is None:
            continue
        by_source = {(one.code, one.place.line) for one in scan(function, WORDS) if one.place is not None}
        for one in silent_in_bytecode(function.__code__, function.__code__.co_varnames[0]):
            assert one.place is not None
            near = {(one.code, one.place.line + step) for step in range(-3, 2)}
            assert near & by_source or _hidden(function), (function, one)


def _hidden(function: FunctionType) -> bool:
    """Whether the source rightly leaves it alone: the text of an exception, a log line."""
    source = inspect.getsource(function)
    return any(word in source for word in ("raise", "assert", "print", ".debug", ".info", ".error"))
