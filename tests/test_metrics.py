from __future__ import annotations

import krippendorff
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from helpers import metrics
from tests import planted

# One recipe, judge "a": original 4.0; errors at 1 % and 15 %; equivalents at 1 % and 15 %; one swap of each category.
ROWS = [
    ("r1", "original", None, 0.0, 4.0),
    ("r1", "all_error_perturbation_1pct", "error", 0.01, 3.5),
    ("r1", "all_error_perturbation_15pct", "error", 0.15, 2.0),
    ("r1", "action_antonym_100pct", "error", 1.0, 4.0),
    ("r1", "llm_representational_perturbation_1pct", "represent", 0.01, 4.5),
    ("r1", "llm_representational_perturbation_15pct", "represent", 0.15, 3.0),
    ("r1", "llm_to_name_100pct", "represent", 1.0, 3.5),
]
COLUMNS = ["sample_id", "dataset_name", "perturbation_category", "perturbation_rate", "overall_score"]
ANCHORS = pd.DataFrame({"sample_id": ["r1"], "anchor_score": [3.5]})


def toy(judge: str = "a", **change: float | None) -> pd.DataFrame:
    scores = pd.DataFrame(ROWS, columns=COLUMNS).assign(judge=judge)
    scores["overall_score"] = (
        scores["dataset_name"].map(change).where(scores["dataset_name"].isin(change), scores["overall_score"])
    )
    return scores.astype({"overall_score": float}).assign(item_id=scores["sample_id"] + "/" + scores["dataset_name"])


def estimates(table: pd.DataFrame) -> dict[str, float]:
    return dict(zip(table["metric"], table["estimate"], strict=True))


def test_every_metric_equals_the_hand_computation() -> None:
    assert estimates(metrics.judge_bias(toy(), ANCHORS, seed=1)) == pytest.approx(
        {
            "repr_bias": (1.0 + 0.5 + 0.0) / 3,  # |4.5 − 3.5|, |3.0 − 3.5|, |3.5 − 3.5|
            "error_sensitivity": (0.0 + 1.5 - 0.5) / 3,  # 3.5 − 3.5, 3.5 − 2.0, 3.5 − 4.0
            "validity": 0.5,  # 4.0 − 3.5 is not above 0.5; 4.0 − 2.0 is; trapezoid of 0 and 1
            "stability": 0.5,  # |4.0 − 4.5| is within 0.5; |4.0 − 3.0| is not
            "accuracy": 0.5,  # one of two right at each rate
        }
    )


def test_the_area_weighs_the_rates_by_their_distance() -> None:
    detected = pd.DataFrame(
        [("r1", f"e{r}", "error", r, s) for r, s in [(0.01, 4.0), (0.02, 4.0), (0.15, 1.0)]], columns=COLUMNS
    )
    scores = pd.concat([toy().head(1), detected.assign(judge="a")])
    validity = estimates(metrics.judge_bias(scores, ANCHORS, seed=1))["validity"]
    assert validity == pytest.approx(0.13 * 0.5 / 0.14)  # 0, 0, 1: only the last trapezoid, 0.02 to 0.15, has area


def test_a_difference_of_exactly_tau_is_stable_also_for_floats() -> None:
    scores = toy(original=4.4, llm_representational_perturbation_1pct=3.9, llm_representational_perturbation_15pct=3.9)
    assert 4.4 - 3.9 > 0.5
    assert estimates(metrics.judge_bias(scores, ANCHORS, seed=1))["stability"] == 1.0


def test_missing_scores_are_left_out_and_counted() -> None:
    table = metrics.judge_bias(toy(all_error_perturbation_15pct=None), ANCHORS, seed=1).set_index("metric")
    assert table.loc["error_sensitivity", ["estimate", "n", "n_missing"]].tolist() == [-0.25, 2, 1]
    assert np.isnan(table.loc["validity", "estimate"])  # the rate of 15 % has no score: there is no area


