from __future__ import annotations

import hashlib
import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from helpers import figures, metrics, principles
from helpers.figures.files import check_glyphs
from helpers.figures.style import STYLES, figure_of
from helpers.perturbations import CONDITIONS
from tests import planted

JUDGES = ["keen", "blind"]
SEED = {"seed": 1, "n_boot": 20}


@pytest.fixture(autouse=True)
def _own_style() -> Iterator[None]:
    with plt.rc_context():
        figures.use_style("acl")
        yield
    plt.close("all")


@cache
def scores() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows, anchors = planted.judgements(planted.JUDGES, 12, 3)
    rows["overall_score"] = (rows["overall_score"].clip(1, 5) * 2).round() / 2
    rows["status"] = np.where(np.arange(len(rows)) % 9 == 0, "refused", "ok")
    rows.loc[rows["status"] == "refused", "overall_score"] = np.nan
    return rows, anchors.assign(track="recipe")


@cache
def pairs() -> pd.DataFrame:
    rows = []
    for place, (name, condition) in enumerate(itertools.product(CONDITIONS, "ab")):
        chosen, rejected = JUDGES if place % 3 else JUDGES[::-1]
        delta = 0.5 * (1 + place % 4)
        rows.append((condition, name, CONDITIONS[name].category, CONDITIONS[name].type, chosen, rejected, delta))
    columns = [
        "sample_id",
        "dataset_name",
        "perturbation_category",
        "perturbation_type",
        "chosen_model",
        "rejected_model",
    ]
    return pd.DataFrame(rows, columns=[*columns, "score_delta"])


@cache
def audit() -> pd.DataFrame:
    subsets = np.repeat(principles.subsets(), 40)
    drawn = principles.draw(subsets, [f"i{n}" for n in range(len(subsets))], [0] * len(subsets), seed=42)
    return principles.audit(pd.DataFrame({"subset": subsets, "principle": drawn}))


def conditions() -> pd.DataFrame:
    categories = [condition.category for condition in CONDITIONS.values()]
    return pd.DataFrame({"dataset_name": list(CONDITIONS), "perturbation_category": categories, "n": 3})


LEAKS = pd.DataFrame({"check": ["same prompt", "same sample"], "found": [3, 0], "of": [12, 0], "share": [0.25, None]})
STEPS = pd.DataFrame({"step": ["candidates", "no_anchor", "equal", "over_cap"], "n": [4080, 4080, 3001, 2580]})


def applicability() -> pd.DataFrame:
    return conditions().assign(total=40, n=range(23, 40))


def rated() -> pd.DataFrame:
    rows = scores()[0].query("judge == 'keen' and perturbation_category in ('error', 'represent')")
    return rows.assign(rate_actual=rows["perturbation_rate"] + 0.002)


def by_principle() -> pd.DataFrame:
    names = ["helpfulness", "truthfulness", "honesty", "verbalized_calibration"]
    rows = itertools.product(names, names)
    table = pd.DataFrame(rows, columns=["chosen_principle", "rejected_principle"])
    return table.assign(estimate=1.5, low=0.5, high=2.5, n=12)


def calibrated() -> pd.DataFrame:
    rows = pd.DataFrame({"item_id": list("abcd"), "sample_id": list("abcd"), "score": [2.0, 3.0, 4.5, 3.0]})
    return rows.assign(confidence=[30.0, 50.0, 95.0, None])


def by_type() -> pd.DataFrame:
    return metrics.delta_summary(pairs(), ["perturbation_category", "perturbation_type"], **SEED)


