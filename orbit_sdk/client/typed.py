"""What the client needs of a workflow written with the builder: its identity, and how values become JSON."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

I_contra = TypeVar("I_contra", contravariant=True)
O_co = TypeVar("O_co", covariant=True)


class TypedWorkflow(Protocol[I_contra, O_co]):
    """`orbit_sdk.Workflow[I, O]` as its callers see it."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...
    def dump_input(self, value: I_contra, /) -> Any:
        """The input as JSON; raises InvalidArgument when it does not fit."""

    def parse_output(self, value: Any, /) -> O_co:
        """The output as the declared type."""
        ...


class TypedSignal(Protocol):
    """`orbit_sdk.Signal` as its senders see it."""

    @property
    def name(self) -> str: ...
    def dump_body(self, body: Any, /) -> Any:
        """The body as JSON; raises InvalidArgument when it does not fit."""
