"""Figures of anchors and pairs: deltas, conditions, rules, and who is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from helpers.figures.marks import counts, grid, intervals, legend, percent, with_texts
from helpers.figures.style import FIXED, GREY, INK, blank, canvas, current, figure_of, in_order, label, looks, nothing

__all__ = [
    "plot_anchors",
    "plot_chosen",
    "plot_delta_by_principle",
    "plot_deltas",
    "plot_deltas_by_type",
    "plot_flow",
    "plot_leaks",
    "plot_pairs_per_condition",
]

HALF_STEPS = np.arange(0.25, 5.3, 0.5)


def plot_anchors(anchors: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how many samples have which anchor; `anchors` holds track, sample_id and anchor_score."""
    question = "Where do the anchors lie?"
    if anchors["anchor_score"].isna().all():
        return nothing(question, ax)
    ax = canvas(question, ax)
    known = anchors.dropna(subset="anchor_score")
    scores = {str(track): rows["anchor_score"] for track, rows in known.groupby("track")}
    names = {track: f"{track} (n = {len(rows):,}, median {rows.median():g})" for track, rows in scores.items()}
    _histogram(ax, known, "anchor_score", "track", names, HALF_STEPS)
    ax.set(xlabel="anchor (median of the panel's scores)", ylabel="samples", xlim=(0.75, 5.25))
    legend(ax)
    return ax


def plot_deltas(pairs: pd.DataFrame, summary: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the score deltas of the pairs by category, with mean and median.

    `summary` comes from `metrics.delta_summary(pairs)`.
    """
    question = "How far apart are the two scores of a pair?"
    if pairs.empty:
        return nothing(question, ax)
    ax = canvas(question, ax)
    _deltas(ax, pairs, summary)
    ax.set(xlabel="score delta (points)", ylabel="pairs")
    legend(ax)
    return ax


def plot_deltas_by_type(pairs: pd.DataFrame, summary: pd.DataFrame, fig: Figure | None = None) -> Figure:
    """Draw the score deltas by type of perturbation, a panel each.

    `summary` comes from `metrics.delta_summary(pairs, ["perturbation_category", "perturbation_type"])`.
    """
    question = "Which perturbations make the clearest pairs?"
    if pairs.empty:
        return figure_of(nothing(question))
    types = in_order(summary["perturbation_type"])
    lines = -(-len(types) // 3)
    fig = fig or blank(question, rows=9 * lines + 2, full=True)
    axes = np.atleast_1d(fig.subplots(lines, min(3, len(types)), sharex=True)).ravel()
    for ax, name in zip(axes, types, strict=False):
        here = [table[table["perturbation_type"] == name] for table in (pairs, summary)]
        _deltas(ax, *here)
        row = here[1].iloc[0]
        text = f"{label(name)} (n = {row['n']:,})\nmean {row['mean']:.2f}, median {row['median']:g}"
        ax.set_title(text, size=current().small, loc="left")
    for ax in axes[len(types) :]:
        ax.set_axis_off()
    fig.supxlabel("score delta (points)", size=current().text)
    fig.supylabel("pairs", size=current().text)
    return fig


def plot_pairs_per_condition(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how many pairs each condition gives; `table` holds dataset_name, perturbation_category and n."""
    question = "How many pairs does each condition give?"
    if table.empty:
        return nothing(question, ax)
    rows = table.set_index("dataset_name").reindex(in_order(table["dataset_name"]))
    ax = canvas(question, ax, rows=1.15 * len(rows) + 5)
    texts = [f"{n:,}" for n in rows["n"]]
    counts(ax, list(rows.index), rows["n"], texts, list(rows["perturbation_category"]))
    ax.set_xlabel("pairs")
    legend(ax)
    return ax


def plot_flow(steps: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how many candidates each rule takes and leaves; `steps` holds step and n, those left after it, in order."""
    ax = canvas("What becomes of the candidate pairs?", ax, rows=1.6 * len(steps) + 4)
    left = steps["n"].astype(int)
    lost = -left.diff().fillna(0).astype(int)
    ax.barh(range(len(steps)), left, 0.7, color=FIXED["represent"].colour)
    ax.barh(range(len(steps)), lost, 0.7, left, color="white", edgecolor=GREY, hatch="////", lw=0)
    for place, (here, gone) in enumerate(zip(left, lost, strict=True)):
        text = f"{here:,}" + (f"  (−{gone:,})" if gone else "")
        ax.annotate(text, (here + gone, place), (3, 0), textcoords="offset points", va="center", size=current().small)
    ax.set_yticks(range(len(steps)), [label(name) for name in steps["step"]])
    ax.invert_yaxis()
    ax.margins(x=0.2)
    ax.set_xlabel("pairs left after the rule (taken out by it)")
    return ax


def plot_leaks(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the share of rows, prompts and samples that each check of a leak report found; `table` is its `table()`."""
    ax = canvas("What do the two sides share?", ax, rows=1.6 * len(table) + 4, full=True)
    shares, places = table["share"].fillna(0.0), range(len(table))
    ax.barh(places, shares, 0.7, color=FIXED["error"].colour)
    for place, share, found, of in zip(places, shares, table["found"], table["of"], strict=True):
        text = f"{found:,} of {of:,}"
        ax.annotate(text, (share, place), (3, 0), textcoords="offset points", va="center", size=current().small)
    ax.set_yticks(places, list(table["check"]))
    ax.invert_yaxis()
    ax.set(xlabel="share found", xlim=(0, 1.2), xticks=np.arange(0, 1.01, 0.25))
    percent(ax, "x")
    return ax


def plot_chosen(table: pd.DataFrame, judges: Sequence[str] = (), ax: Axes | None = None) -> Axes:
    """Draw how often each judge is chosen among its pairs, by category; `table` comes from `metrics.chosen_counts`."""
    question = "Does the category give away which judge is chosen?"
    if table.empty:
        return nothing(question, ax)
    names = list(judges or sorted(table["judge"].unique()))
    ax = canvas(question, ax, rows=2.6 * len(names) + 5)
    ax.axvline(0.5, color=INK, lw=current().line / 2, ls=":")
    for side, (category, rows) in zip((-0.15, 0.15), table.groupby("perturbation_category"), strict=False):
        at = rows["judge"].map(names.index)
        intervals(ax, at + side, rows, FIXED[str(category)], label(str(category)))
        for place, row in zip(at, rows.itertuples(), strict=True):
            text, spot = f"n = {row.n:,}", (1.03, place + side)
            ax.annotate(text, spot, xycoords=("axes fraction", "data"), va="center", size=current().small)
    ax.set_yticks(range(len(names)), [label(name) for name in names])
    ax.set_xlabel("chosen, of the pairs it is in (95 % interval)", loc="right")
    ax.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5))
    percent(ax, "x")
    legend(ax)
    return ax


