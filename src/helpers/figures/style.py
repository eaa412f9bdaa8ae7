"""One look for every figure: widths, fonts and line weights by venue, a fixed colour and second cue for every name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path

from helpers.perturbations import CONDITIONS

__all__ = [
    "STYLES",
    "Look",
    "Style",
    "blank",
    "canvas",
    "current",
    "figure_of",
    "in_order",
    "label",
    "looks",
    "use_style",
]


@dataclass(frozen=True, slots=True)
class Style:
    """Widths and the tallest figure in inches, font sizes and line weight in points; where the widths come from."""

    column: float
    full: float
    tallest: float
    text: float
    small: float
    line: float
    source: str


CM = 1 / 2.54
STYLES = {
    "screen": Style(6.6, 9.0, 14.0, 10, 9, 1.4, "a notebook's column; no venue"),
    "acl": Style(7.7 * CM, 16.0 * CM, 24.7 * CM, 7.5, 6.5, 1.0, "acl-style-files: formatting.md, acl.sty"),
    "neurips": Style(5.5, 5.5, 9.0, 8.5, 7.5, 1.0, "the style file's text block: 5.5 × 9 in"),
    "nature": Style(8.9 * CM, 18.3 * CM, 17.0 * CM, 7, 6, 0.8, "research-figure-guide.nature.com"),
    "aps": Style(8.6 * CM, 17.8 * CM, 24.0 * CM, 8, 7, 0.9, "8.6 cm: RMP style guide; 17.8 cm: to be checked"),
}
FONTS = ("Arial", "Helvetica", "Liberation Sans", "DejaVu Sans")


def use_style(name: str) -> None:
    """Set matplotlib's parameters for a venue; figures made afterwards have its width, fonts and lines.

    The widths are the venues' own numbers (`STYLES[name].source`); authors should check them against the current
    instructions. Use `with plt.rc_context():` around it to go back.

    >>> with plt.rc_context():
    ...     use_style("nature")
    ...     round(plt.rcParams["figure.figsize"][0], 3)
    3.504
    """
    if name not in STYLES:
        raise ValueError(f"figure_style {name!r} is not known; known are: {', '.join(STYLES)}")
    matplotlib.rcParams.update(_parameters(STYLES[name]))  # type: ignore[arg-type]


def _parameters(style: Style) -> dict[str, Any]:
    installed = set(font_manager.get_font_names())
    text = {"font.size": style.text, "axes.titlesize": style.text, "figure.titlesize": style.text}
    small = dict.fromkeys(["xtick.labelsize", "ytick.labelsize", "legend.fontsize"], style.small)
    thin = dict.fromkeys(
        ["axes.linewidth", "xtick.major.width", "ytick.major.width", "hatch.linewidth"], style.line / 2
    )
    files = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "plumbline"}
    return {
        "figure.figsize": (style.column, style.column * 0.62),
        "figure.constrained_layout.use": True,
        "figure.dpi": 100,
        "savefig.dpi": 300,
        "savefig.bbox": None,
        "font.family": [name for name in FONTS if name in installed],
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "axes.prop_cycle": cycler(color=matplotlib.color_sequences["petroff6"]),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "legend.handlelength": 2.0,
        "legend.columnspacing": 1.0,
        "lines.linewidth": style.line,
        "lines.markersize": style.text * 0.65,
        "xtick.major.size": style.small * 0.4,
        "ytick.major.size": style.small * 0.4,
        **text,
        **small,
        **thin,
        **files,
    }


def current() -> Style:
    """Return the style in force, told by the figure width that it has set; `screen` before any `use_style`."""
    width = plt.rcParams["figure.figsize"][0]
    return next((style for style in STYLES.values() if abs(style.column - width) < 1e-6), STYLES["screen"])


# A name has one colour everywhere, and a marker, line and hatch that tell it apart in grey.


@dataclass(frozen=True, slots=True)
class Look:
    """How one judge, principle, category or status is drawn."""

    colour: str
    marker: str
    line: str
    hatch: str


BLUE, ORANGE, RED, PLUM, GREY, VIOLET = "#5790fc", "#f89c20", "#e42536", "#964a8b", "#9c9ca1", "#7a21dd"
INK = "#262626"
MARKERS = "osD^vPX*<>"
LINES = ("-", "--", "-.", ":")
HATCHES = ("", "////", "..", "\\\\\\\\", "xxxx", "----", "++++", "o", "||||", "*")
FIXED = {
    "error": Look(RED, "X", "-", "////"),
    "represent": Look(BLUE, "o", "--", ""),
    "original": Look(GREY, "D", ":", ".."),
    "recipe": Look(BLUE, "o", "-", ""),
    "instruction": Look(ORANGE, "s", "--", "////"),
    "helpfulness": Look(BLUE, "o", "-", ""),
    "truthfulness": Look(ORANGE, "s", "--", "////"),
    "honesty": Look(VIOLET, "D", "-.", ".."),
    "verbalized_calibration": Look(PLUM, "^", ":", "xxxx"),
    "ok": Look(BLUE, "o", "-", ""),
    "repaired": Look("#a9c8fe", "s", "-", ".."),
    "out_of_range": Look(ORANGE, "D", "-", "////"),
    "unparsable": Look(RED, "X", "-", "xxxx"),
    "truncated": Look(PLUM, "^", "-", "\\\\\\\\"),
    "refused": Look(VIOLET, "v", "-", "----"),
    "failed": Look(INK, "P", "-", ""),
}


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Give every name its look: categories, principles and statuses have a fixed one, judges follow their order.

    Pass the whole panel in its order, and a judge has the same colour in every figure of a run.

    >>> looks(["error", "gpt"])["error"].colour == FIXED["error"].colour
    True
    """
    free = [name for name in dict.fromkeys(names) if name not in FIXED]
    palette = matplotlib.color_sequences["petroff6" if len(free) <= 6 else "petroff10"]
    colours = [matplotlib.colors.to_hex(colour) for colour in palette]
    made = {name: _nth(colours, place) for place, name in enumerate(free)}
    return {name: FIXED.get(name) or made[name] for name in dict.fromkeys(names)}


