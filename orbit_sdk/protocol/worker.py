"""The messages of the worker socket, `GET /v1/worker`: one closed union per direction, told apart by `type`.

One message is one JSON text frame. Messages carry many items; every list, text and number is bounded here, so
whoever parses a frame holds a bounded value. Unknown fields and unknown types are refused. Durations are
milliseconds counted by the receiver's own monotonic clock; no wall time of a worker is ever an authority.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StringConstraints

from orbit_sdk.protocol.common import HandlerName, Id, QueueName, Request, Words

PROTOCOL_VERSION = 1
FRAME_BYTES_MAX = 1024 * 1024
ITEMS_MAX = 256
SLOTS_MAX = 2_000
HANDLERS_MAX = 1_000
QUEUES_MAX = 64
IN_FLIGHT_MAX = 5_000
RESULT_BYTES_MAX = 256 * 1024
PROGRESS_BYTES_MAX = 4 * 1024
PROGRESS_TIMEOUT_MS_MIN = 1_000
PROGRESS_TIMEOUT_MS_MAX = 24 * 3600 * 1000
ERROR_TEXT_MAX = 4_000
DETAIL_BYTES_MAX = 16 * 1024

Number = Annotated[int, Field(ge=0, le=2**53 - 1)]
Millis = Annotated[int, Field(ge=0, le=366 * 24 * 3600 * 1000)]
Slots = Annotated[int, Field(ge=0, le=SLOTS_MAX)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
Label = Annotated[Words, StringConstraints(min_length=1, max_length=200)]
Nonce = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Text = Annotated[str, StringConstraints(max_length=ERROR_TEXT_MAX)]
ErrorCode = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Recovery = Literal["READ_ONLY", "IDEMPOTENT", "VERIFIABLE", "MARKED", "CONSERVATIVE"]
AttemptKind = Literal["RUN", "VERIFY"]

#: What a handler said, before the server decides what that means for the task.
Outcome = Literal[
    "SUCCEEDED",  # returned a value
    "FINAL",  # the whole operation definitely failed
    "RETRYABLE",  # asked for another attempt; `effect` says whether something may have happened
    "NEEDS_VERIFICATION",
    "NEEDS_PERSON",
    "CANCELLED",  # stopped because it was asked to
    "HAND_BACK",  # shutting down, nothing left open
    "DISCARDED",  # a push that came too late and was never begun
    "EXCEPTION",  # an exception that nobody declared
    "INVALID_RESULT",  # it returned, but the value is ill-typed or too large: the effect happened
    "HAPPENED",  # the three answers of a VERIFY attempt
    "CANNOT_HAPPEN_ANY_MORE",
    "CANNOT_TELL",
]


class Part(Request):
    """An item inside a message."""


class Message(Request):
    """A frame."""


# --- greeting ----------------------------------------------------------------------------------------------


class HandlerOffer(Part):
    """One handler version that the worker can run. `digest` is of its parameter and result types.

    `progress_timeout_ms`: an attempt that reports no progress for so long is over.
    """

    name: HandlerName
    version: Version
    recovery: Recovery
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    verify: bool = False
    progress_timeout_ms: (
        Annotated[int, Field(ge=PROGRESS_TIMEOUT_MS_MIN, le=PROGRESS_TIMEOUT_MS_MAX)] | None
    ) = None


class InFlight(Part):
    """An attempt that the worker still holds.

    ASKED: its start was asked for, and the answer never came. FINISHED: its result is not settled yet.
    """

    attempt_id: Id
    task_id: Id
    generation: Number
    state: Literal["ASKED", "RUNNING", "FINISHED"]


class Hello(Message):
    """The first frame of a worker. `nonce` names the process and stays the same over its reconnects."""

    type: Literal["hello"] = "hello"
    protocol: Annotated[int, Field(ge=1, le=1_000)] = PROTOCOL_VERSION
    nonce: Nonce
    worker: Label
    build: Annotated[Words, StringConstraints(max_length=200)] = ""
    handlers: Annotated[list[HandlerOffer], Field(max_length=HANDLERS_MAX)]
    queues: Annotated[list[QueueName], Field(max_length=QUEUES_MAX)]
    slots: Annotated[int, Field(ge=1, le=SLOTS_MAX)]
    in_flight: Annotated[list[InFlight], Field(max_length=IN_FLIGHT_MAX)] = Field(default_factory=list)


class Reconciled(Part):
    """CONTINUE: bound to this session, `lease_ms` more. STOP: not yours any more. SETTLED: result stored."""

    attempt_id: Id
    answer: Literal["CONTINUE", "STOP", "SETTLED"]
    lease_ms: Millis = 0


class Refused(Part):
    """A queue or a handler (`name@version`) of the hello that this session does not serve, and why."""

    kind: Literal["QUEUE", "HANDLER"]
    name: Label
    reason: Text


class Welcome(Message):
    """The session is open. Durations in ms; `namespace` is the name of the credential's namespace."""

    type: Literal["welcome"] = "welcome"
    session_id: Id
    namespace: Label
    lease_ms: Annotated[int, Field(ge=100, le=86_400_000)]
    heartbeat_ms: Annotated[int, Field(ge=20, le=86_400_000)]
    silence_ms: Annotated[int, Field(ge=50, le=86_400_000)]
    in_flight: Annotated[list[Reconciled], Field(max_length=IN_FLIGHT_MAX)] = Field(default_factory=list)
    refused: Annotated[list[Refused], Field(max_length=HANDLERS_MAX + QUEUES_MAX)] = Field(
        default_factory=list
    )