FIGURES: dict[str, tuple[Callable[..., Artist], Callable[[], list[pd.DataFrame]]]] = {
    "principle_shares": (figures.plot_principle_shares, lambda: [audit()]),
    "principle_grid": (figures.plot_principle_grid, lambda: [audit()]),
    "applicability": (figures.plot_applicability, lambda: [applicability()]),
    "rates": (figures.plot_rates, lambda: [rated()]),
    "scores": (figures.plot_scores, lambda: [metrics.shares(scores()[0], "overall_score", ["judge"])]),
    "statuses": (figures.plot_statuses, lambda: [metrics.attrition(scores()[0], ["judge"])]),
    "score_by_rate": (figures.plot_score_by_rate, lambda: [metrics.score_by_rate(scores()[0], **SEED)]),
    "detection_by_rate": (figures.plot_detection_by_rate, lambda: [metrics.detection_by_rate(*scores())]),
    "judge_bias": (figures.plot_judge_bias, lambda: [metrics.judge_bias(*scores(), **SEED)]),
    "stability_validity": (figures.plot_stability_validity, lambda: [metrics.judge_bias(*scores(), **SEED)]),
    "score_by_anchor": (figures.plot_score_by_anchor, lambda: [metrics.score_by_anchor(*scores(), **SEED)]),
    "agreement": (figures.plot_agreement, lambda: [metrics.agreement(scores()[0], **SEED)]),
    "calibration": (figures.plot_calibration, lambda: [calibrated(), metrics.calibration_bins(calibrated(), **SEED)]),
    "anchors": (figures.plot_anchors, lambda: [scores()[1]]),
    "deltas": (figures.plot_deltas, lambda: [pairs(), metrics.delta_summary(pairs(), **SEED)]),
    "deltas_by_type": (figures.plot_deltas_by_type, lambda: [pairs(), by_type()]),
    "pairs_per_condition": (figures.plot_pairs_per_condition, lambda: [conditions()]),
    "flow": (figures.plot_flow, lambda: [STEPS]),
    "leaks": (figures.plot_leaks, lambda: [LEAKS]),
    "chosen": (figures.plot_chosen, lambda: [metrics.chosen_counts(pairs(), **SEED)]),
    "delta_by_principle": (figures.plot_delta_by_principle, lambda: [by_principle()]),
}


def drawn(name: str) -> Artist:
    plot, make_tables = FIGURES[name]
    return plot(*make_tables())


