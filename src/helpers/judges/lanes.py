"""How fast one model is asked: how many requests at once, when the next one may go, and when it counts as down."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from helpers import keyed
from helpers.answers import Request
from helpers.judges.accounts import Tally
from helpers.judges.models import Model

__all__ = ["ASK_LIMIT", "Lane", "Row"]

ASK_LIMIT = 8  # replies of no use to one request, over all runs
FIRST_WIDTH = 64
ROWS_DOWN, ROWS_REFUSED = 5, 20  # in a row that the server did not answer, or would not: the model stops
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 30.0


@dataclass(slots=True)
class Row:
    """A request on its way; `asked` counts its replies of no use over all runs, `replies` all those of this run."""

    key: bytes
    request: Request
    asked: int = 0
    attempts: int = 0
    replies: int = 0
    waited: float = 0.0
    ready_at: float = 0.0
    started: float = 0.0
    seconds: float = 0.0

    @property
    def seed(self) -> int:
        """Return a seed of this request's own, which changes when the request is asked again."""
        return (int.from_bytes(self.key[:4], "little") + self.asked) % 2**31

    def backoff(self) -> float:
        """Return how long to wait after the attempts so far where the server says nothing, in seconds.

        >>> 0.5 <= Row(b"k", Request("m", []), attempts=1).backoff() <= 1.0
        True
        """
        spread = 0.5 + keyed.unit(0, self.key.hex(), self.attempts) / 2
        return float(min(FIRST_BACKOFF_S * 2 ** (self.attempts - 1), LONGEST_BACKOFF_S) * spread)


@dataclass
class Lane:
    """The requests to one model and how they flow.

    A lane begins with one request alone, so that a wrong name, key or address costs one request and not one a row.

    >>> lane = Lane(Model(kind="local", name="m"), ceiling=64)
    >>> lane.answered(); lane.slowed(lane.epoch); lane.width
    32.0
    """

    model: Model
    ceiling: int
    todo: deque[Row] = field(default_factory=deque)
    tally: Tally = field(default_factory=Tally)
    width: float = 1.0
    running: int = 0
    epoch: int = 0
    cool_until: float = 0.0
    token_field: str = "max_tokens"
    _is_open: bool = False
    _failures: int = 0
    _next_request: float = 0.0
    _next_tokens: float = 0.0

    def place(self, row: Row) -> None:
        """Take in a request that has no answer in the store, unless it was asked too often."""
        self.tally.from_store -= 1
        if row.asked >= ASK_LIMIT:
            self.tally.unusable += 1
        else:
            self.todo.append(row)

    def switches_token_field(self, asked_with: str) -> bool:
        """Say max_completion_tokens from now on, if the request that was refused did not."""
        self.token_field = "max_completion_tokens"
        return asked_with != self.token_field

    def answered(self) -> None:
        """Widen: four times as wide a round at first, one more a round once the server was overloaded."""
        wider = self.width + (1.0 / self.width if self.epoch else 3.0)
        self.width = float(min(self.ceiling, wider if self._is_open else FIRST_WIDTH))
        self._is_open, self._failures = True, 0

    def slowed(self, epoch: int) -> None:
        """Halve, once for all the requests that were in flight together; `epoch` is the one they left in."""
        if epoch == self.epoch:
            self.width, self.epoch = max(1.0, self.width / 2), self.epoch + 1

    def failed(self, kind: str, told: str) -> None:
        """Count a row that failed, and stop when several in a row did and there are more."""
        self._failures += 1
        if self.todo and self._failures >= (ROWS_REFUSED if kind == "bad_request" else ROWS_DOWN):
            self.tally.stopped = f"{self._failures} rows failed one after the other, the last with {told}"

    def pace(self, now: float, tokens: int) -> float:
        """Return when a request of so many tokens may go under the limits a minute, and keep its place.

        >>> slow = Lane(Model(kind="local", name="m", requests_per_minute=60), ceiling=64)
        >>> slow.pace(100.0, 0), slow.pace(100.0, 0)
        (100.0, 101.0)
        """
        start = max(now, self._next_request, self._next_tokens)
        if self.model.requests_per_minute:
            self._next_request = start + 60.0 / self.model.requests_per_minute
        if self.model.tokens_per_minute:
            self._next_tokens = start + 60.0 * tokens / self.model.tokens_per_minute
        return start