def test_without_an_original_the_bias_is_known_and_the_areas_are_not() -> None:
    table = metrics.judge_bias(toy().iloc[1:], ANCHORS, seed=1).set_index("metric")
    assert table.loc["repr_bias", "n"] == 3
    assert table.loc["stability", ["n", "n_missing"]].tolist() == [0, 2]


def test_without_an_anchor_the_areas_are_known_and_the_bias_is_not() -> None:
    table = metrics.judge_bias(toy(), ANCHORS.head(0), seed=1).set_index("metric")
    assert table.loc["repr_bias", ["n", "n_missing"]].tolist() == [0, 3]
    assert table.loc["stability", "estimate"] == 0.5


def test_two_anchors_for_one_recipe_are_an_error() -> None:
    with pytest.raises(pd.errors.MergeError):
        metrics.judge_bias(toy(), pd.concat([ANCHORS, ANCHORS]), seed=1)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match=r"judgements lack perturbation_rate"):
        metrics.judge_bias(toy().drop(columns="perturbation_rate"), ANCHORS, seed=1)


def test_no_judgements_give_an_empty_table() -> None:
    assert metrics.judge_bias(toy().head(0), ANCHORS, seed=1).empty


def test_planted_truth_lies_inside_the_intervals_at_the_stated_rate() -> None:
    inside = []
    for seed in range(40):
        table = metrics.judge_bias(*planted.judgements(planted.JUDGES, 40, seed), seed=seed, n_boot=200)
        truth = pd.concat([pd.Series(judge.truth()) for judge in planted.JUDGES], keys=[j.name for j in planted.JUDGES])
        rows = table.set_index(["judge", "metric"])
        inside.append((rows["low"] <= truth.reindex(rows.index)) & (truth.reindex(rows.index) <= rows["high"]))
    assert 0.90 <= np.mean(inside) <= 0.98


def test_recipes_are_resampled_not_rows() -> None:
    rng = np.random.default_rng(5)
    value = rng.normal(size=100)
    rows = pd.DataFrame({"sample_id": np.repeat(np.arange(100), 5).astype(str), "value": np.repeat(value, 5), "g": 1})
    (row,) = metrics.group_means(rows, "value", ["g"], seed=1, n_boot=2000).with_intervals().itertuples()
    width = 2 * 1.96 * value.std() / 10  # 100 recipes count, not 500 rows
    assert row.high - row.low == pytest.approx(width, rel=0.1)


def test_a_planted_difference_lies_inside_the_paired_intervals() -> None:
    keen, blind = planted.JUDGES
    truth = pd.Series(blind.truth()) - pd.Series(keen.truth())
    inside = []
    for seed in range(12):
        scores, anchors = planted.judgements(planted.JUDGES, 40, seed)
        rows = metrics.paired_differences(scores, anchors, seed=seed, n_boot=200).set_index("metric")
        inside.append((rows["low"] <= truth) & (truth <= rows["high"]))
    assert np.mean(inside) >= 0.85


def test_a_judge_does_not_differ_from_its_twin() -> None:
    table = metrics.paired_differences(pd.concat([toy("a"), toy("b")]), ANCHORS, seed=1, n_boot=99)
    assert table["estimate"].tolist() == [0.0] * 5
    assert table["p_holm"].tolist() == [1.0] * 5


def test_holm_multiplies_the_smallest_p_by_the_number_of_pairs() -> None:
    judges = tuple(
        planted.PlantedJudge(name, 0.0, drop, 0.0, 0.3) for name, drop in [("a", 0.2), ("b", 0.9), ("c", 2.0)]
    )
    scores, anchors = planted.judgements(judges, 40, 1)
    table = metrics.paired_differences(scores, anchors, seed=1, n_boot=199)
    errors = table[table["metric"] == "error_sensitivity"]
    assert errors["p"].tolist() == pytest.approx([2 / 200] * 3)
    assert errors["p_holm"].tolist() == pytest.approx([6 / 200] * 3)


