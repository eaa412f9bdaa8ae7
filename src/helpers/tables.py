"""Tables for reading: escaped HTML in a notebook, booktabs LaTeX in a paper, and its numbers as macros."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

__all__ = ["Table", "compact", "flat", "numbers_tex", "of_numbers", "show", "to_latex"]

LONGEST = 240
CELL = "padding:.25em .8em;border:0;border-bottom:1px solid rgba(128,128,128,.35);vertical-align:top"
DIGITS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


@dataclass(frozen=True)
class Table:
    """A table for display: the cells as text, which columns are numbers, and how many rows there are in all."""

    cells: pd.DataFrame
    numeric: tuple[bool, ...]
    caption: str
    total: int

    def __repr__(self) -> str:
        """Return the table as plain text."""
        return f"{self._title()}\n{self.cells.to_string(index=False)}".lstrip()

    def _title(self) -> str:
        shown = f"{len(self.cells):,} of {self.total:,} rows" if len(self.cells) < self.total else ""
        return " · ".join(part for part in (self.caption, shown) if part)

    def _repr_html_(self) -> str:
        sides = ["right" if number else "left" for number in self.numeric]
        head = "".join(_cell("th", side, str(name)) for side, name in zip(sides, self.cells.columns, strict=True))
        rows = "".join(
            f"<tr>{''.join(_cell('td', side, cell) for side, cell in zip(sides, row, strict=True))}</tr>"
            for row in self.cells.itertuples(index=False, name=None)
        )
        title = (
            f'<caption style="caption-side:top;text-align:left;color:inherit">{html.escape(self._title())}</caption>'
        )
        style = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0"
        table = f"{title}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        return f'<table class="mathjax_ignore" style="{style}">{table}</table>'


def show(frame: pd.DataFrame, caption: str = "", formats: Mapping[str, str] | None = None, *, rows: int = 20) -> Table:
    """Format a table for reading: aligned numbers, escaped text, at most `rows` rows, and the count of all.

    `formats` gives format specifications by column, such as {"share": ".0%"}; without one, whole numbers have
    separators, others two decimals (from 100 none, below 0.01 one digit), and a missing value is a dash.

    >>> show(pd.DataFrame({"judge": ["<b>"], "n": [1200], "share": [0.5]}), "Judges", {"share": ".0%"})
    Judges
    judge     n share
      <b> 1,200   50%
    """
    head = frame.head(rows)
    cells = {name: [_format(value, (formats or {}).get(str(name), "")) for value in head[name]] for name in head}
    numeric = tuple(is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name]) for name in frame)
    return Table(pd.DataFrame(cells, columns=head.columns, index=head.index), numeric, caption, len(frame))


def compact(frame: pd.DataFrame, spec: str = ".2f") -> pd.DataFrame:
    """Join estimate, low and high into one column of text, as a paper prints them.

    >>> compact(pd.DataFrame({"judge": ["a"], "estimate": [0.5], "low": [0.41], "high": [0.6]})).values.tolist()
    [['a', '0.50 [0.41, 0.60]']]
    """
    numbers = frame[["estimate", "low", "high"]].itertuples(index=False, name=None)
    texts = [
        "–" if math.isnan(value) else f"{value:{spec}} [{low:{spec}}, {high:{spec}}]" for value, low, high in numbers
    ]
    return frame.assign(estimate=texts).drop(columns=["low", "high"])


def of_numbers(numbers: Mapping[str, Any]) -> pd.DataFrame:
    """Return a run's numbers as a table of two columns; whole ones stay whole.

    >>> of_numbers({"pairs": 3, "share": 0.5})["number"].tolist()
    [3, 0.5]
    """
    return pd.DataFrame({"what": list(numbers), "number": pd.Series(list(numbers.values()), dtype=object)})


def flat(frame: pd.DataFrame, keys: Sequence[str], value: str) -> dict[str, float | None]:
    """Name every value of a column by its row's keys, for the numbers of a run; a missing one is null.

    >>> flat(pd.DataFrame({"judge": ["a"], "metric": ["validity"], "estimate": [0.5]}), ["judge", "metric"], "estimate")
    {'a_validity': 0.5}
    """
    names = ["_".join(map(str, row)) for row in frame[list(keys)].itertuples(index=False, name=None)]
    rows = zip(names, frame[value], strict=True)
    return {name: None if _missing(number) else float(number) for name, number in rows}


def to_latex(frame: pd.DataFrame) -> str:
    r"""Write a booktabs table; every cell and header is escaped.

    >>> print(to_latex(pd.DataFrame({"all_error & x": ["5 %"]})))
    \begin{tabular}{l}
    \toprule
    all\_error \& x \\
    \midrule
    5 \% \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    text = frame.select_dtypes(exclude=["number", "bool"]).columns
    plain = frame.assign(**{name: [_line(value) for value in frame[name]] for name in text}).reset_index(drop=True)
    style = plain.rename(columns=_line).style.hide(axis="index").format(precision=2, na_rep="--", escape="latex")
    return str(style.format_index(escape="latex", axis=1).to_latex(hrules=True))


