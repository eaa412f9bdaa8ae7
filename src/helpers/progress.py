"""How far a long loop is: one live line for a reader, plain lines for a log.

Labels are constants and everything else is a number, since a live bar is HTML and text of a model must not get into it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

__all__ = ["Progress"]

SECONDS_BETWEEN_LINES = 30.0
Item = TypeVar("Item")


class Progress:
    """Count what is done of `total`, live (`interactive`) or as a printed line every 30 s and one at the end.

    >>> with Progress(3, "Judging", interactive=False) as progress:
    ...     progress.add(done=2, stored=1, tokens=1_200, cost=0.5)
    Judging: 3 of 3, 1 stored or repeated, 1,200 tokens, cost 0.5000, in 0 s
    """

    def __init__(
        self, total: int, label: str, interactive: bool, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total, self.label = total, label
        self.done = self.failed = self.stored = self.tokens = 0
        self.cost = 0.0
        self._clock, self._started = clock, clock()
        self._printed = self._started
        self._bar = _live_bar(total, label) if interactive else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(self._counts(), refresh=False)
            self._bar.close()
        else:
            print(f"{self._line()}, in {self._clock() - self._started:.0f} s", flush=True)

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of a plain loop and count each one when the loop comes back for the next."""
        with self:
            for item in items:
                yield item
                self.add(done=1)

    def add(self, done: int = 0, failed: int = 0, stored: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """Count what has happened since the last call, and show it when it is time to."""
        self.done, self.failed, self.stored = self.done + done, self.failed + failed, self.stored + stored
        self.tokens, self.cost = self.tokens + tokens, self.cost + cost
        if self._bar is None:
            self.tick()
        elif self._bar.update(done + failed + stored):  # true when tqdm has drawn
            self._bar.set_postfix_str(self._counts(), refresh=False)

    def tick(self) -> None:
        """Print a line if none was printed for 30 s; call it while nothing happens."""
        now = self._clock()
        if self._bar is None and now - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = now
            print(f"{self._line()}, {self._pace(now)}", flush=True)

    def _line(self) -> str:
        counts = self._counts()
        return (
            f"{self.label}: {self.done + self.failed + self.stored:,} of {self.total:,}{', ' if counts else ''}{counts}"
        )

    def _counts(self) -> str:
        shown = {
            f"{self.failed:,} failed": self.failed,
            f"{self.stored:,} stored or repeated": self.stored,
            f"{self.tokens:,} tokens": self.tokens,
            f"cost {self.cost:.4f}": self.cost,
        }
        return ", ".join(text for text, count in shown.items() if count)

    def _pace(self, now: float) -> str:
        rate = (self.done + self.failed) / (now - self._started)
        left = self.total - self.done - self.failed - self.stored
        return f"{rate:.1f} a second, about {left / rate:,.0f} s left" if rate else "none done yet"


def _live_bar(total: int, label: str) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=total, desc=label, mininterval=0.2)
