"""The language's own functions, for the scan of a workflow's source."""

from __future__ import annotations

from typing import Final

from orbit_sdk.builder.branches import branch, match, when_some
from orbit_sdk.builder.conditions import all_of, any_of, is_in, is_null, not_
from orbit_sdk.builder.parallels import parallel, parallel_each
from orbit_sdk.builder.polls import poll
from orbit_sdk.builder.scan import Words
from orbit_sdk.builder.signals import Signal
from orbit_sdk.builder.timers import sleep
from orbit_sdk.builder.vocabulary import build, fail, instance, text

__all__ = ["WORDS"]

WORDS: Final = Words(
    refs=(branch, match, when_some, poll, build, text, instance, all_of, any_of, not_, is_null, is_in),
    tuples=(parallel, parallel_each),
    silent=(sleep, fail),
    some=(when_some,),
    signal=Signal,
)
