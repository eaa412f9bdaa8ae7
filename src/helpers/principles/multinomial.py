"""Goodness of fit of counts to known shares, sound for small counts too."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from helpers import keyed

__all__ = ["Fit", "fit"]

Counts = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

ENOUGH = 5  # expected count from which on chi-square is trusted, the usual rule
LARGEST_TABLE = 1_000_000  # outcomes that the exact test lists; above, it simulates
SIMULATIONS = 100_000


class Fit(NamedTuple):
    """The test that was used and the probability of counts at least as unlikely as these."""

    test: str
    p_value: float


def fit(observed: Counts, shares: Shares) -> Fit:
    """Test counts against the shares they were drawn with.

    Chi-square where every expected count is at least 5; else the exact multinomial test, or its simulation (seeded
    by the counts, so always the same) where the outcomes are too many to list. Counts where the share is zero are
    impossible: p is 0.

    >>> fit(np.array([0, 2]), np.array([0.5, 0.5]))  # 2 of 4 equally likely outcomes are as unlikely as this one
    Fit(test='exact multinomial', p_value=0.5)
    """
    possible = shares > 0
    if observed[~possible].any():
        return Fit("impossible", 0.0)
    observed, shares = observed[possible], shares[possible] / shares[possible].sum()
    total = int(observed.sum())
    if len(shares) == 1:
        return Fit("certain", 1.0)
    if (total * shares >= ENOUGH).all():
        from scipy.stats import chisquare

        return Fit("chi-square", float(chisquare(observed, total * shares).pvalue))
    if (total + 1) ** (len(shares) - 1) <= LARGEST_TABLE:
        return Fit("exact multinomial", _exact(observed, shares))
    return Fit("simulated multinomial", _simulated(observed, shares))


def _exact(observed: Counts, shares: Shares) -> float:
    total = int(observed.sum())
    head = np.indices((total + 1,) * (len(shares) - 1)).reshape(len(shares) - 1, -1).T
    head = head[head.sum(axis=1) <= total]
    outcomes = np.column_stack([head, total - head.sum(axis=1)])
    logs = _log_probability(outcomes, shares)
    return float(min(1.0, np.exp(logs[_as_unlikely(logs, observed, shares)]).sum()))


def _simulated(observed: Counts, shares: Shares) -> float:
    rng = np.random.Generator(np.random.PCG64(keyed.word(0, "multinomial", *observed.tolist(), *map(str, shares))))
    logs = _log_probability(rng.multinomial(observed.sum(), shares, size=SIMULATIONS), shares)
    return float((1 + _as_unlikely(logs, observed, shares).sum()) / (1 + SIMULATIONS))


def _as_unlikely(logs: Shares, observed: Counts, shares: Shares) -> npt.NDArray[np.bool_]:
    """Compare with the observed outcome, allowing for rounding: outcomes equally likely must count as such."""
    return np.asarray(logs <= _log_probability(observed[None, :], shares) + 1e-9)


def _log_probability(outcomes: Counts, shares: Shares) -> Shares:
    total = int(outcomes[0].sum())
    factorials = np.array([0.0, *itertools.accumulate(np.log(np.arange(1, total + 1)))])
    return np.asarray(factorials[total] - factorials[outcomes].sum(axis=1) + outcomes @ np.log(shares))
