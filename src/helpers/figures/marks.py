"""The marks that figures are made of: points with intervals, stacked shares, annotated grids, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from helpers.figures.style import Look, current, figure_of, label, looks

__all__ = ["counts", "curve", "grid", "intervals", "legend", "percent", "stacked", "with_texts"]


def intervals(ax: Axes, places: pd.Series, rows: pd.DataFrame, look: Look, name: str, *, across: bool = True) -> None:
    """Draw estimates with their intervals at places along y; `across=False` swaps the axes and joins the estimates."""
    lines = ax.hlines if across else ax.vlines
    lines(places, rows["low"], rows["high"], look.colour)
    x, y = (rows["estimate"], places) if across else (places, rows["estimate"])
    (drawn,) = ax.plot(x, y, ls="none" if across else look.line, marker=look.marker, color=look.colour, label=name)
    drawn.set(markeredgecolor="white", markeredgewidth=current().line / 4)


def curve(ax: Axes, rows: pd.DataFrame, x: str, look: Look, name: str, *, shift: float = 0.0) -> None:
    """Draw a line through estimates with their intervals, `shift` to the side so that two do not cover each other."""
    intervals(ax, rows[x] + shift, rows, look, name, across=False)


def stacked(ax: Axes, table: pd.DataFrame, rows: str, parts: Sequence[str], colours: dict[str, Look]) -> None:
    """Draw a bar of shares for each row, part after part; `table` holds rows, part, n, estimate and total."""
    names = list(dict.fromkeys(table[rows]))
    left = np.zeros(len(names))
    for part in parts:
        width = table[table["part"] == part].set_index(rows)["estimate"].reindex(names).fillna(0).to_numpy()
        look = colours[part]
        ax.barh(
            range(len(names)),
            width,
            0.7,
            left,
            color=look.colour,
            hatch=look.hatch,
            edgecolor="white",
            label=label(part),
        )
        left += width
    totals = table.groupby(rows)["total"].first()
    ax.set_yticks(range(len(names)), [f"{label(name)} (n = {totals[name]:,})" for name in names])
    ax.invert_yaxis()
    percent(ax, "x")
    ax.set_xlim(0, 1)


def grid(
    ax: Axes, rows: pd.DataFrame, place: dict[str, str], index: list[str], columns: list[str], most: float
) -> None:
    """Draw a table of numbers as shaded cells with their text; a cell without a row stays white.

    `rows` holds value and text; `place` names the columns that give a cell's index and column; the shades go up to
    `most`. They need no key: every cell says its number.
    """
    wide = [rows.pivot(**place, values=name).reindex(index=index, columns=columns) for name in ("value", "text")]
    values, texts = wide[0], wide[1].fillna("")
    low = min(0.0, float(rows["value"].min()))
    image = ax.pcolormesh(
        values.to_numpy(dtype=float), cmap="cividis", vmin=low, vmax=most, edgecolors="white", linewidth=1
    )
    for (row, column), value in np.ndenumerate(values.to_numpy(dtype=float)):
        shade = image.to_rgba(np.array([value]))[0, :3] if np.isfinite(value) else np.ones(3)
        ink = "white" if shade**2.2 @ (0.2126, 0.7152, 0.0722) < 0.18 else "black"  # contrast of 4.5 or more (WCAG)
        ax.text(
            column + 0.5,
            row + 0.5,
            str(texts.iat[row, column]),
            ha="center",
            va="center",
            color=ink,
            size=current().small,
        )
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, [label(str(name)) for name in values.columns])
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, [label(str(name)) for name in values.index])
    ax.tick_params(length=0)
    ax.invert_yaxis()
    ax.spines[:].set_visible(False)


def with_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Add what `grid` needs to a table of estimates: the value, and a text with its interval and n."""
    columns = (rows[name].astype(float) for name in ("estimate", "low", "high"))
    numbers = [
        f"{value:z.2f}\n[{low:z.2f}, {high:z.2f}]".replace("-", "−") for value, low, high in zip(*columns, strict=True)
    ]
    known = rows["estimate"].notna()
    text = [f"{number if here else '–'}\nn = {n:,}" for number, here, n in zip(numbers, known, rows["n"], strict=True)]
    return rows.assign(value=rows["estimate"], text=text)


def counts(ax: Axes, names: Sequence[str], values: pd.Series, texts: Sequence[str], categories: Sequence[str]) -> None:
    """Draw one bar a name with its count written at the end; colour and hatch tell the category."""
    known = looks(sorted(set(categories)))
    for place, (value, category) in enumerate(zip(values, categories, strict=True)):
        look = known[category]
        ax.barh(place, value, 0.7, color=look.colour, hatch=look.hatch, edgecolor="white", label=label(category))
        ax.annotate(texts[place], (value, place), (2, 0), textcoords="offset points", va="center", size=current().small)
    ax.set_yticks(range(len(names)), [label(name) for name in names])
    ax.invert_yaxis()
    ax.margins(x=0.12)


def legend(ax: Axes) -> None:
    """Name every mark once: below the axes in a figure of its own, which grows with the names, else within the axes."""
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    fig = figure_of(ax)
    if fig.get_suptitle() == "":
        ax.legend(handles.values(), handles)
        return
    style, longest = current(), max(map(len, handles)) + 7
    columns = min(len(handles), max(1, int(fig.get_figwidth() * 72 / (0.5 * style.small * longest))))
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=columns)
    more = math.ceil(len(handles) / columns) - 2  # the figure has room for two lines
    if more > 0:
        fig.set_figheight(min(fig.get_figheight() + more * style.small * 1.5 / 72, style.tallest))


def percent(ax: Axes, axis: str) -> None:
    """Write the ticks of an axis of shares as percentages."""
    getattr(ax, f"{axis}axis").set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
