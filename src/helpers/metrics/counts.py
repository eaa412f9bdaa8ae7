"""Counts and summaries: shares with Wilson's intervals, deltas, chosen judges, stated confidence, attrition."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.sparse import coo_array

from helpers.metrics.resample import LEVEL, Floats, group_means, interval, need, recipe_codes, resample
from helpers.perturbations import CONDITIONS

__all__ = [
    "applicability",
    "attrition",
    "calibration",
    "calibration_bins",
    "chosen_counts",
    "delta_by_principle",
    "delta_summary",
    "overall_outside_aspects",
    "reward_accuracy",
    "shares",
    "stated_confidence",
    "wilson",
]

CONFIDENCE = re.compile(r"\bconfidence\b[^%\n]{0,40}?(?<![\d.])(\d{1,3}(?:\.\d+)?)\s*%", re.IGNORECASE)


def wilson(count: pd.Series[float], total: pd.Series[float]) -> tuple[Floats, Floats]:
    """Return Wilson's 95 % interval of a share; null where the total is 0.

    >>> [float(end[0].round(3)) for end in wilson(pd.Series([10.0]), pd.Series([10.0]))]
    [0.722, 1.0]
    """
    from statsmodels.stats.proportion import proportion_confint

    known = total.to_numpy(dtype=float) > 0
    bounds = np.full((2, len(total)), np.nan)
    if known.any():
        ends = (count.to_numpy(dtype=float)[known], total.to_numpy(dtype=float)[known])
        bounds[:, known] = proportion_confint(*ends, alpha=1 - LEVEL, method="wilson")
    return bounds[0], bounds[1]


def shares(frame: pd.DataFrame, of: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Count the values of a column within each group: by..., of, n, total, estimate, low, high (Wilson).

    A value that a group lacks has a row with n = 0, so that a table never hides what did not happen.

    >>> rows = pd.DataFrame({"judge": ["a", "a", "b"], "status": ["ok", "failed", "ok"]})
    >>> shares(rows, "status", ["judge"])["n"].tolist()
    [1, 1, 0, 1]
    """
    need(frame, [of, *by], "rows")
    groups = [frame[name] for name in by] or [pd.Series(0, index=frame.index)]
    table = pd.Series(pd.crosstab(groups, frame[of]).stack(), name="n").reset_index()[[*by, of, "n"]]
    total = table.groupby(list(by))["n"].transform("sum") if by else table["n"] * 0 + table["n"].sum()
    low, high = wilson(table["n"], total)
    return table.assign(total=total, estimate=table["n"] / total.where(total > 0), low=low, high=high)


def attrition(judgements: pd.DataFrame, by: Sequence[str] = ("judge", "dataset_name")) -> pd.DataFrame:
    """Count the verdicts' statuses by judge and condition, so that a missing score has a place where it is seen.

    >>> rows = pd.DataFrame({"judge": ["a", "a"], "dataset_name": "original", "status": ["ok", "refused"]})
    >>> attrition(rows)[["status", "n"]].values.tolist()
    [['ok', 1], ['refused', 1]]
    """
    return shares(judgements, "status", by)


def applicability(items: pd.DataFrame, conditions: Sequence[str], n_recipes: int) -> pd.DataFrame:
    """Return in how many recipes each condition found something to edit, a row for each condition asked for.

    `items` is the table of items. Returns dataset_name, perturbation_category, perturbation_rate, rate_actual (the
    median share of words that went), n, total, estimate, low, high (Wilson).

    >>> items = pd.DataFrame({"sample_id": ["1"], "dataset_name": "action_antonym_100pct", "rate_actual": 0.25})
    >>> applicability(items, ["action_antonym_100pct", "llm_to_name_100pct"], 2)[["n", "total"]].values.tolist()
    [[1, 2], [0, 2]]
    """
    need(items, ["sample_id", "dataset_name", "rate_actual"], "items")
    groups = items.groupby("dataset_name")
    table = pd.DataFrame({"dataset_name": list(conditions)})
    table["perturbation_category"] = [CONDITIONS[name].category for name in conditions]
    table["perturbation_rate"] = [CONDITIONS[name].rate for name in conditions]
    table["rate_actual"] = table["dataset_name"].map(groups["rate_actual"].median())
    table["n"] = table["dataset_name"].map(groups["sample_id"].nunique()).fillna(0).astype("int64")
    table["total"] = n_recipes
    low, high = wilson(table["n"], table["total"])
    return table.assign(estimate=table["n"] / table["total"].where(table["total"] > 0), low=low, high=high)