# --- work --------------------------------------------------------------------------------------------------


class Ready(Message):
    """How much the worker can take now. Replaces every earlier one.

    `seen` is the number of offer items received in this session: what is on its way is not counted twice.
    `queues` caps single queues; a queue that is not named may use all of `slots`.
    """

    type: Literal["ready"] = "ready"
    number: Number
    slots: Slots
    seen: Number
    queues: Annotated[dict[QueueName, Slots], Field(max_length=QUEUES_MAX)] = Field(default_factory=dict)


class OfferItem(Part):
    """One attempt. `started` offers answer the ready `ready` and need no `start`; others must be asked for.

    `limit_ms` is the time of the attempt, counted from its start. `asked_generation` is set on VERIFY only.
    """

    attempt_id: Id
    task_id: Id
    generation: Number
    attempt_no: Number
    kind: AttemptKind = "RUN"
    queue: QueueName
    handler: HandlerName
    handler_version: Version
    recovery: Recovery
    started: bool = False
    ready: Number | None = None
    lease_ms: Millis
    limit_ms: Millis
    parameters: Any = None
    parameters_version: Version = 1
    effect_key: Label
    asked_generation: Number | None = None
    business_key: Label | None = None
    workflow_id: Id | None = None
    step_key: Annotated[str, StringConstraints(max_length=64)] | None = None
    round: Number | None = None
    deadline_at: Annotated[str, StringConstraints(max_length=40)] | None = None
    cancel_requested: bool = False
    previous_progress: Any = None
    trace: Annotated[str, StringConstraints(max_length=512)] | None = None


class Offer(Message):
    """Attempts for this worker."""

    type: Literal["offer"] = "offer"
    items: Annotated[list[OfferItem], Field(min_length=1, max_length=ITEMS_MAX)]


class Claim(Part):
    """An attempt and its generation: all that a request about a held attempt needs to say."""

    attempt_id: Id
    generation: Number


class Start(Message):
    """May these offers begin? The answer counts its lease from when request `number` was sent."""

    type: Literal["start"] = "start"
    number: Number
    items: Annotated[list[Claim], Field(min_length=1, max_length=ITEMS_MAX)]


class Granted(Part):
    """A lease of `lease_ms`, counted from when the request left."""

    attempt_id: Id
    lease_ms: Millis


class Started(Message):
    """These offers may begin; `number` is that of the `start` it answers."""

    type: Literal["started"] = "started"
    number: Number
    items: Annotated[list[Granted], Field(min_length=1, max_length=ITEMS_MAX)]


class Gone(Part):
    """An attempt that changed for the worker, and why."""

    attempt_id: Id
    reason: Text


class Withdrawn(Message):
    """These offers must not begin. `number` is that of the start it answers; null when nobody asked."""

    type: Literal["withdrawn"] = "withdrawn"
    number: Number | None = None
    items: Annotated[list[Gone], Field(min_length=1, max_length=ITEMS_MAX)]


class Renew(Message):
    """Leases to be kept; the answer counts from when request `number` was sent."""

    type: Literal["renew"] = "renew"
    number: Number
    items: Annotated[list[Claim], Field(min_length=1, max_length=ITEMS_MAX)]


class Renewed(Message):
    """Leases that were kept; `number` is that of the `renew` it answers."""

    type: Literal["renewed"] = "renewed"
    number: Number
    items: Annotated[list[Granted], Field(min_length=1, max_length=ITEMS_MAX)]


