"""Pairs of verdicts: which of two judges' evaluations of one text to prefer, and why the others are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from helpers import anchoring
from helpers.cube import Cube, cube
from helpers.leaks import LeakReport, leak_report
from helpers.splits import split
from helpers.texts import Texts, pair_keys, with_texts

__all__ = [
    "FATES",
    "PUBLISHED",
    "LeakReport",
    "PairingRules",
    "attrition",
    "compare_rules",
    "instruction_pairs",
    "leak_report",
    "make_pairs",
    "pair_rows",
    "split",
    "with_texts",
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
class _Flow:
    """The fate of every candidate, (cells, judge pairs), and for those kept, best first: cell, judges, anchor, key."""

    fates: npt.NDArray[np.int8]
    cell: Ints
    chosen: Ints
    rejected: Ints
    anchor: Floats
    keys: pd.Series | None


def make_pairs(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, judges: Sequence[str], rules: PairingRules = PUBLISHED
) -> pd.DataFrame:
    """Pair the panel's verdicts on each perturbed text: one row a pair, in prompt order.

    `judgements` has sample_id, dataset_name (or perturbation_type and _rate), judge, overall_score, and user and text
    for the columns prompt, chosen and rejected, which keep the type they come in; conditions other than the 17 also
    need perturbation_category. `original` rows and other judges are left out; of repeats, repeat 0 counts. The order
    of rows and of judges changes nothing. Raises ValueError for two verdicts of one judge on one text.

    >>> verdicts = pd.DataFrame({"sample_id": "a", "dataset_name": "llm_to_name_100pct", "judge": ["x", "y"],
    ...                          "overall_score": [4.1, 3.6]})
    >>> anchors = pd.DataFrame({"sample_id": ["a"], "anchor_score": [4.0]})
    >>> make_pairs(verdicts, anchors, judges=["x", "y"])[["chosen_model", "rejected_model", "score_delta"]]
      chosen_model rejected_model  score_delta
    0            x              y          0.5
    """
    pairs = pair_rows(judgements, anchors, judges=judges, rules=rules)
    if _has_texts(judgements):
        return with_texts(pairs, judgements)
    return pairs.drop(columns=["prompt", "chosen", "rejected"])


def pair_rows(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, judges: Sequence[str], rules: PairingRules = PUBLISHED
) -> pd.DataFrame:
    """Pair like `make_pairs`, but put positions of rows of `judgements` where the texts belong.

    A text takes part in several pairs: this way it is held once, and memory does not grow with the pairs. `pair_key`
    is the published SHA-256 of the user text, the chosen and the rejected one.
    """
    scores = cube(judgements, judges)
    flow = _flow(scores, judgements, anchors, rules)
    cell, panel = flow.cell, pd.Index(scores.panel, dtype="str")
    chosen, rejected = scores.scores[cell, flow.chosen], scores.scores[cell, flow.rejected]
    condition = {name: scores.conditions[name].array.take(scores.condition[cell]) for name in scores.conditions}
    pairs = pd.DataFrame(
        {
            "prompt": scores.rows[cell, 0],
            "chosen": scores.rows[cell, flow.chosen],
            "rejected": scores.rows[cell, flow.rejected],
            "score_chosen": chosen,
            "score_rejected": rejected,
            "score_delta": np.round(np.abs(chosen - rejected), 9),
            "anchor_score": flow.anchor,
            "sample_id": scores.ids.take(scores.sample[cell]),
            "perturbation_type": condition["perturbation_type"],
            "perturbation_category": condition["perturbation_category"],
            "perturbation_rate": condition["perturbation_rate"],
            "chosen_model": panel.take(flow.chosen),
            "rejected_model": panel.take(flow.rejected),
            "dataset_name": condition["dataset_name"],
        }
    )
    return pairs if flow.keys is None else pairs.assign(pair_key=flow.keys.array)


def attrition(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, judges: Sequence[str], rules: PairingRules = PUBLISHED
) -> pd.DataFrame:
    """Count for each condition the candidates, the pairs, and how many each rule took, in the order of the rules.

    A candidate is two judges of the panel on one text; all columns after `candidates` add up to it.
    """
    scores = cube(judgements, judges)
    fates = _flow(scores, judgements, anchors, rules).fates
    place = scores.condition[:, None] * len(FATES) + fates
    counts = np.bincount(place.ravel(), minlength=len(scores.conditions) * len(FATES)).reshape(-1, len(FATES))
    table = scores.conditions[["perturbation_category", "dataset_name"]].assign(candidates=counts.sum(axis=1))
    return table.join(pd.DataFrame(counts, columns=list(FATES)))


def _has_texts(judgements: pd.DataFrame) -> bool:
    return {"user", "text"} <= set(judgements.columns)


def _flow(scores: Cube, judgements: pd.DataFrame, anchors: pd.DataFrame, rules: PairingRules) -> _Flow:
    anchor = _cell_anchors(scores, judgements, anchors, rules)
    fates, left_chosen = _try_rules(scores, anchor[:, None], rules)
    order = _cap(fates, scores, rules.max_pairs)
    cell, place = np.nonzero(np.take_along_axis(fates, order, axis=1) == KEPT)
    pair = order[cell, place]
    left, right = (side[pair] for side in np.triu_indices(len(scores.panel), 1))
    first = left_chosen[cell, pair]
    chosen, rejected = np.where(first, left, right), np.where(first, right, left)
    if not _has_texts(judgements):
        return _Flow(fates, cell, chosen, rejected, anchor[cell], None)
    keys = _keys(scores, judgements, cell, chosen, rejected)
    by_condition = np.lexsort((scores.sample[cell], scores.condition[cell]))
    again = np.empty(len(cell), dtype=bool)
    again[by_condition] = keys.iloc[by_condition].duplicated()
    fates[cell[again], pair[again]] = DUPLICATE
    kept = ~again
    return _Flow(fates, cell[kept], chosen[kept], rejected[kept], anchor[cell[kept]], keys.loc[kept, "key"])


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
    fates = np.full(a.shape, KEPT, dtype=np.int8)
    for name, falls in reversed(tests.items()):
        np.copyto(fates, FATES.index(name), where=falls)
    return fates, left_chosen


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


def instruction_pairs(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, rules: PairingRules = PUBLISHED
) -> pd.DataFrame:
    """Pair the completions of each instruction: chosen is the higher one, at or above the anchor, rejected is below.

    `judgements` has item_id (a completion), sample_id, dataset_name (the subset), model, principle, judge,
    overall_score, prompt and response. A completion's score is the median of its verdicts, at least
    `rules.min_scores`; `min_delta` and `max_pairs` hold as for recipes, the tolerances do not.
    """
    completions = _completions(judgements, rules.min_scores)
    completions = completions.merge(anchors[["sample_id", "anchor_score"]], on="sample_id", validate="many_to_one")
    above = completions["score"] > completions["anchor_score"] - EPSILON
    below = completions["score"] < completions["anchor_score"] - EPSILON
    shared = completions[["sample_id", "dataset_name", "prompt", "anchor_score"]].drop_duplicates("sample_id")
    pairs = _side(completions[above], "chosen").merge(_side(completions[below], "rejected"), on="sample_id")
    pairs = pairs.merge(shared, on="sample_id", validate="many_to_one")
    pairs["score_delta"] = (pairs["score_chosen"] - pairs["score_rejected"]).round(9)
    pairs = pairs[pairs["score_delta"] >= rules.min_delta - EPSILON]
    order = ["sample_id", "score_delta", "chosen_model", "rejected_model", "chosen_item", "rejected_item"]
    pairs = pairs.sort_values(order, ascending=[name != "score_delta" for name in order])
    pairs = pairs[pairs.groupby("sample_id").cumcount() < rules.max_pairs].reset_index(drop=True)
    keys = pair_keys(*(Texts.of(pairs[name]) for name in ("prompt", "chosen", "rejected")))
    return pairs.assign(pair_key=keys["key"])[~keys.duplicated()].reset_index(drop=True)


def _completions(judgements: pd.DataFrame, min_scores: int) -> pd.DataFrame:
    scored = judgements.dropna(subset=["overall_score"])
    facts = scored.drop_duplicates("item_id").set_index("item_id")
    scores = scored.groupby("item_id", observed=True)["overall_score"]
    facts = facts.assign(score=scores.median().astype("float64"))
    return facts[scores.size().reindex(facts.index) >= min_scores].reset_index()


def _side(completions: pd.DataFrame, side: str) -> pd.DataFrame:
    names = {"sample_id": "sample_id", "response": side, "score": f"score_{side}", "model": f"{side}_model"}
    names |= {"principle": f"{side}_principle", "item_id": f"{side}_item"}
    return completions[[name for name in names if name in completions]].rename(columns=names)


def compare_rules(published: pd.DataFrame, nearest: pd.DataFrame) -> pd.DataFrame:
    """Compare the pairs of the two rules over the same judgements: one row a measure, one column a rule.

    `only here` are pairs that the other rule does not make of the same two verdicts, `reversed` those of which it
    prefers the other one. Shares are null without pairs of their category.
    """
    tables = {"published": published, "nearest": nearest}
    verdicts = {name: _verdicts(table) for name, table in tables.items()}
    shared = verdicts["published"].keys() & verdicts["nearest"].keys()
    reversed_ = sum(verdicts["published"][key] != verdicts["nearest"][key] for key in shared)
    columns = {}
    for name, table in tables.items():
        represent, error = (table[table["perturbation_category"] == kind] for kind in ("represent", "error"))
        off = {side: (represent[f"score_{side}"] - represent["anchor_score"]) for side in ("chosen", "rejected")}
        columns[name] = {
            "pairs": len(table),
            "only here": len(verdicts[name]) - len(shared),
            "reversed": reversed_,
            "represent pairs": len(represent),
            "share choosing the score further from the anchor": _share(
                off["chosen"].abs() > off["rejected"].abs() + EPSILON
            ),
            "share choosing more than 0.5 above the anchor": _share(off["chosen"] > 0.5 + EPSILON),
            "error pairs": len(error),
            "share choosing at or above the anchor": _share(error["score_chosen"] > error["anchor_score"] - EPSILON),
        }
    return pd.DataFrame(columns).rename_axis("measure").reset_index()


def _verdicts(pairs: pd.DataFrame) -> dict[tuple[object, ...], str]:
    columns = zip(
        *(pairs[name] for name in ("sample_id", "dataset_name", "chosen_model", "rejected_model")), strict=True
    )
    return {(sample, name, *sorted((chosen, rejected))): chosen for sample, name, chosen, rejected in columns}


def _share(flags: pd.Series) -> float:
    return float(flags.mean()) if len(flags) else float("nan")
