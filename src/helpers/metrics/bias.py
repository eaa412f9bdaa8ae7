"""How much a judge's score follows the wording, and how much it follows an error."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from helpers.metrics.resample import Floats, Resampled, group_means, need

__all__ = ["METRICS", "detection_by_rate", "judge_bias", "paired_differences", "score_by_anchor", "score_by_rate"]

METRICS = ("repr_bias", "error_sensitivity", "validity", "stability", "accuracy")
COLUMNS = ("sample_id", "dataset_name", "perturbation_category", "perturbation_rate", "judge", "overall_score")
TOLERANCE = 1e-9  # 4.4 − 3.9 is 0.5 for a reader, and a little more for a float


def judge_bias(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, seed: int, n_boot: int = 1000, tau: float = 0.5
) -> pd.DataFrame:
    """Measure every judge's bias, a row for each judge and metric.

    `judgements` holds sample_id, dataset_name, perturbation_category, perturbation_rate, judge and overall_score;
    `anchors` holds sample_id and anchor_score. Returns judge, metric, estimate, low, high (95 %, recipes resampled), n
    and n_missing: the judgements without a score, an anchor, or the judge's own score of the original.

    * repr_bias: mean |score − anchor| on `represent` (lower is better); error_sensitivity: mean (anchor − score) on
      `error` (higher is better). Source: card of the JudgeBias-DPO-RefFree test set.
    * validity: share of errors that lower the judge's score of the original by more than `tau`; stability: share of
      equivalents that move it by at most `tau`; accuracy: share of both that are so. Each is the area under the share
      over the graded rates (1 to 15 %), by trapezoids, divided by the width. Source: ASSAY (Findings of EMNLP 2026).

    >>> rows = [("r1", "original", None, 0.0, 4.0), ("r1", "all_error_perturbation_1pct", "error", 0.01, 3.0)]
    >>> scores = pd.DataFrame(rows, columns=[*COLUMNS[:4], "overall_score"]).assign(judge="a")
    >>> anchors = pd.DataFrame({"sample_id": ["r1"], "anchor_score": [4.5]})
    >>> judge_bias(scores, anchors, seed=42).set_index("metric")["estimate"].to_dict()
    {'error_sensitivity': 1.5, 'validity': 1.0, 'accuracy': 1.0}
    """
    observed = _observations(judgements, anchors, tau)
    return _estimates(observed, ["judge"], seed, n_boot).with_intervals()


def paired_differences(
    judgements: pd.DataFrame, anchors: pd.DataFrame, *, seed: int, n_boot: int = 1000, tau: float = 0.5
) -> pd.DataFrame:
    """Compare every two judges on the items that both scored: estimate is the first judge minus the second.

    p is two-sided, from the bootstrap (no smaller than 2 / (n_boot + 1)); p_holm corrects it for the pairs of judges
    within a metric. Two overlapping intervals say little; the interval of a paired difference does.

    >>> empty = pd.DataFrame(columns=[*COLUMNS])
    >>> paired_differences(empty, pd.DataFrame(columns=["sample_id", "anchor_score"]), seed=1).columns[:4].tolist()
    ['judge_a', 'judge_b', 'metric', 'estimate']
    """
    keys = ["metric", "step", "sample_id", "dataset_name"]
    observed = _observations(judgements, anchors, tau)
    by_judge = observed.groupby(["judge", *keys], observed=True)["value"].mean().reset_index()
    parts = [by_judge.head(0).assign(judge_a="", judge_b="")]
    for first, second in combinations(sorted(by_judge["judge"].unique()), 2):
        rows = [by_judge[by_judge["judge"] == judge] for judge in (first, second)]
        both = rows[0].merge(rows[1], on=keys, how="outer", validate="1:1")
        value = both["value_x"] - both["value_y"]
        parts.append(both[keys].assign(judge_a=first, judge_b=second, value=value))
    resampled = _estimates(pd.concat(parts), ["judge_a", "judge_b"], seed, n_boot)
    table = resampled.with_intervals().assign(p=_two_sided(resampled.draws))
    return table.assign(p_holm=table.groupby("metric")["p"].transform(_holm))


def score_by_rate(judgements: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> pd.DataFrame:
    """Return the mean score by judge, category and graded rate; rate 0 is the original recipe.

    >>> rows = {"sample_id": ["1"], "dataset_name": "original", "perturbation_category": [None]}
    >>> scores = pd.DataFrame(rows).assign(perturbation_rate=0.0, judge="a", overall_score=4.0)
    >>> score_by_rate(scores, seed=1, n_boot=9)["perturbation_category"].tolist()
    ['error', 'represent']
    """
    need(judgements, COLUMNS, "judgements")
    rate = judgements["perturbation_rate"].astype(float)
    graded = judgements[judgements["perturbation_category"].isin(["error", "represent"]) & (rate < 1)]
    starts = judgements[judgements["dataset_name"] == "original"].assign(perturbation_rate=0.0)
    both = [starts.assign(perturbation_category=category) for category in ("error", "represent")]
    by = ["judge", "perturbation_category", "perturbation_rate"]
    return group_means(pd.concat([graded, *both]), "overall_score", by, seed=seed, n_boot=n_boot).with_intervals()


def score_by_anchor(judgements: pd.DataFrame, anchors: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> pd.DataFrame:
    """Return each judge's mean score of `represent` items by the recipe's anchor, rounded to halves.

    >>> empty = pd.DataFrame(columns=[*COLUMNS])
    >>> len(score_by_anchor(empty, pd.DataFrame(columns=["sample_id", "anchor_score"]), seed=1))
    0
    """
    need(judgements, COLUMNS, "judgements")
    rows = judgements[judgements["perturbation_category"] == "represent"]
    rows = rows.merge(_recipe_anchors(anchors), on="sample_id", how="inner", validate="m:1")
    rows = rows.assign(anchor_score=(rows["anchor_score"].astype(float) * 2).round() / 2)
    return group_means(rows, "overall_score", ["judge", "anchor_score"], seed=seed, n_boot=n_boot).with_intervals()


def detection_by_rate(judgements: pd.DataFrame, anchors: pd.DataFrame, *, tau: float = 0.5) -> pd.DataFrame:
    """Return the share of errors detected and of equivalents left stable, by judge and graded rate.

    The curves whose areas are validity and stability. Intervals are Wilson's, with the recipes as n.

    >>> empty = pd.DataFrame(columns=[*COLUMNS])
    >>> len(detection_by_rate(empty, pd.DataFrame(columns=["sample_id", "anchor_score"])))
    0
    """
    from helpers.metrics.counts import wilson

    observed = _observations(judgements, anchors, tau)
    observed = observed[observed["metric"].isin(["validity", "stability"])]
    used = observed.assign(recipe=observed["sample_id"].where(observed["value"].notna()))
    table = used.groupby(["judge", "metric", "step"], observed=True).agg(
        estimate=("value", "mean"), n=("value", "count"), rows=("value", "size"), recipes=("recipe", "nunique")
    )
    low, high = wilson(table["estimate"] * table["recipes"], table["recipes"])
    table = table.assign(low=low, high=high, n_missing=table["rows"] - table["n"]).reset_index()
    columns = ["judge", "metric", "perturbation_rate", "estimate", "low", "high", "n", "n_missing"]
    return table.rename(columns={"step": "perturbation_rate"})[columns]


def _observations(judgements: pd.DataFrame, anchors: pd.DataFrame, tau: float) -> pd.DataFrame:
    """Return a row for each judgement and metric that it enters; `step` is the rate, or 0 where there is no curve."""
    need(judgements, COLUMNS, "judgements")
    rows = judgements.assign(overall_score=pd.to_numeric(judgements["overall_score"]))
    own = rows[rows["dataset_name"] == "original"].groupby(["sample_id", "judge"])["overall_score"].median()
    rows = rows.merge(_recipe_anchors(anchors), on="sample_id", how="left", validate="m:1")
    rows = rows.merge(own.rename("own_score").reset_index(), on=["sample_id", "judge"], how="left", validate="m:1")
    category, rate = rows["perturbation_category"], rows["perturbation_rate"].astype(float)
    represent, error, graded = category.eq("represent"), category.eq("error"), rate.gt(0) & rate.lt(1)
    gap, drop = rows["anchor_score"].astype(float) - rows["overall_score"], rows["own_score"] - rows["overall_score"]
    detected = drop.gt(tau + TOLERANCE).astype(float).where(drop.notna())
    stable = drop.abs().le(tau + TOLERANCE).astype(float).where(drop.notna())
    nowhere = rate * 0.0
    parts = {
        "repr_bias": (represent, gap.abs(), nowhere),
        "error_sensitivity": (error, gap, nowhere),
        "validity": (error & graded, detected, rate),
        "stability": (represent & graded, stable, rate),
        "accuracy": ((error | represent) & graded, detected.where(error, stable), rate),
    }
    keep = ["sample_id", "dataset_name", "judge"]
    tables = [
        rows.loc[where, keep].assign(metric=metric, step=step[where], value=value[where])
        for metric, (where, value, step) in parts.items()
    ]
    observed = pd.concat(tables, ignore_index=True)
    return observed.assign(metric=pd.Categorical(observed["metric"], METRICS))


def _recipe_anchors(anchors: pd.DataFrame) -> pd.DataFrame:
    need(anchors, ["sample_id", "anchor_score"], "anchors")
    recipes = anchors[anchors["track"] == "recipe"] if "track" in anchors else anchors
    return recipes[["sample_id", "anchor_score"]]


def _estimates(observed: pd.DataFrame, who: list[str], seed: int, n_boot: int) -> Resampled:
    """Average within each step, then join the steps of a metric to one number by their trapezoid weights."""
    means = group_means(observed, "value", [*who, "metric", "step"], seed=seed, n_boot=n_boot)
    rows, draws = [], []
    steps = means.table.groupby("metric", observed=True)["step"].unique()
    weights = {metric: _trapezoid(found) for metric, found in steps.items()}
    for keys, group in means.table.groupby([*who, "metric"], observed=True):
        weight = weights[keys[-1]].reindex(group["step"]).to_numpy()
        whole = 1.0 if len(group) == len(weights[keys[-1]]) else np.nan  # a rate without rows leaves no area
        rows.append([*keys, whole * (group["estimate"] @ weight), group["n"].sum(), group["n_missing"].sum()])
        draws.append(whole * (means.draws[:, group.index] @ weight))
    table = pd.DataFrame(rows, columns=[*who, "metric", "estimate", "n", "n_missing"]).astype({"metric": str})
    return Resampled(table, np.column_stack(draws) if draws else np.empty((n_boot, 0)))


def _trapezoid(steps: Floats) -> pd.Series[float]:
    """Return the weight of each step in the area under a curve divided by its width; a single step has weight 1."""
    ordered = np.sort(np.asarray(steps, dtype=float))
    if len(ordered) == 1:
        return pd.Series([1.0], index=ordered)
    sides = np.diff(ordered, prepend=ordered[0], append=ordered[-1])
    return pd.Series((sides[1:] + sides[:-1]) / 2 / (ordered[-1] - ordered[0]), index=ordered)


def _two_sided(draws: Floats) -> Floats:
    """Return the bootstrap p of no difference: twice the smaller tail, the estimate counted in."""
    known = ~np.isnan(draws)
    below, above = ((draws <= 0) & known).sum(axis=0), ((draws >= 0) & known).sum(axis=0)
    p = np.minimum(1.0, 2 * (np.minimum(below, above) + 1) / (known.sum(axis=0) + 1))
    return np.where(known.any(axis=0), p, np.nan)


def _holm(p: pd.Series[float]) -> pd.Series[float]:
    from statsmodels.stats.multitest import multipletests

    known = p.dropna()
    corrected = multipletests(known, method="holm")[1] if len(known) else []
    return pd.Series(corrected, index=known.index, dtype=float).reindex(p.index)