def overall_outside_aspects(judgements: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> pd.DataFrame:
    """Return, by judge, the share of verdicts whose overall score lies outside the range of its own aspect scores.

    Aspects are the other columns that end in `_score`; a verdict without any is left out and counted.

    >>> rows = {"sample_id": ["1"], "judge": ["a"], "overall_score": [5.0], "x_score": [2.0], "y_score": [4.0]}
    >>> overall_outside_aspects(pd.DataFrame(rows), seed=42, n_boot=9)["estimate"].tolist()
    [1.0]
    """
    need(judgements, ["sample_id", "judge", "overall_score"], "judgements")
    others = ("overall_score", "anchor_score", "own_score")
    aspects = judgements[[name for name in judgements.columns if name.endswith("_score") and name not in others]]
    least, most, overall = aspects.min(axis=1), aspects.max(axis=1), judgements["overall_score"]
    outside = (overall.lt(least) | overall.gt(most)).astype(float).where(overall.notna() & least.notna())
    rows = judgements.assign(outside=outside)
    return group_means(rows, "outside", ["judge"], seed=seed, n_boot=n_boot).with_intervals()


def chosen_counts(pairs: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> pd.DataFrame:
    """Return how often each judge is the chosen one among the pairs that it takes part in, by category.

    >>> pairs = {"sample_id": ["1"], "perturbation_category": "error", "chosen_model": "a", "rejected_model": "b"}
    >>> chosen_counts(pd.DataFrame(pairs), seed=42, n_boot=9)[["judge", "estimate", "n"]].values.tolist()
    [['a', 1.0, 1], ['b', 0.0, 1]]
    """
    need(pairs, ["sample_id", "perturbation_category", "chosen_model", "rejected_model"], "pairs")
    sides = [
        pairs.assign(judge=pairs[f"{side}_model"], chosen=float(side == "chosen")) for side in ("chosen", "rejected")
    ]
    by = ["perturbation_category", "judge"]
    return group_means(pd.concat(sides), "chosen", by, seed=seed, n_boot=n_boot).with_intervals()


def delta_summary(
    pairs: pd.DataFrame, by: Sequence[str] = ("perturbation_category",), *, seed: int, n_boot: int = 1000
) -> pd.DataFrame:
    """Return the mean and the median score delta of each group of pairs, with intervals by the recipe bootstrap.

    Returns by..., mean, mean_low, mean_high, median, median_low, median_high, n, n_recipes.

    >>> pairs = {"sample_id": ["1", "1", "2"], "perturbation_category": "error", "score_delta": [0.5, 1.0, 3.0]}
    >>> delta_summary(pd.DataFrame(pairs), seed=42, n_boot=9)[["mean", "median", "n"]].values.tolist()
    [[1.5, 1.0, 3.0]]
    """
    need(pairs, ["sample_id", "score_delta", *by], "pairs")
    known = pairs.dropna(subset="score_delta")
    rows = [[*keys, *_location(group, seed, n_boot)] for keys, group in known.groupby(list(by), observed=True)]
    ends = [f"{name}{end}" for name in ("mean", "median") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=[*by, *ends, "n", "n_recipes"])


def delta_by_principle(
    pairs: pd.DataFrame, completions: pd.DataFrame, *, seed: int, n_boot: int = 1000
) -> pd.DataFrame:
    """Return the mean score delta by the principles behind the chosen and the rejected response.

    The principle is drawn for every completion, so most pairs set two principles against each other; this table shows
    how much of a preference is the principle's. `completions` holds sample_id, model and principle.

    >>> drawn = pd.DataFrame({"sample_id": "1", "model": ["x", "y"], "principle": ["honesty", "helpfulness"]})
    >>> pairs = {"sample_id": ["1"], "chosen_model": "x", "rejected_model": "y", "score_delta": 2.0}
    >>> delta_by_principle(pd.DataFrame(pairs), drawn, seed=42, n_boot=9)["rejected_principle"].tolist()
    ['helpfulness']
    """
    need(completions, ["sample_id", "model", "principle"], "completions")
    rows, sides = pairs[["sample_id", "chosen_model", "rejected_model", "score_delta"]], ("chosen", "rejected")
    for side in sides:
        drawn = completions[["sample_id", "model", "principle"]].set_axis(
            ["sample_id", f"{side}_model", f"{side}_principle"], axis=1
        )
        rows = rows.merge(drawn, on=["sample_id", f"{side}_model"], how="inner", validate="m:1")
    by = [f"{side}_principle" for side in sides]
    return group_means(rows, "score_delta", by, seed=seed, n_boot=n_boot).with_intervals()


def stated_confidence(response: str) -> float:
    """Return the confidence that a response states last, in percent; null when there is none or it is above 100.

    >>> stated_confidence("It is Paris. Confidence: 80%"), stated_confidence("I am sure, Confidence: 120%")
    (80.0, nan)
    """
    found = CONFIDENCE.findall(response)
    value = float(found[-1]) if found else np.nan
    return value if value <= 100 else np.nan


def calibration(items: pd.DataFrame, judgements: pd.DataFrame) -> pd.DataFrame:
    """Return the stated confidence beside the median score of every response under verbalized_calibration.

    Returns item_id, sample_id, confidence (percent, null where none is stated), score (null where no judge gave one).

    >>> items = {"item_id": ["i"], "sample_id": ["s"], "principle": ["verbalized_calibration"]}
    >>> items = pd.DataFrame(items).assign(response="Yes. Confidence: 90%")
    >>> calibration(items, pd.DataFrame({"item_id": ["i", "i"], "overall_score": [4.0, 5.0]})).values.tolist()
    [['i', 's', 90.0, 4.5]]
    """
    need(items, ["item_id", "sample_id", "principle", "response"], "items")
    rows = items[items["principle"] == "verbalized_calibration"][["item_id", "sample_id", "response"]]
    score = judgements.groupby("item_id")["overall_score"].median().rename("score").reset_index()
    rows = rows.merge(score, on="item_id", how="left", validate="1:1")
    return rows.assign(confidence=rows["response"].fillna("").map(stated_confidence))[
        ["item_id", "sample_id", "confidence", "score"]
    ]


def calibration_bins(
    calibrated: pd.DataFrame, edges: Sequence[float] = (0, 20, 40, 60, 80, 100), *, seed: int, n_boot: int = 1000
) -> pd.DataFrame:
    """Return the mean score by band of stated confidence: confidence (the band's middle), estimate, low, high, n.

    >>> rows = pd.DataFrame({"sample_id": ["1", "2"], "confidence": [90.0, None], "score": [4.0, 3.0]})
    >>> calibration_bins(rows, seed=42, n_boot=9)[["confidence", "estimate", "n"]].values.tolist()
    [[90.0, 4.0, 1.0]]
    """
    middles = (np.asarray(edges[1:]) + np.asarray(edges[:-1])) / 2
    band = pd.cut(calibrated["confidence"], list(edges), labels=middles, include_lowest=True).astype(float)
    rows = calibrated.assign(confidence=band).dropna(subset="confidence")
    return group_means(rows, "score", ["confidence"], seed=seed, n_boot=n_boot).with_intervals()


def reward_accuracy(pairs: pd.DataFrame, scores: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> pd.DataFrame:
    """Return the share of pairs whose chosen text a trained judge finds more likely, by category and for all.

    mean(log P(chosen | prompt) > log P(rejected | prompt)), a tie being a miss and no reference model entering
    (source: card of the JudgeBias-DPO-RefFree test set; TRL's rewards/accuracies subtract a reference).
    `scores` is the trained judge's file: pair_key, logp_chosen, logp_rejected.

    >>> pairs = pd.DataFrame({"pair_key": ["k"], "sample_id": ["1"], "perturbation_category": ["error"]})
    >>> scores = pd.DataFrame({"pair_key": ["k"], "logp_chosen": [-2.0], "logp_rejected": [-3.0]})
    >>> reward_accuracy(pairs, scores, seed=42, n_boot=9)[["perturbation_category", "estimate"]].values.tolist()
    [['all', 1.0], ['error', 1.0]]
    """
    need(scores, ["pair_key", "logp_chosen", "logp_rejected"], "scores")
    rows = pairs.merge(scores, on="pair_key", how="left", validate="1:1")
    known = rows["logp_chosen"].notna() & rows["logp_rejected"].notna()
    rows = rows.assign(right=rows["logp_chosen"].gt(rows["logp_rejected"]).astype(float).where(known))
    both = pd.concat([rows.assign(perturbation_category="all"), rows])
    return group_means(both, "right", ["perturbation_category"], seed=seed, n_boot=n_boot).with_intervals()


def _location(group: pd.DataFrame, seed: int, n_boot: int) -> list[float]:
    """Return the mean and the median of the deltas, each with its interval, then the pairs and the recipes."""
    values, place = np.unique(group["score_delta"].to_numpy(dtype=float), return_inverse=True)
    recipe, n_recipes = recipe_codes(group["sample_id"])
    counts = coo_array((np.ones(len(place)), (place, recipe)), shape=(len(values), n_recipes)).tocsr()

    def statistics(weights: Floats) -> Floats:
        rows = (counts @ weights.T).T
        return np.column_stack([rows @ values / rows.sum(axis=1), _weighted_median(values, rows)])

    low, high = interval(resample(statistics, n_recipes, seed=seed, n_boot=n_boot))
    mean, median = statistics(np.ones((1, n_recipes)))[0]
    return [mean, low[0], high[0], median, low[1], high[1], len(place), n_recipes]


def _weighted_median(ordered: Floats, weights: Floats) -> Floats:
    """Return the median of values in ascending order, each counted as often as its weight; shape (b, n) to (b,)."""
    upto = np.cumsum(weights, axis=1)
    half = upto[:, -1:] / 2
    medians: Floats = (ordered[(upto >= half).argmax(axis=1)] + ordered[(upto > half).argmax(axis=1)]) / 2
    return medians
