"""Figures of what was sampled: principles, conditions, rates."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from helpers import keyed
from helpers.figures.marks import counts, grid, intervals, legend, percent
from helpers.figures.style import INK, canvas, current, label, looks, nothing

__all__ = ["plot_applicability", "plot_principle_grid", "plot_principle_shares", "plot_rates"]

PRINCIPLES = ("helpfulness", "truthfulness", "honesty", "verbalized_calibration")


def plot_principle_shares(audit: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw observed against declared principle shares; `audit` comes from `principles.audit`."""
    question = "Do the drawn principles follow the declared mix?"
    if audit.empty:
        return nothing(question, ax)
    subsets = list(dict.fromkeys(audit["subset"]))
    ax = canvas(question, ax, rows=4 * len(subsets) + 5)
    drawn = audit.rename(columns={"observed_share": "estimate"}).assign(
        place=audit["subset"].map(subsets.index) + audit["principle"].map(PRINCIPLES.index) * 0.2 - 0.3
    )
    drawn = drawn[(drawn["observed"] > 0) | (drawn["expected_share"] > 0)]
    for principle, look in looks(PRINCIPLES).items():
        rows = drawn[drawn["principle"] == principle]
        intervals(ax, rows["place"], rows, look, label(principle))
    ax.scatter(drawn["expected_share"], drawn["place"], marker="|", s=70, color=INK, zorder=3, label="declared share")
    n = audit.groupby("subset")["n"].first()
    ax.set_yticks(range(len(subsets)), [f"{label(name)}\nn = {n[name]:,}" for name in subsets])
    ax.set_ylim(len(subsets) - 0.5, -0.5)
    ax.set(xlabel="share of completions (95 % interval)", xlim=(-0.02, 1.02))
    percent(ax, "x")
    legend(ax)
    return ax


def plot_principle_grid(audit: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw which principle each subset was given, as shares and counts; `audit` comes from `principles.audit`."""
    question = "Which principles does each subset get?"
    if audit.empty:
        return nothing(question, ax)
    drawn = zip(audit["observed_share"].astype(float), audit["observed"].astype(int), strict=True)
    texts = [f"{100 * share:.0f} %\n({n:,})" for share, n in drawn]
    rows = audit.assign(value=audit["observed_share"], text=texts)
    subsets = list(dict.fromkeys(audit["subset"]))
    ax = canvas(question, ax, rows=2.6 * len(subsets) + 4)
    place = {"index": "subset", "columns": "principle"}
    grid(ax, rows, place, subsets, list(PRINCIPLES), 1.0)
    ax.set_xlabel("principle: share of the subset's completions (count)", loc="right")
    ax.set_xticks(np.arange(4) + 0.5, ["helpful-\nness", "truthful-\nness", "honesty", "verbalized\ncalibration"])
    return ax


def plot_applicability(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw in how many recipes each condition found something to edit; `table` comes from `metrics.applicability`."""
    question = "In how many recipes does a condition find something to edit?"
    if table.empty:
        return nothing(question, ax)
    ax = canvas(question, ax, rows=1.15 * len(table) + 5)
    texts = [f"{row.n:,} of {row.total:,}" for row in table.itertuples()]
    counts(ax, list(table["dataset_name"]), table["n"], texts, list(table["perturbation_category"]))
    ax.set_xlabel("recipes")
    legend(ax)
    return ax


def plot_rates(items: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the share of words that really changed against the share asked for, a dot a recipe; the ring is the median.

    `items` holds sample_id, dataset_name, perturbation_category, perturbation_rate and rate_actual.
    """
    graded = items[items["perturbation_rate"].gt(0) & items["perturbation_rate"].lt(1)]
    question = "How close is the actual rate to the one asked for?"
    if graded.empty:
        return nothing(question, ax)
    ax = canvas(question, ax)
    rates = sorted(graded["perturbation_rate"].unique())
    ax.step(
        [-0.5, *np.arange(len(rates)) + 0.5], [*rates[:1], *rates], color=INK, lw=current().line / 2, label="asked for"
    )
    for side, category in ((-0.2, "error"), (0.2, "represent")):
        rows, look = graded[graded["perturbation_category"] == category], looks([category])[category]
        keys = zip(rows["sample_id"], rows["dataset_name"], strict=True)
        jitter = np.array([keyed.unit(0, "jitter", *key) - 0.5 for key in keys]) * 0.28
        places = rows["perturbation_rate"].map(rates.index) + side
        ax.scatter(places + jitter, rows["rate_actual"], 6, look.colour, marker=look.marker, alpha=0.45, lw=0)
        medians = rows.groupby("perturbation_rate")["rate_actual"].median()
        name = f"{category} ({rows['sample_id'].nunique():,} recipes)"
        at = [rates.index(rate) + side for rate in medians.index]
        ax.plot(at, medians, look.marker, color=look.colour, markeredgecolor=INK, label=name)
    ax.set_xticks(range(len(rates)), [f"{100 * rate:g} %" for rate in rates])
    ax.set(xlabel="rate asked for", ylabel="actual rate (of words)")
    percent(ax, "y")
    legend(ax)
    return ax
