"""Do the judges agree: Krippendorff's alpha, rank correlations and quadratic kappa, all by the recipe bootstrap.

Scores take few values, so everything here is computed from counts (score by score), and a resample only reweighs them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from helpers.metrics.resample import Codes, Estimate, Floats, cells, interval, need, recipe_codes, resample

__all__ = ["agreement", "cramers_v", "krippendorff_alpha"]

MAX_LEVELS = 60
MEASURES = ("spearman", "kendall", "quadratic_kappa", "within_half")


def krippendorff_alpha(judgements: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> Estimate:
    """Return Krippendorff's alpha of the judges' scores for the interval metric, over items with two scores or more.

    alpha = 1 − observed / expected disagreement, with squared differences (Krippendorff, Content Analysis, ch. 12).
    It is null where all scores are equal. `judgements` holds item_id, sample_id, judge and overall_score; of repeats
    the median counts. n counts the scores used, n_missing those absent or alone.

    >>> rows = {"item_id": ["a", "a", "b", "b"], "judge": list("xyxy"), "overall_score": [1.0, 1, 4, 4]}
    >>> krippendorff_alpha(pd.DataFrame(rows).assign(sample_id="1"), seed=42, n_boot=20).estimate
    1.0
    """
    medians = _medians(judgements)
    scored = medians.dropna().reset_index()
    scored = scored[scored.groupby("item_id")["item_id"].transform("size") > 1]
    missing = len(medians) - len(scored)
    if scored.empty:
        return Estimate(np.nan, np.nan, np.nan, 0, missing)
    squared = scored.assign(square=scored["overall_score"] ** 2)
    items = squared.groupby(["item_id", "sample_id"]).agg(
        m=("square", "size"), x=("overall_score", "sum"), xx=("square", "sum")
    )
    items = items.assign(within=2 * (items["m"] * items["xx"] - items["x"] ** 2) / (items["m"] - 1))
    sums = items.groupby("sample_id").sum().to_numpy(dtype=float)
    estimate = _alpha(sums.sum(axis=0, keepdims=True))
    draws = resample(lambda weights: _alpha(weights @ sums), len(sums), seed=seed, n_boot=n_boot)
    return _estimate(estimate, draws, len(scored), missing)


def agreement(judgements: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> pd.DataFrame:
    """Return how two judges agree on the items that both scored, for every two judges and four measures.

    spearman and kendall (tau-b) are rank correlations with ties; quadratic_kappa is Cohen's kappa with squared
    weights; within_half is the share of items whose scores differ by at most 0.5. `judgements` holds item_id,
    sample_id, judge and overall_score; of repeats the median counts. Returns judge_a, judge_b, measure, estimate, low,
    high, n, n_missing.

    >>> rows = [("a", "1", j, 2.0) for j in "xy"] + [("b", "2", j, 4.0) for j in "xy"]
    >>> scores = pd.DataFrame(rows, columns=["item_id", "sample_id", "judge", "overall_score"])
    >>> agreement(scores, seed=42, n_boot=20)["estimate"].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    wide = _medians(judgements).unstack("judge")
    tables = [_pair(wide[[first, second]], seed, n_boot) for first, second in combinations(wide.columns, 2)]
    columns = ["judge_a", "judge_b", "measure", "estimate", "low", "high", "n", "n_missing"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def cramers_v(pairs: pd.DataFrame, *, seed: int, n_boot: int = 1000) -> Estimate:
    """Return Cramér's V of which judge is chosen and the category: 0 none, 1 the category names the judge.

    A model trained on pairs with a large V can learn who writes instead of what is right. V is never negative, so
    near 0 both it and its interval lie too high.

    >>> rows = {"sample_id": ["1", "2"], "chosen_model": ["a", "b"], "perturbation_category": ["error", "represent"]}
    >>> cramers_v(pd.DataFrame(rows), seed=42, n_boot=20).estimate
    1.0
    """
    need(pairs, ["sample_id", "chosen_model", "perturbation_category"], "pairs")
    known = pairs.dropna(subset=["chosen_model", "perturbation_category"])
    if known.empty:
        return Estimate(np.nan, np.nan, np.nan, 0, len(pairs))
    judge, judges = pd.factorize(known["chosen_model"], sort=True)
    category, categories = pd.factorize(known["perturbation_category"], sort=True)
    shape = (len(judges), len(categories))
    table, draws = _tables(known["sample_id"], judge, category, shape, _cramers_v, seed, n_boot)
    return _estimate(table, draws, len(known), len(pairs) - len(known))


def _medians(judgements: pd.DataFrame) -> pd.Series[float]:
    keys = ["sample_id", "item_id", "judge"]
    need(judgements, [*keys, "overall_score"], "judgements")
    return judgements.groupby(keys, observed=True)["overall_score"].median()


def _alpha(sums: Floats) -> Floats:
    """Return alpha from the sums over items of m, x, x² and the disagreement within; shape (b, 4) to (b, 1)."""
    n, x, xx, within = sums.T
    between = n * xx - x**2
    flat = between <= 1e-12 * n * xx
    return np.where(flat, np.nan, 1 - (n - 1) * within / (2 * np.where(flat, 1.0, between)))[:, None]


def _pair(scores: pd.DataFrame, seed: int, n_boot: int) -> pd.DataFrame:
    both = scores.dropna()
    levels = np.unique(both.to_numpy(dtype=float))
    if len(levels) > MAX_LEVELS:
        raise ValueError(f"{' and '.join(scores.columns)} use {len(levels)} different scores; round them to 0.1 first")
    codes = np.searchsorted(levels, both.to_numpy(dtype=float))
    shape = (len(levels), len(levels))
    sample_ids = both.index.get_level_values("sample_id").to_series()
    estimate, draws = np.full((1, len(MEASURES)), np.nan), np.full((n_boot, len(MEASURES)), np.nan)
    if len(both):
        measures = partial(_measures, levels=levels)
        estimate, draws = _tables(sample_ids, codes[:, 0], codes[:, 1], shape, measures, seed, n_boot)
    low, high = interval(draws)
    table = pd.DataFrame({"measure": MEASURES, "estimate": estimate[0], "low": low, "high": high})
    table = table.assign(n=len(both), n_missing=len(scores) - len(both))
    table.insert(0, "judge_a", scores.columns[0])
    table.insert(1, "judge_b", scores.columns[1])
    return table


def _tables(
    sample_ids: pd.Series[str],
    rows: Codes,
    columns: Codes,
    shape: tuple[int, int],
    statistic: Callable[[Floats], Floats],
    seed: int,
    n_boot: int,
) -> tuple[Floats, Floats]:
    """Compute a statistic of a contingency table and of its resamples; it maps (b, *shape) to (b, k)."""
    recipe, n_recipes = recipe_codes(sample_ids)
    counts = cells(recipe, rows * shape[1] + columns, (n_recipes, shape[0] * shape[1]))
    whole = statistic(counts.sum(axis=0).reshape(1, *shape))
    draws = resample(
        lambda weights: statistic((weights @ counts).reshape(-1, *shape)), n_recipes, seed=seed, n_boot=n_boot
    )
    return whole, draws


def _measures(tables: Floats, levels: Floats) -> Floats:
    """Return Spearman's rho, Kendall's tau-b, quadratic kappa and the share within 0.5; shape (b, k, k) to (b, 4)."""
    n, first, second = tables.sum(axis=(1, 2)), tables.sum(axis=2), tables.sum(axis=1)
    apart = levels[:, None] - levels
    expected = np.einsum("bi,bj,ij->b", first, second, apart**2) / n
    kappa = 1 - np.einsum("bij,ij->b", tables, apart**2) / np.where(expected > 0, expected, np.nan)
    within = np.einsum("bij,ij->b", tables, (np.abs(apart) <= 0.5 + 1e-9).astype(float)) / n
    return np.column_stack([_spearman(tables, first, second), _kendall(tables, first, second), kappa, within])


def _spearman(tables: Floats, first: Floats, second: Floats) -> Floats:
    """Return the correlation of the mid-ranks, which are taken anew in every resample."""
    half = first.sum(axis=1, keepdims=True) / 2
    ranks = [np.cumsum(margin, axis=1) - margin / 2 - half for margin in (first, second)]
    joint = np.einsum("bij,bi,bj->b", tables, *ranks)
    spread = np.prod(
        [(margin * rank**2).sum(axis=1) for margin, rank in zip((first, second), ranks, strict=True)], axis=0
    )
    return np.asarray(joint / np.sqrt(np.where(spread > 0, spread, np.nan)))


def _kendall(tables: Floats, first: Floats, second: Floats) -> Floats:
    """Return tau-b: concordant minus discordant, over the geometric mean of the pairs not tied on either side."""
    below = np.cumsum(tables, axis=1) - tables  # scores of the first judge that are lower, the second's the same
    smaller = np.cumsum(below, axis=2) - below
    larger = below.sum(axis=2, keepdims=True) - np.cumsum(below, axis=2)
    untied = [(margin.sum(axis=1) ** 2 - (margin**2).sum(axis=1)) / 2 for margin in (first, second)]
    both = untied[0] * untied[1]
    surplus = (tables * (smaller - larger)).sum(axis=(1, 2))
    return np.asarray(surplus / np.sqrt(np.where(both > 0, both, np.nan)))


def _cramers_v(tables: Floats) -> Floats:
    """Return sqrt(chi² / n / (smaller side − 1)); null where a resample has one row or column only."""
    n = tables.sum(axis=(1, 2), keepdims=True)
    expected = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True) / n
    chi2 = ((tables - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=(1, 2))
    sides = [(tables.sum(axis=axis) > 0).sum(axis=1) for axis in (1, 2)]
    smaller = np.minimum(*sides) - 1
    return np.asarray(np.sqrt(chi2 / n.ravel() / np.where(smaller > 0, smaller, np.nan)))[:, None]


def _estimate(estimate: Floats, draws: Floats, n: int, n_missing: int) -> Estimate:
    low, high = interval(draws)
    return Estimate(float(estimate[0, 0]), float(low[0]), float(high[0]), n, n_missing)
