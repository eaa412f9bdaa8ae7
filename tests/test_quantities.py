"""Quantities: what is one, what is none, and what another value of it looks like."""

from __future__ import annotations

from decimal import Decimal

import pytest

from helpers.perturbations import quantities
from helpers.perturbations.edits import apply
from helpers.perturbations.numerals import VALUE, read


def found(text: str) -> list[str]:
    return [text[q.start : q.end] for tied in quantities.find(text) for q in tied]


def news(text: str, seeds: int = 60) -> set[str]:
    """Return every text that some seed makes of this one."""
    return {apply(text, quantities.propose(text, seed=seed, sample_id="r")) for seed in range(seeds)}


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("2.5 g in 40 mL at 60 °C for 2 h", ["2.5 g", "40 mL", "60 °C", "2 h"]),
        ("800°C 800 º C 800 ˚C 800℃ 800 oC", ["800°C", "800 º C", "800 ˚C", "800℃", "800 oC"]),
        ("300 K under K2CO3", ["300 K"]),
        ("8,000 rpm, 12 000 rpm, 0,5 mL", ["8,000 rpm", "12 000 rpm", "0,5 mL"]),
        ("3 x 10^-3 mol/L, 10⁵ Pa, 3.6E+004 rpm", ["3 x 10^-3 mol/L", "10⁵ Pa", "3.6E+004 rpm"]),
        ("20 mL·min⁻¹, 5 °C min−1, 50 m² g⁻¹, 0.5 g/L", ["20 mL·min⁻¹", "5 °C min−1", "50 m² g⁻¹", "0.5 g/L"]),
        ("-78 and 0 °C; −78 °C; 10-20 ºC; 180 ± 5 °C", ["-78 and 0 °C", "−78 °C", "10-20 ºC", "180 ± 5 °C"]),
        ("300, 400 and 500 °C for 2 to 4 h", ["300, 400 and 500 °C", "2 to 4 h"]),
        ("25 °C to 800 °C", ["25 °C", "800 °C"]),
        ("a 100-mL flask, 3 × 20 mL, a 10-min rinse", ["100-mL", "20 mL", "10-min"]),
        ("x = 0.01; y = 0, 0.1 and 0.2; pH 7; pH adjusted to 9.5", ["x = 0.01", "y = 0, 0.1 and 0.2", "7", "9.5"]),
        ("(1:4 v/v), molar ratio 1:2, Ti:Ba = 1:1", ["1:4", "1:2", "1:1"]),
    ],
)
def test_a_quantity_is_one_span_with_its_unit(text, spans):
    assert found(text) == spans


