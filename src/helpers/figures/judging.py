"""Figures of the judges: their use of the scale, their bias, their agreement, their silences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.pyplot import get_cmap
from matplotlib.ticker import MultipleLocator

from helpers.figures.marks import curve, grid, intervals, legend, percent, stacked, with_texts
from helpers.figures.style import (
    FIXED,
    GREY,
    INK,
    Look,
    blank,
    canvas,
    current,
    figure_of,
    in_order,
    label,
    looks,
    nothing,
)

__all__ = [
    "plot_agreement",
    "plot_calibration",
    "plot_detection_by_rate",
    "plot_judge_bias",
    "plot_score_by_anchor",
    "plot_score_by_rate",
    "plot_scores",
    "plot_stability_validity",
    "plot_statuses",
]

TITLES = {
    "repr_bias": "wording bias\n(points, ↓ better)",
    "error_sensitivity": "error sensitivity\n(points, ↑ better)",
    "validity": "validity\n(↑ better)",
    "stability": "stability\n(↑ better)",
    "accuracy": "accuracy\n(↑ better)",
}
MOST_INTERVALS = 5  # judges; with more of them a cell of the grid has no room for an interval
VERDICTS = ("ok", "repaired", "out_of_range", "unparsable", "truncated", "refused", "failed")


def plot_scores(shares: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how each judge uses the scale; `shares` comes from `metrics.shares(scored, "overall_score", ["judge"])`."""
    question = "How do the judges use the scale?"
    if shares.empty:
        return nothing(question, ax)
    levels = sorted(shares["overall_score"].unique())
    shades = get_cmap("cividis")(np.linspace(0.05, 0.95, len(levels)))
    colours = {f"{level:g}": Look(to_hex(shade), "", "", "") for level, shade in zip(levels, shades, strict=True)}
    ax = canvas(question, ax, rows=1.6 * shares["judge"].nunique() + 6)
    stacked(
        ax, shares.assign(part=[f"{level:g}" for level in shares["overall_score"]]), "judge", list(colours), colours
    )
    ax.set_xlabel("share of the judge's scores", loc="right")
    legend(ax)
    return ax


def plot_statuses(table: pd.DataFrame, by: str = "judge", ax: Axes | None = None) -> Axes:
    """Draw what became of the verdicts, by judge or condition; `table` comes from `metrics.attrition(rows, [by])`."""
    question = "Where do verdicts go missing?"
    if table.empty:
        return nothing(question, ax)
    found = [status for status in VERDICTS if table.loc[table["status"] == status, "n"].sum()]
    ax = canvas(question, ax, rows=1.4 * table[by].nunique() + 6)
    rows = table.rename(columns={"status": "part"}).set_index(by).loc[in_order(table[by])].reset_index()
    stacked(ax, rows, by, found, FIXED)
    ax.set_xlabel("share of verdicts")
    legend(ax)
    return ax


def plot_score_by_rate(table: pd.DataFrame, judges: Sequence[str] = (), fig: Figure | None = None) -> Figure:
    """Draw mean scores against the rate, errors beside equivalents; `table` comes from `metrics.score_by_rate`."""
    question = "Do scores fall with errors, and stay with mere rewording?"
    if table.empty:
        return figure_of(nothing(question))
    panels = {"error": "errors", "represent": "equivalent wording"}
    fig = _by_rate(table, "perturbation_category", panels, judges, fig, question)
    fig.axes[0].set_ylabel("mean score (95 % interval)")
    return fig


def plot_detection_by_rate(table: pd.DataFrame, judges: Sequence[str] = (), fig: Figure | None = None) -> Figure:
    """Draw detected errors and stable equivalents by rate; `table` comes from `metrics.detection_by_rate`."""
    question = "How much must be wrong before a judge notices, and does it leave the rest alone?"
    if table.empty:
        return figure_of(nothing(question))
    panels = {"validity": "errors detected", "stability": "equivalents left stable"}
    fig = _by_rate(table, "metric", panels, judges, fig, question)
    for ax in fig.axes:
        ax.set_ylim(-0.03, 1.03)
    percent(fig.axes[0], "y")
    fig.axes[0].set_ylabel("share of recipes (95 % interval)")
    return fig