def _nth(colours: list[str], place: int) -> Look:
    return Look(
        colours[place % len(colours)],
        MARKERS[place % len(MARKERS)],
        LINES[place % len(LINES)],
        HATCHES[place % len(HATCHES)],
    )


def label(name: str) -> str:
    """Write a condition, principle, judge or model as a reader would.

    >>> [label(name) for name in ("llm_representational_perturbation_5pct", "llm_to_iupac_100pct", "org/Judge-8B")]
    ['rewording 5 %', 'to IUPAC', 'Judge-8B']
    """
    text = name.rsplit("/", 1)[-1].removesuffix("_100pct")
    text = re.sub(r"_(\d+)pct$", r" \1 %", text)
    text = re.sub("llm_representational(_perturbation)?", "rewording", text)
    text = re.sub("all_error(_perturbation)?", "all errors", text)
    text = text.replace("llm_to_iupac", "to IUPAC").replace("llm_to_", "to ").replace("_", " ")
    return textwrap.shorten(text, 34, placeholder=" …")


def in_order(names: Iterable[str]) -> list[str]:
    """Put conditions, or types of perturbation, in the method's own order; others follow in the alphabet's.

    >>> in_order(["mine", "action_antonym_100pct", "all_error_perturbation_1pct"])
    ['all_error_perturbation_1pct', 'action_antonym_100pct', 'mine']
    """
    known = ["original", *CONDITIONS, *dict.fromkeys(condition.type for condition in CONDITIONS.values())]
    return sorted(set(names), key=lambda name: (known.index(name) if name in known else len(known), name))


def canvas(question: str, ax: Axes | None, *, rows: float = 0, full: bool = False) -> Axes:
    """Return `ax`, or the axes of a new figure, under the question that the figure answers.

    `rows` lines of text give the height; without them it is 0.6 of the width and room for a legend.
    """
    if ax is None:
        return blank(question, rows=rows, full=full).subplots()
    ax.set_title(_wrap(question, ax.get_position().width * figure_of(ax).get_figwidth()), loc="left")
    return ax


def nothing(question: str, ax: Axes | None = None, why: str = "there are no rows") -> Axes:
    """Return axes that say that the question has no answer, and why."""
    ax = canvas(question, ax, rows=3)
    ax.set_axis_off()
    ax.text(0.5, 0.5, f"nothing to show: {why}", ha="center", va="center", transform=ax.transAxes, wrap=True)
    return ax


def blank(question: str, *, rows: float = 0, full: bool = False) -> Figure:
    """Return a new figure of the style's column or full width, with its question over it."""
    style = current()
    width = style.full if full else style.column
    title = _wrap(question, width)
    line = style.small * 1.55 / 72
    height = rows * line if rows else width * (0.36 if full else 0.6) + 4 * line
    fig = plt.figure(figsize=(width, min(height + (title.count("\n") + 1) * line, style.tallest)))
    fig.suptitle(title, x=0.01, ha="left", size=style.text, weight="bold")
    return fig


def figure_of(drawn: Artist) -> Figure:
    """Return the whole figure that something was drawn in; raises ValueError when it was taken out of it."""
    fig = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    if fig is None:
        raise ValueError(f"{drawn} is in no figure")
    return fig


def _wrap(text: str, width: float) -> str:
    """Break a title so that it fits a width in inches, by how wide its letters are in the font at hand."""
    bold = font_manager.FontProperties(weight="bold", size=plt.rcParams["font.size"])
    points = text_to_path.get_text_width_height_descent(text, bold, ismath=False)[0]
    letters = 0.92 * width * 72 / points * len(text)  # a line may hold more of the wide ones
    return textwrap.fill(text, max(20, int(letters)))
