"""Principles: the keyed draw in its two steps, the exact expectation, the prompts and the audit.

The method is UltraFeedback's (Cui et al., 2024, arXiv:2310.01377): a weighted draw that depends on the subset, then
a switch that turns one in ten draws of honesty into verbalized calibration.

One 64-bit word per (seed, id, slot) decides a draw: 24 bits choose the principle, 20 the switch, 20 the prompt. So a
drawn share is off the exact one by less than 2**-24 + 2**-20, about one in a million.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from helpers import keyed
from helpers.params import scalars
from helpers.principles import mixes, multinomial
from helpers.principles.mixes import PRINCIPLES, Mix

__all__ = ["PRINCIPLES", "audit", "draw", "draw_models", "draw_steps", "expected", "prompts", "subsets"]

Codes = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


def subsets(mix: str = "code") -> tuple[str, ...]:
    """Return the subsets that a mix knows.

    >>> subsets("readme")
    ('sharegpt', 'ultrachat', 'flan', 'evol_instruct', 'truthful_qa', 'false_qa')
    """
    return tuple(mixes.load(mix).weights)


def expected(subset: str, mix: str = "code", *, unknown_subset: str = "error") -> dict[str, float]:
    """Return the exact share of each principle in a subset.

    >>> expected("sharegpt")
    {'helpfulness': 0.6, 'truthfulness': 0.2, 'honesty': 0.18, 'verbalized_calibration': 0.02}
    """
    shares = mixes.load(mix).shares(subset, unknown_subset)
    return dict(zip(PRINCIPLES, map(float, shares), strict=True))


@cache
def prompts(principle: str) -> tuple[str, ...]:
    """Return the pool of system prompts that ask for a principle.

    >>> len(prompts("honesty")) >= 11
    True
    """
    path = Path(str(resources.files("helpers") / "data" / "principles.yaml"))
    return tuple(scalars.read_file(path)[principle].value)


def draw(
    subsets: Iterable[str],
    ids: Iterable[str],
    slots: Iterable[int],
    *,
    seed: int,
    mix: str = "code",
    unknown_subset: str = "error",
) -> npt.NDArray[np.str_]:
    """Draw a principle for each completion; three sequences of one length, one entry a completion.

    A row's result depends on its own subset, id and slot, the seed and the mix; never on other rows.

    >>> draw(["flan", "evol_instruct"], ["a", "b"], [0, 0], seed=0).tolist()
    ['helpfulness', 'helpfulness']
    """
    steps = _steps(subsets, ids, slots, seed, mixes.load(mix), unknown_subset)
    return np.array(PRINCIPLES)[steps.principle]


def draw_steps(
    subsets: Iterable[str],
    ids: Iterable[str],
    slots: Iterable[int],
    *,
    seed: int,
    mix: str = "code",
    unknown_subset: str = "error",
) -> pd.DataFrame:
    """Draw as `draw` does and show it all: subset, first, switched, principle, prompt_index, system_prompt.

    >>> draw_steps(["flan"], ["a"], [0], seed=0)[["first", "switched", "principle"]].values.tolist()
    [['helpfulness', False, 'helpfulness']]
    """
    steps = _steps(subsets, ids, slots, seed, mixes.load(mix), unknown_subset)
    texts = [text for principle in PRINCIPLES for text in prompts(principle)]
    starts = np.cumsum([0, *_pool_sizes()[:-1]])
    columns = {
        "subset": _take(steps.names, steps.subset),
        "first": _take(PRINCIPLES, steps.first),
        "switched": steps.switched,
        "principle": _take(PRINCIPLES, steps.principle),
        "prompt_index": steps.prompt,
        "system_prompt": _take(texts, starts[steps.principle] + steps.prompt),
    }
    return pd.DataFrame(columns)


def draw_models(ids: Iterable[str], pool: Sequence[str], k: int, *, seed: int) -> npt.NDArray[np.str_]:
    """Draw k different models of the pool for each instruction, shape (n, k).

    Every (seed, id, model) has a key and the k smallest win: the pool's order changes nothing, and a model that is
    added enters only the draws that it wins.

    >>> sorted(draw_models(["a"], ["m", "n"], 2, seed=0)[0].tolist())
    ['m', 'n']
    """
    names, rows = sorted(set(pool)), [_text(name) for name in ids]
    if len(names) < len(pool) or not 1 <= k <= len(names):
        raise ValueError(f"cannot draw {k} different models from a pool of {len(pool)}: {', '.join(pool)}")
    keys = np.stack([keyed.blocks(_checked(seed), f"model/{name}", rows)[:, 0] for name in names], axis=1)
    return np.array(names)[np.argsort(keys, axis=1, kind="stable")[:, :k]]


def audit(drawn: pd.DataFrame, mix: str = "code", *, unknown_subset: str = "error") -> pd.DataFrame:
    """Compare drawn principles with the exact shares; `drawn` has the columns subset and principle.

    One row for each subset and principle with counts, shares and a 95 % Wilson interval; `violation` marks draws of
    a principle whose share is zero. Repeated on a subset's rows: the test, its p and the total variation distance.
    The test is that of `multinomial.fit`; a violation is impossible under the mix, so its p is 0.
    """
    counts = pd.crosstab(drawn["subset"], drawn["principle"])
    counts = counts.reindex(index=drawn["subset"].unique(), columns=list(PRINCIPLES), fill_value=0)
    if counts.to_numpy().sum() != len(drawn):
        raise ValueError(f"column 'principle' must hold {', '.join(PRINCIPLES)}, and no row may lack its subset")
    shares = {str(name): expected(str(name), mix, unknown_subset=unknown_subset) for name in counts.index}
    tables = [_compare(name, counts.loc[name].to_numpy(), np.array([*row.values()])) for name, row in shares.items()]
    return pd.concat(tables, ignore_index=True)


# How a draw is made: codes index into `names`, into PRINCIPLES, or into a principle's prompts.


@dataclass(frozen=True, slots=True)
class _Steps:
    names: list[str]
    subset: Codes
    first: Codes
    switched: npt.NDArray[np.bool_]
    principle: Codes
    prompt: Codes


def _steps(
    subsets: Iterable[str], ids: Iterable[str], slots: Iterable[int], seed: int, mix: Mix, unknown: str
) -> _Steps:
    names, subset = _codes(subsets)
    words = _words(ids, np.asarray(slots, dtype=np.int64), _checked(seed))
    if len(words) != len(subset):
        raise ValueError(f"{len(subset)} subsets and {len(words)} ids: give one of each for every completion")
    first = _choose([mix.row(name, unknown) for name in names], subset, words >> np.uint64(40))
    switched = (first == mix.source) & (_scale(words >> np.uint64(20), mix.of) < mix.weight)
    principle = np.where(switched, mix.target, first)
    return _Steps(names, subset, first, switched, principle, _scale(words, _pool_sizes()[principle]))


def _choose(rows: list[tuple[int, ...]], subset: Codes, bits: Words) -> Codes:
    """Choose by integer weights: 24 bits times a row's sum, over 2**24, is a place in the row written out."""
    weights = np.array(rows, dtype=np.int64).reshape(-1, len(PRINCIPLES))
    written = np.repeat(np.tile(np.arange(len(PRINCIPLES)), len(rows)), weights.ravel())
    sums = weights.sum(axis=1)
    places = (np.cumsum(sums) - sums)[subset] + (bits.view(np.int64) * sums[subset] >> 24)
    return np.asarray(written[places], dtype=np.int64)