def plot_judge_bias(table: pd.DataFrame, judges: Sequence[str] = (), fig: Figure | None = None) -> Figure:
    """Draw every metric of every judge with its interval; `table` comes from `metrics.judge_bias`."""
    question = "How far do wording and errors move each judge?"
    if table.empty:
        return figure_of(nothing(question))
    known = looks(judges or sorted(table["judge"].unique()))
    metrics = [name for name in TITLES if name in set(table["metric"])]
    fig = fig or blank(question, rows=1.5 * len(known) + 6, full=True)
    axes = np.atleast_1d(fig.subplots(1, len(metrics), sharey=True))
    for ax, metric in zip(axes, metrics, strict=True):
        rows = table[table["metric"] == metric].set_index("judge").reindex(list(known))
        for place, (judge, look) in enumerate(known.items()):
            intervals(ax, pd.Series([place]), rows.loc[[judge]], look, label(judge))
        ax.set_title(TITLES[metric], size=current().small)
        if metric in ("validity", "stability", "accuracy"):
            ax.set_xlim(-0.03, 1.03)
            percent(ax, "x")
        ax.grid(axis="x", lw=current().line / 4, color="0.85")
    most = table.groupby("judge")["n"].max().reindex(list(known))
    axes[0].set_yticks(range(len(known)), [f"{label(name)} (n ≤ {most[name]:,.0f})" for name in known])
    axes[0].invert_yaxis()
    return fig


def plot_stability_validity(table: pd.DataFrame, judges: Sequence[str] = (), ax: Axes | None = None) -> Axes:
    """Draw every judge as a point, stability against validity; `table` comes from `metrics.judge_bias`."""
    question = "Which judges notice errors and still ignore wording?"
    if not {"validity", "stability"} <= set(table["metric"]):
        return nothing(question, ax)
    ax = canvas(question, ax)
    known = looks(judges or sorted(table["judge"].unique()))
    wide = table.pivot(index="judge", columns="metric", values=["estimate", "low", "high"]).reindex(list(known))
    points = {}
    for judge, look in known.items():
        ends = {metric: wide.loc[judge].xs(metric, level="metric") for metric in ("validity", "stability")}
        (x, left, right), (y, lower, upper) = (ends[metric].to_numpy(dtype=float) for metric in ends)
        ax.plot([left, right], [y, y], color=look.colour)
        ax.plot([x, x], [lower, upper], color=look.colour)
        ax.plot(x, y, look.marker, color=look.colour, markeredgecolor=INK, label=label(judge))
        points[judge] = (float(x), float(y))
    _name_points(ax, points)
    ax.set(
        xlabel="validity (errors noticed)",
        ylabel="stability (equivalents left alone)",
        xlim=(-0.03, 1.03),
        ylim=(-0.03, 1.03),
    )
    percent(ax, "x")
    percent(ax, "y")
    return ax


def plot_score_by_anchor(table: pd.DataFrame, judges: Sequence[str] = (), ax: Axes | None = None) -> Axes:
    """Draw mean scores against the anchor; `table` comes from `metrics.score_by_anchor`."""
    question = "Is a judge harsher or milder than the panel?"
    if table.empty:
        return nothing(question, ax)
    ax = canvas(question, ax)
    known = looks(judges or sorted(table["judge"].unique()))
    ax.axline((3, 3), slope=1, color=INK, lw=current().line / 2, label="as the panel")
    for place, (judge, look) in enumerate(known.items()):
        rows = table[table["judge"] == judge]
        shift = 0.06 * (place - (len(known) - 1) / 2)
        curve(ax, rows, "anchor_score", look, f"{label(judge)} (n = {rows['n'].sum():,})", shift=shift)
    ax.xaxis.set_major_locator(MultipleLocator(0.5))
    ends = (table["anchor_score"].min() - 0.25, table["anchor_score"].max() + 0.25)
    ax.set(xlabel="anchor (median of the panel), to 0.5", ylabel="mean score (95 % interval)", xlim=ends)
    legend(ax)
    return ax