def numbers_tex(summary: Mapping[str, Any]) -> str:
    r"""Define every number of a run's summary as a LaTeX macro, so that a paper never retypes one.

    A macro's name is the path to the number in letters only; two numbers with one name are a ValueError.

    >>> print(numbers_tex({"05_analysis": {"alpha": 0.4236, "n_pairs": 12345}}), end="")
    \newcommand{\AnalysisAlpha}{0.424}
    \newcommand{\AnalysisNPairs}{12,345}
    """
    macros: dict[str, str] = {}
    for path, value in sorted(_leaves(summary)):
        name = _macro(path)
        if name in macros:
            raise ValueError(f"two numbers of the summary would both be \\{name}; rename {path!r}")
        macros[name] = _tex(value)
    return "".join(f"\\newcommand{{\\{name}}}{{{text}}}\n" for name, text in macros.items())


def _cell(tag: str, side: str, text: str) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    return f'<{tag}{scope} style="text-align:{side};{CELL}">{html.escape(text)}</{tag}>'


def _format(value: Any, spec: str) -> str:
    if _missing(value):
        return "–"
    if spec:
        return format(value, spec)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{value:,}"
    if isinstance(value, Real):
        number = float(value)
        return f"{number:.1g}" if 0 < abs(number) < 0.01 else f"{number:,.{0 if abs(number) >= 100 else 2}f}"
    text = _line(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _line(value: object) -> str:
    return "–" if _missing(value) else " ".join(str(value).split())


def _missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in _leaves(item, f"{path} {key}")]
    if isinstance(value, list):
        return [leaf for place, item in enumerate(value, 1) for leaf in _leaves(item, f"{path} {place}")]
    return [(path.strip(), value)]


def _macro(path: str) -> str:
    """Return letters only: the stage's number goes, other digits are spelt, and each word starts with a capital."""
    words = re.findall(r"[A-Za-z]+|\d", re.sub(r"^\d+_", "", path))
    return "".join(DIGITS[int(word)] if word.isdigit() else word[0].upper() + word[1:] for word in words)


def _tex(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "--", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _tex_number(value)
    escaped = pd.DataFrame([[str(value)]]).style.format(escape="latex").hide(axis="index").hide(axis="columns")
    return str(escaped.to_latex()).split("\n")[1].removesuffix(r" \\")


def _tex_number(value: float) -> str:
    """Write three decimals below 1, two above, none from 100 or if whole from 10, and powers of ten below 0.001."""
    size = abs(value)
    if 0 < size < 0.001:
        digits, power = f"{value:.1e}".split("e")
        return rf"\ensuremath{{{digits} \times 10^{{{int(power)}}}}}"
    decimals = 0 if size >= 100 or (size >= 10 and value.is_integer()) else 2 if size >= 1 else 3
    text = f"{value:z,.{decimals}f}"
    return rf"\ensuremath{{{text}}}" if text.startswith("-") else text
