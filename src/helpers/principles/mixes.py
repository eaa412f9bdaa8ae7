"""Mixes: how often each subset's completions are asked for under each principle.

A mix holds integer weights per subset for a first draw, and one switch that then turns some draws of one principle
into another. Integers keep every share exact. `code` and `readme` come with the package; any other name is a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from helpers import runs
from helpers.params import scalars

__all__ = ["BUILTIN", "PRINCIPLES", "Mix", "MixError", "load"]

PRINCIPLES = ("helpfulness", "truthfulness", "honesty", "verbalized_calibration")
BUILTIN = ("code", "readme")
LARGEST_SUM = 10_000  # of weights: what a draw by 24 bits leaves over stays below a thousandth of any share
WEIGHT = re.compile(r"0|[1-9][0-9]{0,8}")


class MixError(ValueError):
    """A mix that cannot be drawn from, or a subset that it lacks; names the mix and the value."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Weights per subset in the order of PRINCIPLES, and the switch: `weight` of `of` draws of `source` turn."""

    name: str
    weights: Mapping[str, tuple[int, ...]]
    source: int = 0
    target: int = 0
    weight: int = 0
    of: int = 1

    def row(self, subset: str, unknown_subset: str = "error") -> tuple[int, ...]:
        """Return a subset's weights; for an unknown one the principle `unknown_subset` alone, or MixError."""
        if subset in self.weights:
            return self.weights[subset]
        if unknown_subset not in PRINCIPLES:
            raise MixError(f"unknown subset {subset!r}; the mix {self.name!r} knows {', '.join(self.weights)}")
        return tuple(int(principle == unknown_subset) for principle in PRINCIPLES)

    def shares(self, subset: str, unknown_subset: str = "error") -> list[Fraction]:
        """Return the exact share of each principle after the switch.

        >>> [str(share) for share in load("code").shares("truthful_qa")]
        ['0', '1/2', '9/20', '1/20']
        """
        weights = self.row(subset, unknown_subset)
        shares = [Fraction(weight, sum(weights)) for weight in weights]
        turned = shares[self.source] * Fraction(self.weight, self.of)
        shares[self.source] -= turned
        shares[self.target] += turned
        return shares


def load(name: str) -> Mix:
    """Load a mix by name or from a YAML file of the same form; MixError says what does not fit.

    >>> load("readme").row("flan")
    (3, 1, 0, 1)
    """
    return _builtin(name) if name in BUILTIN else _from_file(name)


@cache
def _builtin(name: str) -> Mix:
    path = Path(str(resources.files("helpers") / "data" / "mixes.yaml"))
    return _build(name, scalars.read_file(path)[name].value)


def _from_file(name: str) -> Mix:
    try:
        path = runs.find_input(name)
    except FileNotFoundError as error:
        raise MixError(f"no mix {name!r}: it is neither {' nor '.join(BUILTIN)}, and as a file {error}") from None
    return _build(name, {key: given.value for key, given in scalars.read_file(path).items()})


def _build(name: str, content: Any) -> Mix:
    content = _mapping(content, f"mix {name!r}", {"switch", "subsets"})
    subsets = _mapping(content.get("subsets", {}), f"mix {name!r}, subsets")
    if not subsets:
        raise MixError(f"mix {name!r} has no subsets; give 'subsets: {{name: {{helpfulness: 1}}}}'")
    weights = {subset: _row(f"mix {name!r}, subset {subset!r}", row) for subset, row in subsets.items()}
    return Mix(name, weights, *_switch(f"mix {name!r}, switch", content.get("switch")))


def _row(where: str, content: Any) -> tuple[int, ...]:
    given = _mapping(content, where, set(PRINCIPLES))
    row = tuple(_whole(f"{where}, {name}", given.get(name, "0")) for name in PRINCIPLES)
    if not 0 < sum(row) <= LARGEST_SUM:
        raise MixError(f"{where}: the weights sum to {sum(row)}; they must sum to 1 to {LARGEST_SUM:,}")
    return row


def _switch(where: str, content: Any) -> tuple[int, ...]:
    if content is None:
        return ()
    names = ("from", "to", "weight", "of")
    given = _mapping(content, where, set(names))
    if missing := [name for name in names if name not in given]:
        raise MixError(f"{where} lacks {', '.join(missing)}")
    for name in (given["from"], given["to"]):
        if name not in PRINCIPLES:
            raise MixError(f"{where}: {name!r} is no principle; known: {', '.join(PRINCIPLES)}")
    weight, of = (_whole(f"{where}, {name}", given[name]) for name in ("weight", "of"))
    if given["from"] == given["to"] or not weight <= of or not 1 <= of <= LARGEST_SUM:
        raise MixError(f"{where}: need two principles, and {weight} of {of} must be a share (of at most 1 to 10,000)")
    return PRINCIPLES.index(given["from"]), PRINCIPLES.index(given["to"]), weight, of


def _mapping(content: Any, where: str, known: set[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise MixError(f"{where}: must hold 'name: value' pairs, not {content!r}")
    if known and (unknown := [key for key in content if key not in known]):
        raise MixError(f"{where}: {unknown[0]!r} is not known; known: {', '.join(sorted(known))}")
    return content


def _whole(where: str, value: Any) -> int:
    if not (isinstance(value, str) and WEIGHT.fullmatch(value)):
        raise MixError(f"{where}: {value!r} is no weight; give a whole number from 0")
    return int(value)