def _scale(words: Words, size: int | Codes) -> Codes:
    """Scale the lowest 20 bits to 0, ..., size - 1."""
    return (words & np.uint64(0xFFFFF)).view(np.int64) * size >> 20


def _words(ids: Iterable[str], slots: Codes, seed: int) -> Words:
    """Return the word of each (seed, id, slot): one SHA-256 for a run of equal ids holds four slots."""
    values, run = _equal_runs(ids)
    if len(slots) != len(run) or (slots < 0).any():
        raise ValueError(f"{len(run)} ids and {len(slots)} slots: give one of each for every completion, slots from 0")
    names = values if set(map(type, values)) == {str} else [_text(value) for value in values]
    labels = ["principle", *(f"principle/{block}" for block in range(1, slots.max(initial=0) // 4 + 1))]
    return np.concatenate([keyed.blocks(seed, label, names) for label in labels], axis=1)[run, slots]


def _codes(values: Iterable[str]) -> tuple[list[str], Codes]:
    objects, run = _equal_runs(values)
    index = {name: code for code, name in enumerate(dict.fromkeys(objects))}
    return list(index), np.array([index[name] for name in objects], dtype=np.int64)[run]


def _equal_runs(values: Iterable[str]) -> tuple[list[Any], Codes]:
    """Return the value of each run of equal neighbours, and the number of the run that each entry is in."""
    objects = np.asarray(values if hasattr(values, "__len__") else list(values), dtype=object)
    changes = np.concatenate([[True], objects[1:] != objects[:-1]])[: len(objects)]
    return objects[changes].tolist(), np.cumsum(changes) - 1


def _take(names: Sequence[str], codes: Codes) -> Any:
    return pd.array(list(names), dtype="str").take(codes)


@cache
def _pool_sizes() -> Codes:
    return np.array([len(prompts(principle)) for principle in PRINCIPLES], dtype=np.int64)


def _text(name: object) -> str:
    """Return an id as text; whole numbers keep their digits, and what is neither is a TypeError."""
    return name if isinstance(name, str) else str(operator.index(name))  # type: ignore[arg-type]


def _checked(seed: int) -> int:
    if operator.index(seed) < 0:
        raise ValueError(f"seed must be a whole number from 0, not {seed}")
    return operator.index(seed)


def _compare(subset: str, observed: npt.NDArray[np.int64], shares: npt.NDArray[np.float64]) -> pd.DataFrame:
    from statsmodels.stats.proportion import proportion_confint

    n = int(observed.sum())
    low, high = proportion_confint(observed, n, method="wilson")
    test, p_value = multinomial.fit(observed, shares)
    return pd.DataFrame(
        {
            "subset": subset,
            "principle": PRINCIPLES,
            "n": n,
            "observed": observed,
            "observed_share": observed / n,
            "expected_share": shares,
            "low": low,
            "high": high,
            "violation": (observed > 0) & (shares == 0),
            "test": test,
            "p_value": p_value,
            "tv_distance": np.abs(observed / n - shares).sum() / 2,
        }
    )
