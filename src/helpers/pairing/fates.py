"""The rules of pairing, tried on every two verdicts on one text or answers to one instruction: each one's fate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from helpers import anchoring
from helpers.pairing.cube import Cube
from helpers.pairing.texts import Texts, pair_keys

__all__ = [
    "ANSWER_FATES",
    "EPSILON",
    "FATES",
    "PUBLISHED",
    "AnswerFlow",
    "Flow",
    "PairingRules",
    "follow",
    "follow_answers",
    "has_texts",
]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

EPSILON = 1e-9
FATES = (
    "pairs",
    "incomplete_panel",
    "no_anchor",
    "equal",
    "below_min_delta",
    "wrong_side",
    "beyond_tolerance",
    "over_cap",
    "duplicate",
)
ANSWER_FATES = ("too_few_scores", "no_anchor", "same_side", "below_min_delta", "over_cap", "duplicate", "pairs")
KEPT, OVER_CAP, DUPLICATE = FATES.index("pairs"), FATES.index("over_cap"), FATES.index("duplicate")


@dataclass(frozen=True)
class PairingRules:
    """What makes two verdicts on one text a pair; the defaults are the published values, in points of the score.

    By the rule "published" a represent pair chooses the higher score and an error pair the lower one. By "nearest" a
    represent pair chooses the score nearer the anchor, the chosen score of an error pair also lies below the anchor,
    and the anchor leaves out the condition being paired.
    """

    rule: str = "published"
    min_delta: float = 0.5
    represent_tolerance: float = 1.5
    error_tolerance: float = 2.0
    max_pairs: int = 5
    min_scores: int = 1

    def __post_init__(self) -> None:
        if self.rule not in ("published", "nearest"):
            raise ValueError(f"rule is {self.rule!r}; it is 'published' or 'nearest'")
        if self.max_pairs < 1:
            raise ValueError(f"max_pairs is {self.max_pairs}; it is at least 1")


PUBLISHED = PairingRules()


@dataclass(frozen=True)
class Flow:
    """The fate of every candidate, (cells, judge pairs), and for those kept, best first: cell, judges, anchor, key."""

    fates: npt.NDArray[np.int8]
    cell: Ints
    chosen: Ints
    rejected: Ints
    anchor: Floats
    keys: pd.Series | None


def follow(scores: Cube, judgements: pd.DataFrame, anchors: pd.DataFrame, rules: PairingRules) -> Flow:
    """Try the rules, in the order of FATES, on every two verdicts of each text.

    The last one drops pairs of the same three texts, where `judgements` has user and text: the first one stays, by
    condition (represent first), then by sample.
    """
    anchor = _cell_anchors(scores, judgements, anchors, rules)
    fates, left_chosen = _try_rules(scores, anchor[:, None], rules)
    order = _cap(fates, scores, rules.max_pairs)
    cell, place = np.nonzero(np.take_along_axis(fates, order, axis=1) == KEPT)
    pair = order[cell, place]
    left, right = (side[pair] for side in np.triu_indices(len(scores.panel), 1))
    first = left_chosen[cell, pair]
    chosen, rejected = np.where(first, left, right), np.where(first, right, left)
    if not has_texts(judgements):
        return Flow(fates, cell, chosen, rejected, anchor[cell], None)
    keys = _keys(scores, judgements, cell, chosen, rejected)
    by_condition = np.lexsort((scores.sample[cell], scores.condition[cell]))
    again = np.empty(len(cell), dtype=bool)
    again[by_condition] = keys.iloc[by_condition].duplicated()
    fates[cell[again], pair[again]] = DUPLICATE
    kept = ~again
    return Flow(fates, cell[kept], chosen[kept], rejected[kept], anchor[cell[kept]], keys.loc[kept, "key"])


def _cell_anchors(scores: Cube, judgements: pd.DataFrame, anchors: pd.DataFrame, rules: PairingRules) -> Floats:
    known = anchors["anchor_score"].astype("float64")
    if "n_scores" in anchors:
        known = known.where(anchors["n_scores"] >= rules.min_scores)
    known.index = anchors["sample_id"].astype("str")
    if known.index.has_duplicates:
        raise ValueError(f"two anchors for sample {known.index[known.index.duplicated()][0]!r}; keep one")
    found = np.asarray(known.reindex(scores.ids.astype("str")), dtype=np.float64)[scores.sample]
    if rules.rule == "nearest":
        others = anchoring.leave_one_out(judgements, min_scores=rules.min_scores)
        table = others.pivot(index="sample_id", columns="dataset_name", values="anchor_score").reindex(scores.ids)
        for place in np.flatnonzero(scores.conditions["dataset_name"].isin(anchoring.GRADED)):
            cells = scores.condition == place
            found[cells] = table[scores.conditions["dataset_name"][place]].to_numpy()[scores.sample[cells]]
    return found


def _try_rules(scores: Cube, anchor: Floats, rules: PairingRules) -> tuple[npt.NDArray[np.int8], Bools]:
    """Return the fate of every two judges on every text, and whether the alphabetically first of them is chosen."""
    left, right = np.triu_indices(len(scores.panel), 1)
    a, b = scores.scores[:, left], scores.scores[:, right]
    error = (scores.conditions["perturbation_category"] == "error").to_numpy()[scores.condition][:, None]
    delta = np.abs(a - b)
    left_chosen, shortfall = (a > b) != error, anchor - np.maximum(a, b)
    undecided: Bools | bool = False
    if rules.rule == "nearest":
        off_a, off_b = np.abs(a - anchor), np.abs(b - anchor)
        left_chosen = np.where(error, left_chosen, off_a < off_b)
        shortfall = np.where(error, shortfall, np.minimum(off_a, off_b))
        undecided = np.where(error, np.minimum(a, b) > anchor - EPSILON, np.abs(off_a - off_b) <= EPSILON)
    tests = {
        "incomplete_panel": np.isnan(scores.scores).any(axis=1, keepdims=True),
        "no_anchor": np.isnan(anchor),
        "equal": delta <= EPSILON,
        "below_min_delta": delta < rules.min_delta - EPSILON,
        "wrong_side": undecided,
        "beyond_tolerance": shortfall > np.where(error, rules.error_tolerance, rules.represent_tolerance) + EPSILON,
    }
    return _first_to_fall(tests, FATES, a.shape), left_chosen


def _first_to_fall(tests: dict[str, Any], fates: Sequence[str], shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Return for each candidate the place in `fates` of the first test that it falls to, or else of `pairs`."""
    found = np.full(shape, fates.index("pairs"), dtype=np.int8)
    for name, falls in reversed(tests.items()):
        np.copyto(found, fates.index(name), where=falls)
    return found


