from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers import tables

PAYLOAD = '<img src=x onerror="alert(1)"> & 5 % of {x}_1 ~ $y$'
FRAME = pd.DataFrame(
    {
        "judge": ["a", PAYLOAD],
        "n": [1200, 3],
        "share": [0.256, None],
        "right": [True, False],
        "parts": [["x", "y"], np.array(["z"])],
    }
)


def test_text_is_escaped_in_cells_headers_and_caption() -> None:
    made = tables.show(FRAME.rename(columns={"n": PAYLOAD}), caption=PAYLOAD)._repr_html_()
    assert "<img" not in made
    assert made.count("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;") == 3


def test_numbers_are_aligned_and_formatted_and_a_missing_one_is_a_dash() -> None:
    table = tables.show(FRAME, formats={"share": ".0%"})
    assert table.cells["n"].tolist() == ["1,200", "3"]
    assert table.cells["share"].tolist() == ["26%", "–"]
    assert table.cells["right"].tolist() == ["yes", "no"]
    assert table.numeric == (False, True, True, False, False)


def test_decimals_follow_the_size_of_a_number() -> None:
    cells = tables.show(pd.DataFrame({"p": [4434.0, 12.345, 0.0, -0.5, 0.0021]})).cells["p"]
    assert cells.tolist() == ["4,434", "12.35", "0.00", "-0.50", "0.002"]


def test_a_long_table_says_how_much_it_shows() -> None:
    made = tables.show(pd.DataFrame({"x": range(50)}), "Items", rows=5)
    assert made._repr_html_().count("<tr>") == 6
    assert "Items · 5 of 50 rows" in made._repr_html_()
    assert "Items · 5 of 50 rows" in repr(made)


def test_an_empty_table_keeps_its_header() -> None:
    assert ">judge</th>" in tables.show(FRAME.head(0))._repr_html_()


def test_a_long_text_is_cut() -> None:
    (cell,) = tables.show(pd.DataFrame({"recipe": ["a " * 500]})).cells["recipe"]
    assert len(cell) == 241
    assert cell.endswith("…")


def test_compact_writes_intervals_and_keeps_the_other_columns() -> None:
    frame = pd.DataFrame(
        {"judge": ["a", "b"], "estimate": [1.0, np.nan], "low": [0.5, np.nan], "high": [2.0, np.nan], "n": 3}
    )
    assert tables.compact(frame, ".1f").values.tolist() == [["a", "1.0 [0.5, 2.0]", 3], ["b", "–", 3]]


def test_flat_names_numbers_by_their_keys_and_keeps_what_is_missing_as_null() -> None:
    frame = pd.DataFrame({"judge": ["a", "b"], "metric": "validity", "estimate": [0.5, np.nan]})
    assert tables.flat(frame, ["judge", "metric"], "estimate") == {"a_validity": 0.5, "b_validity": None}


def test_latex_escapes_cells_and_headers() -> None:
    made = tables.to_latex(FRAME[["judge", "share"]].rename(columns={"share": "share_%"}))
    assert r"share\_\%" in made
    assert r"\& 5 \% of \{x\}\_1 \textasciitilde \space \$y\$" in made
    assert "a & 0.26" in made
    assert r"\midrule" in made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.123"),
        (1.0, "1.00"),
        (20.0, "20"),
        (1234.5, "1,234"),
        (-0.1701, r"\ensuremath{-0.170}"),
        (-0.0, "0.000"),
        (12, "12"),
        (3.04e-05, r"\ensuremath{3.0 \times 10^{-5}}"),
        (None, "--"),
        (True, "yes"),
        ("50 % & more", r"50 \% \& more"),
    ],
)
def test_a_number_is_written_as_a_paper_would(value: object, text: str) -> None:
    assert tables.numbers_tex({"a": value}) == f"\\newcommand{{\\A}}{{{text}}}\n"


def test_macro_names_are_letters_only() -> None:
    summary = {"05_analysis": {"delta_p95": {"error": 1.0}, "judges": ["x", "y"]}}
    names = [line.split("}")[0] for line in tables.numbers_tex(summary).splitlines()]
    assert names == [
        r"\newcommand{\AnalysisDeltaPNineFiveError",
        r"\newcommand{\AnalysisJudgesOne",
        r"\newcommand{\AnalysisJudgesTwo",
    ]


def test_two_numbers_may_not_share_a_macro() -> None:
    with pytest.raises(ValueError, match="AnalysisAB"):
        tables.numbers_tex({"05_analysis": {"a_b": 1, "aB": 2}})


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a TeX installation")
def test_tables_and_macros_compile(tmp_path: Path) -> None:
    body = tables.numbers_tex({"05_analysis": {"p": 3e-05, "name": PAYLOAD}}) + tables.to_latex(FRAME)
    source = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{body}\AnalysisP\end{{document}}"
    (tmp_path / "paper.tex").write_text(source)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 0