def tick_labels(axis: Axis) -> list[Text]:
    """Return the labels of the ticks in view; matplotlib keeps others that it never draws."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_visible()]


def texts(fig: Figure) -> list[Text]:
    axes = [axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    hidden = {label for axis in axes for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)}
    hidden -= {label for axis in axes for label in tick_labels(axis)}
    hidden |= {text for ax in fig.axes if not ax.axison for text in ax.findobj(Text)}
    found = [text for text in fig.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text for text in found if text not in hidden]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_asks_a_question_and_names_its_axes(name: str) -> None:
    fig = figure_of(drawn(name))
    assert fig.get_suptitle().endswith("?")
    labels = [axis.get_label_text() for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    labels += [fig.get_supxlabel(), *(ax.get_title() for ax in fig.axes)]
    assert any(labels)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("style", ["acl", "nature"])
def test_no_text_is_cut_or_smaller_than_the_venue_allows(style: str, name: str) -> None:
    figures.use_style(style)
    fig = figure_of(drawn(name))
    fig.set_dpi(300)
    fig.draw_without_rendering()
    inside = fig.bbox.padded(2)
    for text in texts(fig):
        box = text.get_window_extent()
        assert inside.contains(*box.min), text.get_text()
        assert inside.contains(*box.max), text.get_text()
        assert text.get_fontsize() >= 6


@pytest.mark.parametrize("name", ["scores", "score_by_rate", "judge_bias", "score_by_anchor", "chosen"])
def test_a_panel_of_thirteen_fits(name: str) -> None:
    plot, make_tables = FIGURES[name]
    (table,) = make_tables()
    one = table[table["judge"] == "keen"]
    names = [f"org/judge-{n}-of-some-size-instruct" for n in range(13)]
    fig = figure_of(plot(pd.concat([one.assign(judge=judge) for judge in names])))
    fig.draw_without_rendering()
    inside = fig.bbox.padded(2)
    assert all(inside.contains(*corner) for text in texts(fig) for corner in text.get_window_extent().corners())


def test_a_grid_of_thirteen_judges_leaves_the_intervals_to_the_table() -> None:
    rows = itertools.combinations([f"judge {n}" for n in range(13)], 2)
    table = pd.DataFrame(rows, columns=["judge_a", "judge_b"]).assign(measure="spearman", estimate=-0.25, n=7)
    ax = figures.plot_agreement(table.assign(low=-0.5, high=0.1))
    assert {text.get_text() for text in ax.texts} == {"−0.25", ""}
    assert ax.get_xlabel() == "spearman (n ≤ 7)"


@pytest.mark.parametrize("name", FIGURES)
def test_an_empty_table_is_no_error(name: str) -> None:
    plot, make_tables = FIGURES[name]
    shown = figures.show(plot(*(table.head(0) for table in make_tables())), "nothing")
    assert shown.svg.startswith("<?xml")


@pytest.mark.parametrize("name", FIGURES)
def test_tick_labels_do_not_overlap(name: str) -> None:
    fig = figure_of(drawn(name))
    fig.draw_without_rendering()
    for axis in (axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)):
        boxes = [label.get_window_extent() for label in tick_labels(axis) if label.get_text()]
        assert not any(first.overlaps(second) for first, second in itertools.pairwise(boxes)), axis.get_label_text()


@pytest.mark.parametrize("style", STYLES)
def test_a_saved_figure_has_the_venues_width_and_truetype_fonts(style: str, tmp_path: Path) -> None:
    figures.use_style(style)
    figures.save(drawn("chosen"), tmp_path / "chosen", pd.DataFrame({"n": [1]}), "Chosen judges.")
    pdf = (tmp_path / "chosen.pdf").read_bytes()
    width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)[1]) / 72
    assert width == pytest.approx(STYLES[style].column, abs=0.01)
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf


def test_numbers_and_caption_lie_beside_the_figure(tmp_path: Path) -> None:
    table = pd.DataFrame({"judge": ["a"], "estimate": [0.1]})
    shown = figures.save(drawn("chosen"), tmp_path / "folder" / "chosen", table, "Chosen & rejected, n = 3.")
    assert sorted(file.suffix for file in shown.files) == [".csv", ".pdf", ".png", ".svg", ".txt"]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "folder" / "chosen.csv"), table)
    assert (tmp_path / "folder" / "chosen.txt").read_text() == "Chosen & rejected, n = 3.\n"
    assert "<text" in (tmp_path / "folder" / "chosen.svg").read_text()
    assert plt.get_fignums() == []


def test_a_figure_of_another_width_is_refused(tmp_path: Path) -> None:
    fig, ax = plt.subplots(figsize=(4, 3))
    figures.plot_chosen(metrics.chosen_counts(pairs(), **SEED), JUDGES, ax)
    with pytest.raises(ValueError, match=r"'mine' is 4\.00 in wide"):
        figures.save(fig, tmp_path / "mine", pd.DataFrame(), "")


def test_an_unknown_style_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'icml' is not known; known are: screen, acl"):
        figures.use_style("icml")


def test_a_character_that_no_font_has_is_an_error_that_names_the_label() -> None:
    ax = figures.plot_chosen(metrics.chosen_counts(pairs(), **SEED), JUDGES)
    ax.set_xlabel("沸石 Al₂O₃")
    with pytest.raises(ValueError, match=r"'沸石 Al₂O₃' has '沸' \(U\+6CB8\)"):
        check_glyphs(figure_of(ax))


def test_formulas_greek_and_signs_can_be_drawn() -> None:
    ax = figures.plot_chosen(metrics.chosen_counts(pairs(), **SEED), JUDGES)
    ax.set_xlabel("Al₂O₃·6H₂O at 500 °C, 10⁻⁵ Å, τ ≤ ½ ± μ → −1")
    check_glyphs(figure_of(ax))


def test_dollars_in_a_name_are_no_formula() -> None:
    table = metrics.chosen_counts(pairs().replace({"keen": "$x_1$ judge"}), **SEED)
    ax = figures.plot_chosen(table)
    assert "$x 1$ judge" in [tick.get_text() for tick in ax.get_yticklabels()]
    assert not any(text.get_parse_math() for text in texts(figure_of(ax)))


def test_a_judge_has_one_colour_in_every_figure() -> None:
    lines = figure_of(figures.plot_score_by_rate(metrics.score_by_rate(scores()[0], **SEED), JUDGES)).axes[0].lines
    points = figures.plot_stability_validity(metrics.judge_bias(*scores(), **SEED), JUDGES).lines
    colours = [{line.get_label(): to_hex(line.get_color()) for line in group} for group in (lines, points)]
    assert [colours[0][name] for name in JUDGES] == [colours[1][name] for name in JUDGES]


def test_a_judge_keeps_its_colour_when_another_has_no_pairs() -> None:
    ax = figures.plot_score_by_anchor(metrics.score_by_anchor(*scores(), **SEED).query("judge == 'blind'"), JUDGES)
    (blind,) = [line for line in ax.lines if str(line.get_label()).startswith("blind")]
    assert to_hex(blind.get_color()) == figures.looks(JUDGES)["blind"].colour


def test_looks_differ_without_colour() -> None:
    for names in (["error", "represent", "original"], principles.PRINCIPLES, [f"judge {n}" for n in range(10)]):
        found = figures.looks(names).values()
        assert len({look.marker for look in found}) == len(names)
        assert len({look.hatch for look in found}) == len(names)


@pytest.mark.parametrize("judge", JUDGES)
def test_a_curve_is_the_table_under_the_right_name(judge: str) -> None:
    table = metrics.score_by_rate(scores()[0], **SEED)
    ax = figure_of(figures.plot_score_by_rate(table, JUDGES)).axes[0]
    (line,) = [line for line in ax.lines if line.get_label() == judge]
    rows = table.query("judge == @judge and perturbation_category == 'error'")
    np.testing.assert_allclose(line.get_ydata(), rows["estimate"])
    np.testing.assert_allclose(line.get_xdata(), rows["perturbation_rate"], atol=0.002)
    ends = ax.collections[JUDGES.index(judge)].get_segments()
    np.testing.assert_allclose([segment[:, 1] for segment in ends], rows[["low", "high"]])


def test_the_names_of_judges_that_are_alike_do_not_cover_each_other() -> None:
    names = [f"judge number {n}" for n in range(6)]
    rows = itertools.product(names, [("validity", 0.5), ("stability", 0.8)])
    table = pd.DataFrame([(name, metric, value, 0.4, 0.9) for name, (metric, value) in rows])
    ax = figures.plot_stability_validity(table.set_axis(["judge", "metric", "estimate", "low", "high"], axis=1), names)
    figure_of(ax).draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(first.overlaps(second) for first, second in itertools.combinations(boxes, 2))


def test_bars_are_the_counts_in_the_methods_order() -> None:
    ax = figures.plot_pairs_per_condition(conditions().iloc[::-1])
    assert [bar.get_width() for bar in ax.patches] == [3] * 17
    assert [tick.get_text() for tick in ax.get_yticklabels()][:6] == [
        "all errors 1 %",
        "all errors 2 %",
        "all errors 5 %",
        "all errors 10 %",
        "all errors 15 %",
        "element substitution",
    ]


def test_responses_without_a_confidence_are_the_answer() -> None:
    ax = figures.plot_calibration(
        calibrated().assign(confidence=np.nan), metrics.calibration_bins(calibrated(), **SEED)
    )
    (text,) = ax.texts
    assert text.get_text() == "nothing to show: none of 4 responses states a confidence and has a score"


def test_the_flow_shows_what_is_left_and_what_was_taken() -> None:
    ax = figures.plot_flow(STEPS)
    assert [bar.get_width() for bar in ax.containers[0]] == [4080, 4080, 3001, 2580]
    assert [bar.get_width() for bar in ax.containers[1]] == [0, 0, 1079, 421]
    assert [text.get_text() for text in ax.texts] == ["4,080", "4,080", "3,001  (−1,079)", "2,580  (−421)"]


def test_histograms_count_every_pair() -> None:
    ax = figures.plot_deltas(pairs(), metrics.delta_summary(pairs(), **SEED))
    assert [sum(bar.get_height() for bar in group) for group in ax.containers] == [18, 16]


def test_a_share_of_the_scale_adds_up_to_one() -> None:
    ax = figures.plot_scores(metrics.shares(scores()[0], "overall_score", ["judge"]))
    widths = np.array([[bar.get_width() for bar in group] for group in ax.containers])
    np.testing.assert_allclose(widths.sum(axis=0), 1)


def test_a_plot_into_given_axes_keeps_to_them() -> None:
    fig, (left, right) = plt.subplots(1, 2, figsize=(6.3, 3))
    assert figures.plot_chosen(metrics.chosen_counts(pairs(), **SEED), JUDGES, left) is left
    assert left.get_title(loc="left").replace("\n", " ").endswith("chosen?")
    assert right.get_title(loc="left") == ""
    assert fig.legends == []


def test_a_measure_without_a_value_is_a_dash_not_nan() -> None:
    table = metrics.agreement(scores()[0].assign(overall_score=3.0), **SEED)
    assert "–\nn = 132" in [text.get_text() for text in figures.plot_agreement(table).texts]


def test_the_shown_figure_is_one_image_with_its_caption_escaped() -> None:
    shown = figures.show(drawn("chosen"), 'The "chosen" <b>judges</b>')
    assert shown._repr_html_().count("<img ") == 1
    assert "<b>" not in shown._repr_html_()
    assert "<text" not in shown.svg  # letters are outlines: no font is needed to see it
    assert repr(shown) == 'The "chosen" <b>judges</b>'


SCRIPT = """
import sys
from pathlib import Path
import pandas as pd
sys.path.insert(0, sys.argv[1])
from helpers import figures
from tests import test_figures as t
figures.use_style("nature")
for name in ("chosen", "statuses", "agreement", "rates"):
    shown = figures.save(t.drawn(name), Path(sys.argv[2]) / name, pd.DataFrame({"n": [1]}), name)
    Path(sys.argv[2], name + ".shown").write_text(shown.svg)
"""


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    hashes = []
    for place in ("one", "two"):
        command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[1]), str(tmp_path / place)]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": str(len(hashes)), "HOME": str(tmp_path)})
        files = sorted((tmp_path / place).iterdir())
        hashes.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    assert len(hashes[0]) == 24
    assert hashes[0] == hashes[1]
