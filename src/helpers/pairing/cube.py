"""A panel's scores as an array: one row for each perturbed text, one column for each judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from helpers import anchoring
from helpers.perturbations import CONDITIONS

__all__ = ["Cube", "cube"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KNOWN = {"perturbation_type": "str", "perturbation_category": "str", "perturbation_rate": "float64"}


@dataclass(frozen=True)
class Cube:
    """Scores, (cells, judges), null where there is none; a cell is a sample under a condition, in prompt order.

    `rows` are positions in the table of judgements, -1 where there is none. `panel` is in alphabetical order, `ids` in
    the order of the samples; `conditions` has dataset_name, perturbation_type, _category, _rate, represent first.
    """

    panel: list[str]
    ids: pd.Index
    conditions: pd.DataFrame
    sample: Ints
    condition: Ints
    scores: Floats
    rows: Ints


def cube(judgements: pd.DataFrame, judges: Sequence[str]) -> Cube:
    """Arrange the panel's judgements of perturbed texts (repeat 0); no order of rows or judges shows in the result.

    Raises ValueError for a panel of fewer than two, an unknown condition without a category, a judge's second verdict
    on a text.

    >>> verdicts = pd.DataFrame({"sample_id": "a", "dataset_name": "llm_to_name_100pct", "judge": ["y", "x"],
    ...                          "overall_score": [3.5, None]})
    >>> cube(verdicts, ["x", "y"]).scores
    array([[nan, 3.5]])
    """
    panel = _panel(judges)
    conditions, condition = _conditions(judgements)
    sample, ids = pd.factorize(judgements["sample_id"], sort=True)
    judge = _places(judgements["judge"], panel)
    used = (judge >= 0) & (condition >= 0)
    if "repeat" in judgements:
        used &= judgements["repeat"].to_numpy() == 0
    row = np.flatnonzero(used)
    if (sample[row] < 0).any():
        raise ValueError(f"judgement {judgements.index[row[sample[row] < 0]][0]} has no sample_id")
    text = sample[row] * len(conditions) + condition[row]
    seen = np.zeros(len(ids) * len(conditions), dtype=bool)
    seen[text] = True
    cells = np.flatnonzero(seen)
    place = (np.cumsum(seen) - 1)[text] * len(panel) + judge[row]
    _refuse_twins(judgements, row, place)
    rows = np.full(len(cells) * len(panel), -1)
    rows[place] = row
    scores = np.full(len(cells) * len(panel), np.nan)
    scores[place] = judgements["overall_score"].to_numpy("float64", na_value=np.nan)[row]
    shape = (len(cells), len(panel))
    sample, condition = np.divmod(cells, max(len(conditions), 1))
    return Cube(panel, ids, conditions, sample, condition, scores.reshape(shape), rows.reshape(shape))


def _panel(judges: Sequence[str]) -> list[str]:
    panel = sorted(set(judges))
    if isinstance(judges, str) or len(panel) < 2 or len(panel) < len(judges):
        raise ValueError(f"judges is {judges!r}; a panel is a list of two or more different judges")
    return panel


def _places(judges: pd.Series, panel: list[str]) -> Ints:
    codes, names = pd.factorize(judges)
    return np.append(pd.Index(panel).get_indexer(pd.Index(names)), -1)[codes]


def _conditions(judgements: pd.DataFrame) -> tuple[pd.DataFrame, Ints]:
    """Return what is known of each condition, and for each row its place among them (-1: original)."""
    named = anchoring.condition_names(judgements)
    codes, names = np.asarray(named.cat.codes, dtype=np.int64), named.cat.categories
    first = np.zeros(len(names), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    table = pd.DataFrame([CONDITIONS.get(name, (None, None, None)) for name in names], columns=list(KNOWN))
    for column in KNOWN:
        if column in judgements:
            table[column] = judgements[column].iloc[first].reset_index(drop=True).astype(object).fillna(table[column])
    table = table.astype(KNOWN).assign(dataset_name=pd.Series(names, dtype="str"))
    table["perturbation_category"] = table["perturbation_category"].replace("representational", "represent")
    return _in_order(table, codes)


def _in_order(table: pd.DataFrame, codes: Ints) -> tuple[pd.DataFrame, Ints]:
    known = {name: place for place, name in enumerate(CONDITIONS)}
    ranks = {}
    for place, (name, category) in enumerate(zip(table["dataset_name"], table["perturbation_category"], strict=True)):
        if name != "original":
            if category not in ("represent", "error"):
                raise ValueError(
                    f"{name!r} is none of the 17 conditions and its perturbation_category is {category!r}; "
                    f"it is 'represent' or 'error'"
                )
            ranks[place] = (category == "error", known.get(name, len(known)), name)
    order = sorted(ranks, key=ranks.__getitem__)
    places = np.full(len(table), -1)
    places[order] = np.arange(len(order))
    return table.iloc[order].reset_index(drop=True), places[codes]


def _refuse_twins(judgements: pd.DataFrame, row: Ints, place: Ints) -> None:
    if len(place) and (counts := np.bincount(place)).max() > 1:
        twin = judgements.iloc[row[place == counts.argmax()][0]]
        names = {key: twin[key] for key in ("sample_id", "dataset_name", "judge") if key in twin}
        raise ValueError(f"two verdicts on the same text: {names}; keep one, or number them in a column repeat")