def _cap(fates: npt.NDArray[np.int8], scores: Cube, max_pairs: int) -> Ints:
    """Mark what is over the cap of each text; return its judge pairs by delta, then by their names."""
    left, right = np.triu_indices(len(scores.panel), 1)
    delta = np.round(np.abs(scores.scores[:, left] - scores.scores[:, right]), 9)
    order = np.argsort(np.where(fates == KEPT, -delta, np.inf), axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    fates[(fates == KEPT) & (rank >= max_pairs)] = OVER_CAP
    return order


def _keys(scores: Cube, judgements: pd.DataFrame, cell: Ints, chosen: Ints, rejected: Ints) -> pd.DataFrame:
    user, text = Texts.of(judgements["user"]), Texts.of(judgements["text"])
    parts = []
    for name, texts, judge in (("user", user, np.zeros_like(chosen)), ("text", text, chosen), ("text", text, rejected)):
        row = scores.rows[cell, judge]
        parts.append(texts.take(row))
        if (missing := parts[-1].places < 0).any():
            raise ValueError(f"judgement {judgements.index[row[missing][0]]} has a score but no {name}")
    return pair_keys(*parts)


@dataclass(frozen=True)
class AnswerFlow:
    """The fate of every two scored answers to one instruction, by their places in `answers`; those kept, best first.

    `answers` has one row for each, with score, n_scores and anchor_score; `kept` are places in `fates`, `keys` belong
    to them.
    """

    answers: pd.DataFrame
    chosen: Ints
    rejected: Ints
    fates: npt.NDArray[np.int8]
    kept: Ints
    keys: pd.Series


def follow_answers(judgements: pd.DataFrame, anchors: pd.DataFrame, rules: PairingRules) -> AnswerFlow:
    """Try the rules, in the order of ANSWER_FATES, on every two answers to an instruction that have scores.

    The cap goes by delta, then by the names of the models; of pairs of the same three texts the first sample's stays.
    """
    answers = _scored_answers(judgements)
    answers = answers.merge(anchors[["sample_id", "anchor_score"]], "left", "sample_id", validate="many_to_one")
    chosen, rejected = _every_two(answers)
    fates = _try_answer_rules(answers, chosen, rejected, rules)
    best = _best_first(answers, chosen, rejected, np.flatnonzero(fates == ANSWER_FATES.index("pairs")))
    over = best.groupby("sample_id", observed=True).cumcount() >= rules.max_pairs
    fates[best.index[over]] = ANSWER_FATES.index("over_cap")
    kept = best.index[~over].to_numpy()
    prompt, response = Texts.of(answers["prompt"]), Texts.of(answers["response"])
    keys = pair_keys(prompt.take(chosen[kept]), response.take(chosen[kept]), response.take(rejected[kept]))
    again = keys.duplicated().to_numpy()
    fates[kept[again]] = ANSWER_FATES.index("duplicate")
    return AnswerFlow(answers, chosen, rejected, fates, kept[~again], keys.loc[~again, "key"])


def _scored_answers(judgements: pd.DataFrame) -> pd.DataFrame:
    scored = judgements.dropna(subset=["overall_score"])
    facts = scored.drop_duplicates("item_id").set_index("item_id")
    scores = scored.groupby("item_id", observed=True)["overall_score"]
    return facts.assign(score=scores.median().astype("float64"), n_scores=scores.size()).reset_index()


def _every_two(answers: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return the places of the higher and of the lower of every two answers to one instruction."""
    places = pd.DataFrame({"sample": pd.factorize(answers["sample_id"])[0], "place": np.arange(len(answers))})
    both = places.merge(places, on="sample")
    left, right = both.loc[both["place_x"] < both["place_y"], ["place_x", "place_y"]].to_numpy().T
    score = answers["score"].to_numpy()
    higher = score[left] >= score[right]
    return np.where(higher, left, right), np.where(higher, right, left)


def _try_answer_rules(answers: pd.DataFrame, chosen: Ints, rejected: Ints, rules: PairingRules) -> npt.NDArray[np.int8]:
    score, anchor = answers["score"].to_numpy(), answers["anchor_score"].to_numpy("float64")
    few, above = (answers["n_scores"] < rules.min_scores).to_numpy(), score > anchor - EPSILON
    tests = {
        "too_few_scores": few[chosen] | few[rejected],
        "no_anchor": np.isnan(anchor[chosen]),
        "same_side": above[chosen] == above[rejected],
        "below_min_delta": np.round(score[chosen] - score[rejected], 9) < rules.min_delta - EPSILON,
    }
    return _first_to_fall(tests, ANSWER_FATES, chosen.shape)


def _best_first(answers: pd.DataFrame, chosen: Ints, rejected: Ints, rows: Ints) -> pd.DataFrame:
    """Return these candidates by sample, delta (descending) and names, which are unique; the index are the rows."""
    sides = {"chosen": answers.iloc[chosen[rows]], "rejected": answers.iloc[rejected[rows]]}
    scores = {side: table["score"].to_numpy() for side, table in sides.items()}
    columns = {"sample_id": sides["chosen"]["sample_id"].array}
    columns["score_delta"] = -np.round(scores["chosen"] - scores["rejected"], 9)
    for name in ("model", "item_id"):
        columns |= {f"{side}_{name}": table[name].array for side, table in sides.items()}
    return pd.DataFrame(columns, index=rows).sort_values(list(columns))


def has_texts(judgements: pd.DataFrame) -> bool:
    """Whether the judgements come with what was asked and what was answered."""
    return {"user", "text"} <= set(judgements.columns)