def test_a_pair_is_compared_on_what_both_scored() -> None:
    table = metrics.paired_differences(
        pd.concat([toy("a"), toy("b", llm_to_name_100pct=None)]), ANCHORS, seed=1, n_boot=9
    ).set_index("metric")
    assert table.loc["repr_bias", ["n", "n_missing"]].tolist() == [2, 1]


def test_the_degradation_curve_starts_at_the_original() -> None:
    table = metrics.score_by_rate(toy(), seed=1, n_boot=9)
    assert table[["perturbation_category", "perturbation_rate", "estimate"]].values.tolist() == [
        ["error", 0.0, 4.0],
        ["error", 0.01, 3.5],
        ["error", 0.15, 2.0],
        ["represent", 0.0, 4.0],
        ["represent", 0.01, 4.5],
        ["represent", 0.15, 3.0],
    ]


def test_detection_by_rate_counts_recipes_for_wilson() -> None:
    table = metrics.detection_by_rate(pd.concat([toy(), toy()]), ANCHORS)  # two repeats of one recipe
    assert table["estimate"].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert table["n"].tolist() == [2, 2, 2, 2]
    assert table["low"].iloc[1] == pytest.approx(1 / (1 + 1.959964**2))  # Wilson for 1 of 1


def half_steps(seed: int = 3) -> pd.DataFrame:
    scores, _ = planted.judgements(planted.JUDGES, 30, seed)
    scores["overall_score"] = (scores["overall_score"] * 2).round() / 2
    scores.loc[::17, "overall_score"] = np.nan
    return scores


def test_agreement_equals_scipy_and_statsmodels() -> None:
    scores = half_steps()
    found = metrics.agreement(scores, seed=1, n_boot=50).set_index("measure")["estimate"]
    both = scores.pivot(index="item_id", columns="judge", values="overall_score").dropna()
    levels = np.unique(both)
    counts = pd.crosstab(pd.Categorical(both["blind"], levels), pd.Categorical(both["keen"], levels), dropna=False)
    assert found["spearman"] == pytest.approx(stats.spearmanr(both["blind"], both["keen"]).statistic)
    assert found["kendall"] == pytest.approx(stats.kendalltau(both["blind"], both["keen"]).statistic)
    assert found["quadratic_kappa"] == pytest.approx(cohens_kappa(counts.to_numpy(), wt="quadratic").kappa)
    assert found["within_half"] == pytest.approx(((both["blind"] - both["keen"]).abs() <= 0.5).mean())


def test_agreement_of_constant_judges_is_null_not_a_number() -> None:
    rows = [(f"i{i}", f"s{i}", judge, 3.0) for i in range(4) for judge in "ab"]
    table = metrics.agreement(
        pd.DataFrame(rows, columns=["item_id", "sample_id", "judge", "overall_score"]), seed=1, n_boot=9
    )
    assert table["estimate"].isna().tolist() == [True, True, True, False]


def test_agreement_refuses_scores_that_never_repeat() -> None:
    scores, _ = planted.judgements(planted.JUDGES, 30, 3)
    with pytest.raises(ValueError, match=r"round them to 0\.1"):
        metrics.agreement(scores, seed=1)


def test_one_judge_has_nobody_to_agree_with() -> None:
    assert metrics.agreement(half_steps().query("judge == 'keen'"), seed=1).empty


def test_alpha_equals_the_krippendorff_package() -> None:
    scores = half_steps()
    wide = scores.pivot(index="judge", columns="item_id", values="overall_score").to_numpy()
    found = metrics.krippendorff_alpha(scores, seed=1, n_boot=99)
    assert found.estimate == pytest.approx(krippendorff.alpha(wide, level_of_measurement="interval"))
    assert found.low < found.estimate < found.high


