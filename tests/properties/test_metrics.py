from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import metrics
from helpers.metrics.counts import _weighted_median

SCORES = st.sampled_from([None, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0])
CONDITIONS = [
    ("original", None, 0.0),
    ("e1", "error", 0.01),
    ("e2", "error", 0.15),
    ("r1", "represent", 0.01),
    ("r2", "represent", 0.15),
]


@st.composite
def judged(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    recipes = [f"s{i}" for i in range(draw(st.integers(1, 4)))]
    rows = [(s, *c, j, draw(SCORES)) for s in recipes for c in CONDITIONS for j in ("a", "b")]
    columns = ["sample_id", "dataset_name", "perturbation_category", "perturbation_rate", "judge", "overall_score"]
    scores = pd.DataFrame(rows, columns=columns).astype({"overall_score": float})
    anchors = pd.DataFrame({"sample_id": recipes, "anchor_score": [draw(SCORES.filter(bool)) for _ in recipes]})
    return scores.assign(item_id=scores["sample_id"] + scores["dataset_name"]), anchors


@given(judged(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_order_of_the_rows_changes_nothing(data: tuple[pd.DataFrame, pd.DataFrame], random: object) -> None:
    scores, anchors = data
    order = list(range(len(scores)))
    random.shuffle(order)  # type: ignore[attr-defined]
    tables = [metrics.judge_bias(rows, anchors, seed=3, n_boot=20) for rows in (scores, scores.iloc[order])]
    pd.testing.assert_frame_equal(*tables)


@given(judged())
@settings(max_examples=25, deadline=None)
def test_every_row_is_either_used_or_counted_as_missing(data: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table = metrics.judge_bias(*data, seed=3, n_boot=5).set_index(["judge", "metric"])
    graded = 2 * data[0]["sample_id"].nunique()
    for metric, rows in [("repr_bias", graded), ("validity", graded), ("accuracy", 2 * graded)]:
        assert (table.xs(metric, level="metric")[["n", "n_missing"]].sum(axis=1) == rows).all()


@given(judged())
@settings(max_examples=25, deadline=None)
def test_shares_stay_between_0_and_1_and_inside_their_interval(data: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table = metrics.detection_by_rate(*data).dropna(subset="estimate")
    assert (table[["low", "estimate", "high"]].diff(axis=1).iloc[:, 1:] >= -1e-9).all(axis=None)
    assert table["low"].ge(-1e-12).all()
    assert table["high"].le(1 + 1e-12).all()


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
@settings(deadline=None)
def test_constant_recipes_have_an_interval_of_no_width(values: list[float]) -> None:
    rows = pd.DataFrame({"sample_id": [str(i) for i in range(len(values))], "value": values[0], "g": "x"})
    (row,) = metrics.group_means(rows, "value", ["g"], seed=1, n_boot=20).with_intervals().itertuples()
    np.testing.assert_allclose([row.estimate, row.low, row.high], values[0], atol=1e-9)


@given(
    st.lists(st.tuples(st.sampled_from([0.5, 1.0, 1.5, 2.0]), st.integers(0, 3)), min_size=1).filter(
        lambda x: sum(w for _, w in x)
    )
)
def test_a_weighted_median_is_the_median_of_the_repeated_values(pairs: list[tuple[float, int]]) -> None:
    values, weights = (np.array(column, dtype=float) for column in zip(*sorted(pairs), strict=True))
    assert _weighted_median(values, weights[None, :])[0] == np.median(np.repeat(values, weights.astype(int)))


@given(judged())
@settings(max_examples=25, deadline=None)
def test_a_judge_agrees_with_its_copy(data: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    one = data[0].query("judge == 'a'")
    both = pd.concat([one, one.assign(judge="copy")])
    found = metrics.agreement(both, seed=1, n_boot=5)["estimate"].dropna()
    np.testing.assert_allclose(found, 1.0)
    alpha = metrics.krippendorff_alpha(both, seed=1, n_boot=5).estimate
    assert np.isnan(alpha) or np.isclose(alpha, 1.0)
