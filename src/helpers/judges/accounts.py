"""What a call of `ask` may spend, and what became of everything that it was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from helpers.answers import Reply, Request
from helpers.judges.models import Model

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Budget", "Outcome", "Stopped", "Tally", "estimate"]

CHARACTERS_PER_TOKEN = 4
UNSET_COMPLETION_TOKENS = 4096  # assumed where nobody sets max_tokens


class Stopped(RuntimeError):
    """A run that could not ask everything; says why. What was answered is stored."""


@dataclass
class Budget:
    """What may be spent, in money and in requests (0 is no limit); share one between the calls of a run.

    An estimate is reserved before a request is sent, so that only what is in flight can go over.

    >>> budget = Budget(requests=1)
    >>> budget.reserve(0.0), budget.reserve(0.0)
    (True, False)
    """

    money: float = 0.0
    requests: int = 0
    spent: float = 0.0
    sent: int = 0
    reserved: float = 0.0

    def reserve(self, estimate: float) -> bool:
        """Take a request out of the budget, or say that it does not fit."""
        if self.requests and self.sent >= self.requests:
            return False
        if self.money and self.spent + self.reserved + estimate > self.money:
            return False
        self.sent, self.reserved = self.sent + 1, self.reserved + estimate
        return True

    def told(self) -> str:
        """Return what is spent and what may be, in words."""
        money = f"{self.spent:.4f} and {self.reserved:.4f} reserved of {self.money:g}" if self.money else ""
        count = f"{self.sent:,} of {self.requests:,} requests" if self.requests else ""
        return ", ".join(filter(None, (money, count)))

    def settle(self, estimate: float, cost: float) -> None:
        """Put what a request did cost in the place of its estimate."""
        self.reserved, self.spent = self.reserved - estimate, self.spent + cost


@dataclass
class Tally:
    """What became of the distinct requests to one model; `sent`, tokens and cost are those of this call."""

    requests: int = 0
    from_store: int = 0
    answered: int = 0
    unusable: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    not_asked: int = 0
    sent: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    warnings: Counter[str] = field(default_factory=Counter)
    stopped: str = ""

    def count(self, reply: Reply, warnings: Iterable[str]) -> None:
        """Add up what a reply took."""
        self.prompt_tokens += reply.prompt_tokens or 0
        self.completion_tokens += reply.completion_tokens or 0
        self.cost += reply.cost or 0.0
        self.warnings.update(warnings)

    def __add__(self, other: Tally) -> Tally:
        """Return both together; what stopped the model first is what is told."""
        sums = {name: value + getattr(other, name) for name, value in vars(self).items() if name != "stopped"}
        return Tally(**sums, stopped=self.stopped or other.stopped)


@dataclass
class Outcome:
    """What a call of `ask` did: the `keys` of its requests, in their order, and why one of them has no reply."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    keys: list[bytes] = field(default_factory=list, repr=False)
    failed: dict[bytes, str] = field(default_factory=dict)
    stopped: str = ""

    def __add__(self, other: Outcome) -> Outcome:
        """Return the outcome of both calls together.

        >>> one, other = (Outcome({"m": Tally(requests=2, answered=1)}) for _ in range(2))
        >>> (one + other).tallies["m"].requests
        4
        """
        names = dict.fromkeys([*self.tallies, *other.tallies])
        tallies = {name: self.tallies.get(name, Tally()) + other.tallies.get(name, Tally()) for name in names}
        keys, failed = self.keys + other.keys, self.failed | other.failed
        return Outcome(tallies, keys, failed, self.stopped or other.stopped)

    def check(self) -> None:
        """Raise Stopped when the run or one of its models stopped before everything was asked."""
        models = [f"model {name!r}: {tally.stopped}" for name, tally in self.tallies.items() if tally.stopped]
        reasons = [self.stopped, *models] if self.stopped else models
        if reasons:
            missing = sum(tally.not_asked for tally in self.tallies.values())
            raise Stopped(
                f"{'; '.join(reasons)}. {missing:,} requests were not asked; "
                "every answer is in the store, and the next run asks only for the rest"
            )

    def table(self) -> pd.DataFrame:
        """Return one row a model: the counts of its tally, failures and warnings as text."""
        import pandas as pd

        return pd.DataFrame([{"model": name} | _shown(tally) for name, tally in self.tallies.items()])


def estimate(model: Model, request: Request) -> tuple[int, int]:
    """Return the prompt's tokens, as a quarter of its characters, and the most that may be generated.

    >>> estimate(Model(name="m", kind="local"), Request("m", [{"content": "x" * 400}], {"max_tokens": 50}))
    (100, 50)
    """
    characters = sum(len(str(message.get("content", ""))) for message in request.messages)
    longest = model.extra.get("max_tokens") or request.sampling.get("max_tokens") or UNSET_COMPLETION_TOKENS
    return characters // CHARACTERS_PER_TOKEN, int(longest)


def _shown(tally: Tally) -> dict[str, Any]:
    return vars(tally) | {"failed": _told(tally.failed), "warnings": _told(tally.warnings)}


def _told(counts: Counter[str]) -> str:
    return "; ".join(f"{what} ({count:,})" for what, count in counts.items())