@pytest.mark.parametrize(
    "text",
    [
        "Ce(NO3)3.6H2O, CuSO4·5H2O, K0.5Na0.5NbO3, TiO2, LiFePO4",
        "1,2-dichloroethane, 2-methylimidazole, PEG-400, P123, ZIF-8, SBA-15",
        "No. 2 crucible, grade-5, 325 mesh, Step 2, ref. 12, Fig. 3, (111), Fm-3m, Cu-Kα",
        "2θ = 10–80°, O 1s, 3d orbitals, 4 Å molecular sieves",
        "overnight, twice, room temperature, 1/2 h, 2,4,6 h, 0.5 C rate",
        "at 12:30 and 16:8 h of light",
        "10-3 mbar (a power of ten that lost its style)",
        "2 h−1 and 5 g·cd",
        "store at 4 °C",
        "316L steel",
    ],
)
def test_what_only_looks_like_a_quantity_is_left_alone(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("500", 500), ("8,000", 8000), ("12 000", 12000), ("0,5", "0.5"), ("10⁵", 100000), ("−78", -78),
     ("3.6E+004", 36000), ("3 x 10^-3", "0.003"), ("1.0 × 10⁻³", "0.001")],
)  # fmt: skip
def test_a_number_is_read_as_papers_write_it(text, value):
    match = VALUE.fullmatch(text)
    assert match is not None
    assert read(match) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60 °C", {"120 °C", "30 °C", "90 °C"}),  # × 2, × 0.5, × 1.5
        ("-78 and 0 °C", {"-156 and 0 °C", "-39 and 0 °C", "-117 and 0 °C"}),
        ("−196 °C", {"−98 °C"}),  # −392 and −294 °C are below absolute zero
        ("8,000 rpm", {"80,000 rpm", "800 rpm", "40,000 rpm"}),
        ("12 000 rpm", {"120 000 rpm", "1200 rpm", "60 000 rpm"}),
        ("2–4 h", {"20–40 h", "0.2–0.4 h", "10–20 h"}),
        ("10⁵ Pa", {"10⁶ Pa", "10⁴ Pa"}),  # five times needs another style
        ("1 × 10⁻³ mbar", {"1 × 10⁻² mbar", "1 × 10⁻⁴ mbar", "5 × 10⁻³ mbar"}),
        ("3.6E+004 g", {"3.6E+005 g", "3.6E+003 g", "1.08E+005 g"}),
        ("99.99%", {"50.00%", "9.999%"}),  # 49.995 has one digit too many; 199.98 is no share
        ("5% H2/95% Ar", {"10% H2/90% Ar", "2.5% H2/97.5% Ar", "0.5% H2/99.5% Ar"}),
        ("Ar/H2 (95:5)", {"Ar/H2 (90:10)", "Ar/H2 (97.5:2.5)", "Ar/H2 (99.5:0.5)"}),
        ("x = 0.8", {"x = 0.4", "x = 0.08"}),
        ("pH 10", {"pH 5"}),
        ("12 M HCl", {"1.2 M HCl"}),  # 120 and 60 mol/L are more than pure water has
        ("molar ratio 1:2", {"molar ratio 1:20", "molar ratio 1:10"}),
        ("0,5 mL", {"5 mL", "0,05 mL", "2,5 mL"}),
    ],
)  # fmt: skip
def test_a_wrong_value_keeps_style_unit_and_bounds(text, expected):
    assert news(text) == expected


def test_both_ends_of_a_range_move_together():
    edits = quantities.propose("25 °C to 800 °C", seed=3, sample_id="r")
    assert len({edit.entity for edit in edits}) == 1
    assert len(edits) == 2


def test_a_tolerance_stays_as_it_is():
    for seed in range(20):
        (edit,) = quantities.propose("24 ± 0.5 °C", seed=seed, sample_id="r")
        assert edit.new in {"12 ± 0.5 °C", "36 ± 0.5 °C", "48 ± 0.5 °C"}


@pytest.mark.parametrize(
    ("text", "together"),
    [
        ("5% H2/95% Ar", 2),
        ("30 % of A with 70 % of B", 2),
        ("80 wt% LiFePO4 (LFP), 10 wt% carbon black and 10 wt% PVDF", 3),
        ("99 % pure, then washed with 1 % HCl", 1),
        ("BaCO3 (99 %), 1 % HCl", 1),
        ("a yield of 60 % at 40 % humidity", 1),
        ("90 wt% A in 10 vol% B", 1),
    ],
)
def test_only_shares_of_one_mixture_add_up(text, together):
    assert max(len(tied) for tied in quantities.find(text)) == together


def test_the_article_before_a_number_still_fits():
    for seed in range(20):
        edits = quantities.propose("An 8 h soak, a 10 min rinse, an 80 °C bath.", seed=seed, sample_id="r")
        assert edits[0].new == "80 h"  # neither 0.8 nor 40
        assert all(edit.new != "8 min" for edit in edits)
        assert len(edits) == 2  # 40, 120 and 160 °C would need "a"


def test_two_masses_never_grow_by_the_same_factor():
    for seed in range(50):
        first, second = quantities.propose("2 g of NaCl and 4 g of KCl", seed=seed, sample_id="r")
        assert float(second.new.split()[0]) / float(first.new.split()[0]) != 2  # a larger batch is no error


def test_the_reason_names_the_value_and_what_was_needed():
    whys = {quantities.propose("Heat at 60 °C.", seed=s, sample_id="r")[0].why for s in range(20)}
    assert "120 °C is twice the temperature that this step needs (60 °C)" in whys


def test_nothing_to_change_gives_no_edit():
    assert quantities.propose("", seed=0, sample_id="r") == []
    assert quantities.propose("0 °C and 100(2) runs", seed=0, sample_id="r") == []