class Lost(Message):
    """These attempts are no longer this worker's. Their handlers stop; their results are evidence only."""

    type: Literal["lost"] = "lost"
    items: Annotated[list[Gone], Field(min_length=1, max_length=ITEMS_MAX)]


class Mark(Message):
    """An effect is about to begin: store that before it does."""

    type: Literal["mark"] = "mark"
    items: Annotated[list[Claim], Field(min_length=1, max_length=ITEMS_MAX)]


class MarkAnswer(Part):
    """GRANTED: the mark is stored. CANCELLED, LOST: the effect must not begin."""

    attempt_id: Id
    answer: Literal["GRANTED", "CANCELLED", "LOST"]


class Marked(Message):
    """What became of marks."""

    type: Literal["marked"] = "marked"
    items: Annotated[list[MarkAnswer], Field(min_length=1, max_length=ITEMS_MAX)]


class ProgressItem(Claim):
    """At most 4 KiB of JSON."""

    value: Any


class Progress(Message):
    """The latest progress of attempts; the last one wins.

    With a number it is answered by `renewed` for the attempts whose handlers have a progress time-out.
    """

    type: Literal["progress"] = "progress"
    number: Number | None = None
    items: Annotated[list[ProgressItem], Field(min_length=1, max_length=ITEMS_MAX)]


class ResultItem(Claim):
    """How an attempt ended. `effect` belongs to RETRYABLE, `digest` and `size` to INVALID_RESULT."""

    task_id: Id
    outcome: Outcome
    result: Any = None
    effect: Literal["NONE", "UNKNOWN"] = "UNKNOWN"
    code: ErrorCode | None = None
    message: Text | None = None
    details: Any = None
    retry_after_ms: Millis | None = None
    asked_generation: Number | None = None
    digest: Annotated[str, StringConstraints(max_length=64)] | None = None
    size: Number | None = None


class Result(Message):
    """Repeat-safe: sent again, over reconnects too, until `settled` names it."""

    type: Literal["result"] = "result"
    items: Annotated[list[ResultItem], Field(min_length=1, max_length=ITEMS_MAX)]


class SettledItem(Part):
    """ACCEPTED (again too), EVIDENCE: kept beside the task, REFUSED: not stored. All end the re-sending."""

    attempt_id: Id
    answer: Literal["ACCEPTED", "EVIDENCE", "REFUSED"]
    reason: Text | None = None


class Settled(Message):
    """Results that need not be sent again."""

    type: Literal["settled"] = "settled"
    items: Annotated[list[SettledItem], Field(min_length=1, max_length=ITEMS_MAX)]


class Cancel(Message):
    """Somebody asked these running attempts to stop. The result still says what really happened."""

    type: Literal["cancel"] = "cancel"
    items: Annotated[list[Gone], Field(min_length=1, max_length=ITEMS_MAX)]


# --- the connection ----------------------------------------------------------------------------------------


class Beat(Message):
    """A sign of life; the server answers with the same number. Says nothing about leases.

    `stuck`: how many handlers of the worker go on although their attempts are over.
    """

    type: Literal["beat"] = "beat"
    number: Number
    stuck: Number = 0


class Drain(Message):
    """From a worker: no more offers. From a server: it is leaving, go on and reconnect when it closes."""

    type: Literal["drain"] = "drain"
    reason: Text = ""


class Error(Message):
    """Something was refused. `about` names the type of frame it answers. Fatal ones end the connection."""

    type: Literal["error"] = "error"
    code: ErrorCode
    message: Text
    about: Annotated[str, StringConstraints(max_length=64)] | None = None
    fatal: bool = False


WorkerMessage: TypeAlias = Hello | Ready | Start | Renew | Mark | Progress | Result | Beat | Drain | Error
ServerMessage: TypeAlias = (
    Welcome | Offer | Started | Withdrawn | Renewed | Lost | Marked | Settled | Cancel | Beat | Drain | Error
)
AnyMessage: TypeAlias = WorkerMessage | ServerMessage

WORKER_MESSAGES: tuple[type[Message], ...] = (
    Hello, Ready, Start, Renew, Mark, Progress, Result, Beat, Drain, Error,
)  # fmt: skip
SERVER_MESSAGES: tuple[type[Message], ...] = (
    Welcome, Offer, Started, Withdrawn, Renewed, Lost, Marked, Settled, Cancel, Beat, Drain, Error,
)  # fmt: skip