def test_alpha_of_a_small_example_by_hand() -> None:
    rows = [("u1", "s1", "a", 1.0), ("u1", "s1", "b", 2.0), ("u2", "s2", "a", 4.0), ("u2", "s2", "b", 4.0)]
    rows += [("u3", "s3", "a", 5.0)]
    found = metrics.krippendorff_alpha(
        pd.DataFrame(rows, columns=["item_id", "sample_id", "judge", "overall_score"]), seed=1, n_boot=9
    )
    # The score alone is left out. Observed: (1² + 1²) / 4 = 0.5; expected: 2 (4 · 37 − 11²) / (4 · 3) = 4.5.
    assert found.estimate == pytest.approx(1 - 0.5 / 4.5)
    assert (found.n, found.n_missing) == (4, 1)


@pytest.mark.parametrize("scores", [[], [3.0, 3.0]])
def test_alpha_without_differences_is_null(scores: list[float]) -> None:
    rows = pd.DataFrame({"item_id": ["u"] * len(scores), "sample_id": "s", "judge": list("ab")[: len(scores)]})
    rows = rows.assign(overall_score=np.array(scores, dtype=float))
    assert np.isnan(metrics.krippendorff_alpha(rows, seed=1, n_boot=9).estimate)


PAIRS = pd.DataFrame(
    [
        ("k1", "s1", "error", "a", "b", 0.5),
        ("k2", "s1", "error", "a", "c", 1.0),
        ("k3", "s2", "represent", "b", "a", 3.0),
        ("k4", "s3", "represent", "b", "a", 1.5),
    ],
    columns=["pair_key", "sample_id", "perturbation_category", "chosen_model", "rejected_model", "score_delta"],
)


def test_chosen_counts_are_out_of_the_pairs_that_a_judge_is_in() -> None:
    table = metrics.chosen_counts(PAIRS, seed=1, n_boot=9)
    assert table[["perturbation_category", "judge", "estimate", "n"]].values.tolist() == [
        ["error", "a", 1.0, 2],
        ["error", "b", 0.0, 1],
        ["error", "c", 0.0, 1],
        ["represent", "a", 0.0, 2],
        ["represent", "b", 1.0, 2],
    ]


def test_cramers_v_equals_scipy() -> None:
    rng = np.random.default_rng(2)
    pairs = pd.DataFrame({"chosen_model": rng.choice(list("abc"), 200), "sample_id": np.arange(200).astype(str)})
    pairs["perturbation_category"] = np.where(
        rng.random(200) < (pairs["chosen_model"] == "a") * 0.5 + 0.2, "error", "represent"
    )
    found = metrics.cramers_v(pairs, seed=1, n_boot=200)
    table = pd.crosstab(pairs["chosen_model"], pairs["perturbation_category"])
    assert found.estimate == pytest.approx(stats.contingency.association(table))
    assert found.low < found.estimate < found.high


def test_one_category_has_no_association() -> None:
    assert np.isnan(metrics.cramers_v(PAIRS.head(2), seed=1, n_boot=9).estimate)


def test_delta_summary_equals_pandas() -> None:
    table = metrics.delta_summary(PAIRS, seed=1, n_boot=200).set_index("perturbation_category")
    assert table.loc["error", ["mean", "median", "n", "n_recipes"]].tolist() == [0.75, 0.75, 2, 1]
    assert table.loc["represent", ["mean", "median", "n", "n_recipes"]].tolist() == [2.25, 2.25, 2, 2]
    assert table.loc["error", ["mean_low", "mean_high"]].tolist() == [0.75, 0.75]  # one recipe cannot vary
    assert table.loc["represent", ["median_low", "median_high"]].tolist() == [1.5, 3.0]