def plot_delta_by_principle(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the mean delta by chosen and rejected principle; `table` comes from `metrics.delta_by_principle`."""
    question = "Does the principle decide who wins?"
    if table.empty:
        return nothing(question, ax)
    chosen, rejected = (sorted(table[f"{side}_principle"].unique()) for side in ("chosen", "rejected"))
    place = {"index": "chosen_principle", "columns": "rejected_principle"}
    ax = canvas(question, ax, rows=max(4.2 * len(chosen) + 5, 13), full=True)
    grid(ax, with_texts(table), place, chosen, rejected, table["estimate"].max())
    numbers = "cells: mean score delta in points [95 % interval], pairs"
    ax.set(xlabel=f"principle of the rejected response\n{numbers}", ylabel="principle of the chosen response")
    return ax


def _deltas(ax: Axes, pairs: pd.DataFrame, summary: pd.DataFrame) -> None:
    """Draw the deltas by category in half steps, side by side; a line at the mean, dotted at the median."""
    names: dict[str, str] = {}
    for row in summary.to_dict("records"):
        category, mean, median = str(row["perturbation_category"]), row["mean"], row["median"]
        ends = f"[{row['mean_low']:.2f}, {row['mean_high']:.2f}]"
        names[category] = f"{category} (n = {row['n']:,}): mean {mean:.2f} {ends}, median {median:g}"
        ax.axvline(mean, color=FIXED[category].colour, zorder=3)
        ax.axvline(median, color=FIXED[category].colour, ls=":", zorder=3)
    _histogram(ax, pairs, "score_delta", "perturbation_category", names, HALF_STEPS - 0.5)


def _histogram(
    ax: Axes, rows: pd.DataFrame, value: str, by: str, names: dict[str, str], edges: npt.NDArray[np.float64]
) -> None:
    groups = [rows.loc[rows[by] == name, value] for name in names]
    ax.hist(groups, list(edges), rwidth=0.85, label=[*names.values()])
    for look, bars in zip(looks(names).values(), ax.containers, strict=True):
        for bar in bars:
            bar.set(facecolor=look.colour, hatch=look.hatch, edgecolor="white")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
