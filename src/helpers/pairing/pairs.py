"""Pairs of verdicts: which of two judges' evaluations of one text to prefer, and why the others are left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from helpers.pairing.cube import cube
from helpers.pairing.fates import (
    ANSWER_FATES,
    EPSILON,
    FATES,
    PUBLISHED,
    PairingRules,
    follow,
    follow_answers,
    has_texts,
)
from helpers.pairing.leaks import LeakReport, leak_report
from helpers.pairing.splits import split
from helpers.pairing.texts import with_texts

__all__ = [
    "ANSWER_FATES",
    "FATES",
    "PUBLISHED",
    "LeakReport",
    "PairingRules",
    "attrition",
    "compare_rules",
    "instruction_attrition",
    "instruction_pairs",
    "leak_report",
    "make_pairs",
    "pair_rows",
    "split",
    "with_texts",
]


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
    if has_texts(judgements):
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
    flow = follow(scores, judgements, anchors, rules)
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
    fates = follow(scores, judgements, anchors, rules).fates
    place = scores.condition[:, None] * len(FATES) + fates
    counts = np.bincount(place.ravel(), minlength=len(scores.conditions) * len(FATES)).reshape(-1, len(FATES))
    table = scores.conditions[["perturbation_category", "dataset_name"]].assign(candidates=counts.sum(axis=1))
    return table.join(pd.DataFrame(counts, columns=list(FATES)))


def instruction_pairs(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, rules: PairingRules = PUBLISHED
) -> pd.DataFrame:
    """Pair the completions of each instruction: chosen is the higher one, at or above the anchor, rejected is below.

    `judgements` has item_id (a completion), sample_id, dataset_name (the subset), model, principle, judge,
    overall_score, prompt and response. A completion's score is the median of its verdicts, at least
    `rules.min_scores`; `min_delta` and `max_pairs` hold as for recipes, the tolerances do not.
    """
    flow = follow_answers(judgements, anchors, rules)
    chosen, rejected = (
        flow.answers.iloc[places[flow.kept]].reset_index(drop=True) for places in (flow.chosen, flow.rejected)
    )
    sides = [_side(chosen, "chosen"), _side(rejected, "rejected")]
    pairs = pd.concat([chosen[["sample_id"]], *sides, chosen[["dataset_name", "prompt", "anchor_score"]]], axis=1)
    delta = (pairs["score_chosen"] - pairs["score_rejected"]).round(9)
    return pairs.assign(score_delta=delta, pair_key=flow.keys.array)


def _side(answers: pd.DataFrame, side: str) -> pd.DataFrame:
    names = {"response": side, "score": f"score_{side}", "model": f"{side}_model"}
    names |= {"principle": f"{side}_principle", "item_id": f"{side}_item"}
    return answers[[name for name in names if name in answers]].rename(columns=names)


def instruction_attrition(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, rules: PairingRules = PUBLISHED
) -> pd.DataFrame:
    """Count for each subset the candidates, how many each rule took, in the order of the rules, and the pairs.

    Takes what `instruction_pairs` takes. A candidate is two scored answers to one instruction; all columns after
    `candidates` add up to it. `same_side` are answers both above or both below the anchor.

    >>> verdicts = pd.DataFrame({"item_id": ["i/0", "i/1", "i/2"], "sample_id": "i", "dataset_name": "flan",
    ...                          "model": ["x", "y", "z"], "overall_score": [5.0, 4.0, 2.0], "prompt": "Why?",
    ...                          "response": ["Because.", "So.", "No."]})
    >>> anchors = pd.DataFrame({"sample_id": ["i"], "anchor_score": [4.0]})
    >>> found = instruction_attrition(verdicts, anchors)
    >>> found[["dataset_name", "candidates", "same_side", "pairs"]].values.tolist()
    [['flan', 3, 1, 2]]
    """
    flow = follow_answers(judgements, anchors, rules)
    subsets = pd.Index(sorted(judgements["dataset_name"].unique()), dtype="str")
    subset = subsets.get_indexer(flow.answers["dataset_name"].astype("str"))[flow.chosen]
    place = subset * len(ANSWER_FATES) + flow.fates
    counts = np.bincount(place, minlength=len(subsets) * len(ANSWER_FATES)).reshape(-1, len(ANSWER_FATES))
    table = pd.DataFrame({"dataset_name": subsets, "candidates": counts.sum(axis=1)})
    return table.join(pd.DataFrame(counts, columns=list(ANSWER_FATES)))


def compare_rules(published: pd.DataFrame, nearest: pd.DataFrame) -> pd.DataFrame:
    """Compare the pairs of the two rules over the same judgements: one row a measure, one column a rule.

    `only here` are pairs that the other rule does not make of the same two verdicts, `reversed` those of which it
    prefers the other one. Shares are null without pairs of their category.
    """
    tables = {"published": published, "nearest": nearest}
    shared = _verdicts(published).merge(_verdicts(nearest), on=["sample_id", "dataset_name", "one", "other"])
    reversed_ = int((shared["chosen_x"] != shared["chosen_y"]).sum())
    columns = {}
    for name, table in tables.items():
        represent, error = (table[table["perturbation_category"] == kind] for kind in ("represent", "error"))
        off = {side: (represent[f"score_{side}"] - represent["anchor_score"]) for side in ("chosen", "rejected")}
        columns[name] = {
            "pairs": len(table),
            "only here": len(table) - len(shared),
            "reversed": reversed_,
            "represent pairs": len(represent),
            "share choosing the score further from the anchor": _share(
                off["chosen"].abs() > off["rejected"].abs() + EPSILON
            ),
            "share choosing more than 0.5 above the anchor": _share(off["chosen"] > 0.5 + EPSILON),
            "error pairs": len(error),
            "share choosing at or above the anchor": _share(error["score_chosen"] > error["anchor_score"] - EPSILON),
        }
    # As objects, counts stay whole numbers beside shares.
    values = {name: pd.Series(list(column.values()), dtype=object) for name, column in columns.items()}
    return pd.DataFrame({"measure": list(columns["published"]), **values})


def _verdicts(pairs: pd.DataFrame) -> pd.DataFrame:
    chosen, rejected = pairs["chosen_model"], pairs["rejected_model"]
    first = chosen < rejected
    names = {"one": chosen.where(first, rejected), "other": rejected.where(first, chosen), "chosen": chosen}
    return pairs[["sample_id", "dataset_name"]].assign(**names)


def _share(flags: pd.Series) -> float:
    return float(flags.mean()) if len(flags) else float("nan")