def test_delta_by_principle_finds_the_principles_of_both_sides() -> None:
    drawn = pd.DataFrame({"sample_id": "s1", "model": list("abc"), "principle": ["honesty", "helpfulness", "honesty"]})
    table = metrics.delta_by_principle(PAIRS, drawn, seed=1, n_boot=9)
    assert table[["chosen_principle", "rejected_principle", "estimate", "n"]].values.tolist() == [
        ["honesty", "helpfulness", 0.5, 1],
        ["honesty", "honesty", 1.0, 1],
    ]


def test_applicability_keeps_a_condition_that_never_applies() -> None:
    items = pd.DataFrame(
        {"sample_id": ["1", "2", "1"], "dataset_name": ["original", "original", "action_antonym_100pct"]}
    )
    table = metrics.applicability(items.assign(rate_actual=0.2), ["llm_to_name_100pct", "action_antonym_100pct"], 2)
    assert table[["perturbation_category", "n", "total", "estimate"]].values.tolist() == [
        ["represent", 0, 2, 0.0],
        ["error", 1, 2, 0.5],
    ]


def test_a_repeat_is_no_further_judge() -> None:
    scores = half_steps()
    twice = pd.concat([scores, scores])
    assert metrics.krippendorff_alpha(twice, seed=1, n_boot=9) == metrics.krippendorff_alpha(scores, seed=1, n_boot=9)
    pd.testing.assert_frame_equal(*(metrics.agreement(rows, seed=1, n_boot=9) for rows in (twice, scores)))


def test_reward_accuracy_counts_ties_as_misses_and_absent_scores_as_missing() -> None:
    scores = pd.DataFrame({"pair_key": ["k1", "k2", "k3"], "logp_chosen": [-1.0, -2.0, -1.0], "logp_rejected": -2.0})
    table = metrics.reward_accuracy(PAIRS, scores, seed=1, n_boot=9)
    assert table[["perturbation_category", "estimate", "n", "n_missing"]].values.tolist() == [
        ["all", pytest.approx(2 / 3), 3, 1],
        ["error", 0.5, 2, 0],
        ["represent", 1.0, 1, 1],
    ]


def test_overall_outside_aspects_ignores_anchors_and_counts_the_unscored() -> None:
    rows = pd.DataFrame(
        {
            "sample_id": ["1", "2", "3"],
            "judge": "a",
            "overall_score": [4.5, 3.0, None],
            "x_score": [4.0, 2.0, 1.0],
            "y_score": [3.0, 4.0, 1.0],
            "anchor_score": 5.0,
        }
    )
    (row,) = metrics.overall_outside_aspects(rows, seed=1, n_boot=9).itertuples()
    assert (row.estimate, row.n, row.n_missing) == (0.5, 2, 1)


def test_shares_keep_a_value_that_a_group_never_had() -> None:
    rows = pd.DataFrame({"subset": ["flan", "flan", "evol"], "principle": ["honesty", "helpfulness", "helpfulness"]})
    table = metrics.shares(rows, "principle", ["subset"]).set_index(["subset", "principle"])
    assert table.loc[("evol", "honesty"), ["n", "total", "estimate"]].tolist() == [0, 1, 0.0]


def test_attrition_shows_every_status_of_every_judge() -> None:
    rows = pd.DataFrame({"judge": ["a", "a", "b"], "dataset_name": "original", "status": ["ok", "refused", "ok"]})
    assert metrics.attrition(rows)["n"].tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("response", "confidence"),
    [
        ("Paris. Confidence: 80%", 80.0),
        ("Confidence: 20 %\nOn reflection. Confidence: 95.5%", 95.5),
        ("My confidence in this is about 70%.", 70.0),
        ("I am 80% sure", np.nan),
        ("Confidence: high", np.nan),
        ("Confidence: 8/10", np.nan),
        ("Confidence: 1280%", np.nan),
        ("", np.nan),
    ],
)
def test_confidence_is_read_only_where_it_is_stated(response: str, confidence: float) -> None:
    assert metrics.stated_confidence(response) == pytest.approx(confidence, nan_ok=True)