def plot_agreement(table: pd.DataFrame, measure: str = "spearman", ax: Axes | None = None) -> Axes:
    """Draw how every two judges agree, with interval and n; `table` comes from `metrics.agreement`."""
    question = "Do the judges rank the same items alike?"
    if table.empty:
        return nothing(question, ax)
    rows = table[table["measure"] == measure]
    judges = list(dict.fromkeys([*rows["judge_a"], *rows["judge_b"]]))
    place = {"index": "judge_b", "columns": "judge_a"}
    few = len(judges) <= MOST_INTERVALS
    ax = canvas(question, ax, rows=(4.2 if few else 2) * (len(judges) - 1) + 3, full=not few)
    short = rows.assign(value=rows["estimate"], text=[f"{value:z.2f}".replace("-", "−") for value in rows["estimate"]])
    grid(ax, with_texts(rows) if few else short, place, judges[1:], judges[:-1], 1.0)
    measured = measure.replace("_", " ")
    ax.set_xlabel(
        f"{measured} [95 % interval], items that both scored" if few else f"{measured} (n ≤ {rows['n'].max():,})",
        loc="right",
    )
    if not few:
        ax.tick_params(axis="x", rotation=90)
    return ax


def plot_calibration(rows: pd.DataFrame, bins: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the score against the confidence that a response states.

    `rows` comes from `metrics.calibration`, `bins` from `metrics.calibration_bins`.
    """
    both = rows.dropna(subset=["confidence", "score"])
    look = FIXED["verbalized_calibration"]
    question = "Do responses that claim more confidence score higher?"
    if both.empty:
        return nothing(question, ax, f"none of {len(rows):,} responses states a confidence and has a score")
    ax = canvas(question, ax)
    ax.scatter(
        both["confidence"], both["score"], 10, look.colour, alpha=0.4, lw=0, label=f"response (n = {len(both):,})"
    )
    curve(ax, bins, "confidence", Look(INK, "D", "-", ""), "mean of a band of 20 % (95 % interval)")
    ax.set(xlabel="stated confidence (%)", ylabel="median score", xlim=(-2, 102), ylim=(0.75, 5.25))
    silent = int(rows["confidence"].isna().sum())
    ax.annotate(f"{silent:,} state none", (1, 0.02), xycoords="axes fraction", ha="right", size=current().small)
    legend(ax)
    return ax


def _name_points(ax: Axes, points: dict[str, tuple[float, float]]) -> None:
    """Write names beside points in the unit square, from the top down; one that is in the way moves down on a line."""
    taken: list[tuple[float, float]] = []
    for name, (x, y) in sorted(points.items(), key=lambda item: -item[1][1]):
        place = y
        while any(abs(place - other) < 0.07 and abs(x - at) < 0.4 for at, other in taken):
            place -= 0.07
        taken.append((x, place))
        away, side = (0.02, "left") if x < 0.6 else (-0.02, "right")
        if place < y:
            ax.plot([x, x + away], [y, place], color=GREY, lw=current().line / 3, zorder=1)
        ax.text(
            x + away, place + 0.01, label(name), ha=side, va="center" if place < y else "bottom", size=current().small
        )


def _by_rate(
    table: pd.DataFrame, by: str, panels: dict[str, str], judges: Sequence[str], fig: Figure | None, question: str
) -> Figure:
    known = looks(judges or sorted(table["judge"].unique()))
    fig = fig or blank(question, full=True)
    axes = fig.subplots(1, 2, sharey=True)
    for ax, (name, title) in zip(axes, panels.items(), strict=True):
        for place, (judge, look) in enumerate(known.items()):
            rows = table[(table["judge"] == judge) & (table[by] == name)]
            shift = 0.0015 * (place - (len(known) - 1) / 2)
            curve(ax, rows, "perturbation_rate", look, label(judge), shift=shift)
        part = table[table[by] == name]
        ax.set_title(f"{title} (n ≤ {part['n'].max():,} a point)", size=current().small, loc="left")
        ax.set_xlabel("share of words asked for")
        ax.xaxis.set_major_locator(MultipleLocator(0.05))
        ax.set_xticks(sorted(part["perturbation_rate"].unique()), minor=True)
        percent(ax, "x")
    legend(axes[0])
    return fig
