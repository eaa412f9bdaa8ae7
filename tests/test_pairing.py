"""The rules by hand, on single texts and small panels; `tests/properties` compares with the oracle at large."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from helpers.anchoring import GRADED
from helpers.pairing import (
    ANSWER_FATES,
    PairingRules,
    attrition,
    compare_rules,
    instruction_attrition,
    instruction_pairs,
    make_pairs,
    pair_rows,
    split,
    with_texts,
)

REPRESENT, ERROR = "llm_to_name_100pct", "action_antonym_100pct"
ANCHOR = pd.DataFrame({"sample_id": ["a"], "anchor_score": [4.0], "n_scores": [20], "spread": [0.5]})


def verdicts(scores, dataset=REPRESENT, sample="a"):
    return pd.DataFrame(
        {
            "sample_id": sample,
            "dataset_name": dataset,
            "judge": list(scores),
            "overall_score": pd.array(list(scores.values()), dtype="Float64").astype("float64"),
            "user": f"judge {sample} under {dataset}",
            "text": [f"{judge} says {score}" for judge, score in scores.items()],
        }
    )


def choices(table, judges, anchors=ANCHOR, **rules):
    pairs = make_pairs(table, anchors, judges=judges, rules=PairingRules(**rules))
    return list(zip(pairs["chosen_model"], pairs["rejected_model"], strict=True))


@pytest.mark.parametrize(("dataset", "expected"), [(REPRESENT, ("x", "y")), (ERROR, ("y", "x"))])
def test_represent_chooses_the_higher_score_and_error_the_lower(dataset, expected):
    assert choices(verdicts({"x": 4.0, "y": 3.0}, dataset), ["x", "y"]) == [expected]


@pytest.mark.parametrize(
    ("high", "low", "kept"), [(4.1, 3.6, True), (2.8, 2.3, True), (4.1, 3.61, False), (4.0, 4.0, False)]
)
def test_the_margin_is_exact(high, low, kept):
    assert bool(choices(verdicts({"x": high, "y": low}), ["x", "y"])) == kept


@pytest.mark.parametrize(("score", "kept"), [(2.5, True), (2.4, False)])
def test_a_represent_choice_lies_at_most_1_5_below_the_anchor(score, kept):
    assert bool(choices(verdicts({"x": score, "y": 1.0}), ["x", "y"])) == kept


@pytest.mark.parametrize(("score", "kept"), [(2.0, True), (1.9, False)])
def test_an_error_rejection_lies_at_most_2_below_the_anchor(score, kept):
    assert bool(choices(verdicts({"x": score, "y": 1.0}, ERROR), ["x", "y"])) == kept


def test_the_cap_keeps_the_largest_deltas_and_breaks_ties_by_name():
    # deltas: wz 3, wy 2, xz 2, wx 1, xy 1, yz 1: the last of the ties falls to the cap
    scores = {"z": 2.0, "y": 3.0, "x": 4.0, "w": 5.0}
    found = choices(verdicts(scores), ["z", "x", "y", "w"])
    assert found == [("w", "z"), ("w", "y"), ("x", "z"), ("w", "x"), ("x", "y")]
    assert found == choices(verdicts(scores).iloc[::-1], ["w", "x", "y", "z"])


def test_deltas_that_are_equal_but_for_rounding_are_ties():
    # 4.1 - 3.6 is 0.49999999999999956 in binary and must not fall behind 3.6 - 3.1 by that
    assert choices(verdicts({"a": 4.1, "b": 3.6, "c": 3.1}), ["a", "b", "c"], max_pairs=2) == [("a", "c"), ("a", "b")]


@pytest.mark.parametrize("missing", [None, "no row"])
def test_every_judge_of_the_panel_needs_a_score(missing):
    scores = {"x": 4.0, "y": 3.0} | ({"z": None} if missing is None else {})
    assert choices(verdicts(scores), ["x", "y", "z"]) == []
    assert choices(verdicts(scores), ["x", "y"]) == [("x", "y")]


def test_no_anchor_means_no_pair():
    for anchors in (ANCHOR.assign(anchor_score=np.nan), ANCHOR.assign(sample_id="b"), ANCHOR.assign(n_scores=2)):
        assert choices(verdicts({"x": 4.0, "y": 3.0}), ["x", "y"], anchors, min_scores=3) == []


def test_ids_match_whether_they_are_numbers_or_text():
    table = verdicts({"x": 4.0, "y": 3.0}, sample=7)
    for sample in (7, "7"):
        assert choices(table, ["x", "y"], ANCHOR.assign(sample_id=sample)) == [("x", "y")]
    assert make_pairs(table, ANCHOR.assign(sample_id="7"), judges=["x", "y"])["sample_id"].tolist() == [7]


def test_originals_are_ignored_and_aliases_understood():
    table = pd.concat([verdicts({"x": 4.0, "y": 3.0}, name) for name in ("original", "all_error_injection_5pct")])
    assert make_pairs(table, ANCHOR, judges=["x", "y"])["dataset_name"].tolist() == ["all_error_perturbation_5pct"]


def test_conditions_of_ones_own_need_a_category():
    table = verdicts({"x": 4.0, "y": 3.0}, "translated")
    with pytest.raises(ValueError, match="'translated' is none of the 17 conditions"):
        make_pairs(table, ANCHOR, judges=["x", "y"])
    assert choices(table.assign(perturbation_category="representational"), ["x", "y"]) == [("x", "y")]


def test_conditions_can_be_given_by_type_category_and_rate_alone():
    known = {"perturbation_type": "action_antonym", "perturbation_category": "error", "perturbation_rate": 1.0}
    table = verdicts({"x": 4.0, "y": 3.0}).drop(columns="dataset_name").assign(**known)
    pairs = make_pairs(table, ANCHOR, judges=["x", "y"])
    assert pairs[["dataset_name", *known]].iloc[0].tolist() == [ERROR, *known.values()]


def test_of_repeats_the_first_counts():
    table = pd.concat(
        [verdicts({"x": 3.0, "y": 4.0}).assign(repeat=1), verdicts({"x": 4.0, "y": 3.0}).assign(repeat=0)]
    )
    assert choices(table, ["x", "y"]) == [("x", "y")]


def test_a_second_verdict_is_an_error_that_names_it():
    table = pd.concat([verdicts({"x": 4.0, "y": 3.0}), verdicts({"x": 4.0})], ignore_index=True)
    with pytest.raises(ValueError, match=f"'sample_id': 'a', 'dataset_name': '{REPRESENT}', 'judge': 'x'"):
        make_pairs(table, ANCHOR, judges=["x", "y"])


def test_two_anchors_of_a_sample_are_an_error():
    with pytest.raises(ValueError, match="two anchors for sample 'a'"):
        make_pairs(verdicts({"x": 4.0, "y": 3.0}), pd.concat([ANCHOR, ANCHOR]), judges=["x", "y"])


@pytest.mark.parametrize("judges", [["x"], ["x", "x"], "xy", []])
def test_a_panel_is_two_or_more_different_judges(judges):
    with pytest.raises(ValueError, match="a panel is"):
        make_pairs(verdicts({"x": 4.0, "y": 3.0}), ANCHOR, judges=judges)


def test_a_score_without_a_text_is_an_error():
    table = verdicts({"x": 4.0, "y": 3.0}).assign(text=["x says 4", None])
    with pytest.raises(ValueError, match="judgement 1 has a score but no text"):
        make_pairs(table, ANCHOR, judges=["x", "y"])


def test_repeats_of_the_same_three_texts_are_dropped_and_counted():
    twice = pd.concat([verdicts({"x": 4.0, "y": 3.0}), verdicts({"x": 4.0, "y": 3.0}).assign(sample_id="b")])
    twice["user"] = "the same recipe"
    anchors = pd.concat([ANCHOR, ANCHOR.assign(sample_id="b")])
    pairs = make_pairs(twice, anchors, judges=["x", "y"])
    assert pairs["sample_id"].tolist() == ["a"]
    assert pairs["pair_key"].tolist() == [hashlib.sha256(b"the same recipex says 4.0y says 3.0").hexdigest()]
    assert attrition(twice, anchors, judges=["x", "y"])["duplicate"].tolist() == [1]


def test_of_repeats_the_first_condition_stays_whatever_the_sample():
    table = pd.concat([verdicts({"x": 4.0, "y": 3.0}, GRADED[1]), verdicts({"x": 4.0, "y": 3.0}, GRADED[0], "b")])
    anchors = pd.concat([ANCHOR, ANCHOR.assign(sample_id="b")])
    assert make_pairs(table.assign(user="u"), anchors, judges=["x", "y"])["sample_id"].tolist() == ["b"]


def test_texts_that_only_run_together_are_not_repeats():
    table = pd.concat([verdicts({"x": 4.0, "y": 3.0}), verdicts({"x": 4.0, "y": 3.0}, ERROR)], ignore_index=True)
    table["user"] = "u"
    table["text"] = ["ab", "c", "bc", "a"]
    # u ab c (x over y) and u a bc (y over x) read the same when they are written one after the other
    assert len(make_pairs(table, ANCHOR, judges=["x", "y"])) == 2


def test_positions_stand_for_texts_until_they_are_looked_up():
    table = verdicts({"x": 4.0, "y": 3.0})
    rows = pair_rows(table, ANCHOR, judges=["x", "y"])
    assert rows[["prompt", "chosen", "rejected"]].iloc[0].tolist() == [0, 0, 1]
    texts = with_texts(rows, table)
    assert texts[["chosen", "rejected"]].iloc[0].tolist() == ["x says 4.0", "y says 3.0"]
    kept = make_pairs(table.astype({"user": "category"}), ANCHOR, judges=["x", "y"])
    assert kept["prompt"].dtype == "category"


def test_an_empty_table_gives_an_empty_table_with_the_same_columns():
    full = make_pairs(verdicts({"x": 4.0, "y": 3.0}), ANCHOR, judges=["x", "y"])
    empty = make_pairs(verdicts({"x": 4.0, "y": 3.0}).iloc[:0], ANCHOR, judges=["x", "y"])
    assert list(empty) == list(full)
    assert empty.empty
    assert split(empty).empty


def test_every_candidate_falls_to_the_first_rule_that_takes_it():
    table = pd.concat(
        [
            verdicts({"x": 4.0, "y": 4.0, "z": 3.0}),  # xy equal, two pairs
            verdicts({"x": 2.0, "y": 1.8, "z": 1.0}, ERROR),  # xy below the delta, xz and yz: 2.0 kept, 1.8 not
            verdicts({"x": 4.0, "y": None, "z": 3.0}, GRADED[0]),
            verdicts({"x": 4.0, "y": 3.0, "z": 2.0}, sample="b"),
        ]
    )
    found = attrition(table, ANCHOR, judges=["x", "y", "z"]).set_index("dataset_name")
    assert found.index.tolist() == [GRADED[0], REPRESENT, ERROR]
    assert found.loc[GRADED[0], "incomplete_panel"] == 3
    assert found.loc[REPRESENT, ["candidates", "pairs", "equal", "no_anchor"]].tolist() == [6, 2, 1, 3]
    assert found.loc[ERROR, ["pairs", "below_min_delta", "beyond_tolerance"]].tolist() == [1, 1, 1]


def test_nearest_chooses_the_nearer_score_on_either_side():
    # anchor 4.0: 4.5 is 0.5 off and 3.8 is 0.2 off
    table = verdicts({"x": 4.5, "y": 3.8})
    assert choices(table, ["x", "y"], rule="nearest") == [("y", "x")]
    assert choices(verdicts({"x": 4.5, "y": 3.5}), ["x", "y"], rule="nearest") == []


def test_nearest_wants_an_error_below_the_anchor():
    assert choices(verdicts({"x": 4.5, "y": 4.0}, ERROR), ["x", "y"], rule="nearest") == []
    assert choices(verdicts({"x": 4.5, "y": 3.5}, ERROR), ["x", "y"], rule="nearest") == [("y", "x")]


def test_nearest_leaves_the_condition_out_of_its_own_anchor():
    # the given anchor is 4; without this condition it is 3.5, the median of 3 and 4
    table = pd.concat([verdicts({"x": 4.5, "y": 3.5}, GRADED[0]), verdicts({"x": 3.0, "y": 4.0}, GRADED[1])])
    pairs = make_pairs(table, ANCHOR, judges=["x", "y"], rules=PairingRules(rule="nearest"))
    own = pairs.set_index("dataset_name")
    assert own.loc[GRADED[0], ["anchor_score", "chosen_model"]].tolist() == [3.5, "y"]


def test_unknown_rules_and_empty_caps_are_refused():
    with pytest.raises(ValueError, match="rule is 'best'"):
        PairingRules(rule="best")
    with pytest.raises(ValueError, match="max_pairs is 0"):
        PairingRules(max_pairs=0)


def test_the_rules_are_compared_on_the_same_verdicts():
    table = pd.concat([verdicts({"x": 4.8, "y": 3.8}), verdicts({"x": 4.5, "y": 4.0}, ERROR)])
    published, nearest = (
        make_pairs(table, ANCHOR, judges=["x", "y"], rules=PairingRules(rule=rule)) for rule in ("published", "nearest")
    )
    found = compare_rules(published, nearest).set_index("measure")
    # published chooses 4.8 (0.8 off) before 3.8 (0.2 off), and of the errors 4.0, which is at the anchor
    assert found["published"].tolist() == [2, 1, 1, 1, 1.0, 1.0, 1, 1.0]
    assert found["nearest"].tolist()[:6] == [1, 0, 1, 1, 0.0, 0.0]
    assert np.isnan(found["nearest"].iloc[7])
    assert isinstance(found["published"].iloc[0], int)


COMPLETIONS = pd.DataFrame(
    {
        "item_id": ["i/0", "i/0", "i/1", "i/2", "i/3"],
        "sample_id": "i",
        "dataset_name": "flan",
        "model": ["m", "m", "n", "o", "p"],
        "principle": ["honesty", "honesty", "helpfulness", "helpfulness", "honesty"],
        "judge": ["x", "y", "x", "x", "x"],
        "overall_score": [5.0, 4.0, 3.0, 2.8, None],
        "prompt": "Why?",
        "response": ["Because.", "Because.", "So.", "No.", None],
    }
)


def test_an_instruction_pairs_completions_across_its_anchor():
    # medians 4.5, 3.0, 2.8 around the anchor 3.0: m and n stand at or above it, o below; n and o are 0.2 apart
    anchors = pd.DataFrame({"sample_id": ["i"], "anchor_score": [3.0]})
    found = instruction_pairs(COMPLETIONS, anchors)
    columns = ["prompt", "chosen", "rejected", "chosen_model", "rejected_model", "chosen_principle", "score_delta"]
    assert found[columns].to_numpy().tolist() == [["Why?", "Because.", "No.", "m", "o", "honesty", 1.7]]
    assert len(instruction_pairs(COMPLETIONS, anchors, rules=PairingRules(min_delta=0.1))) == 2
    assert len(instruction_pairs(COMPLETIONS, anchors, rules=PairingRules(min_delta=0.1, max_pairs=1))) == 1
    assert instruction_pairs(COMPLETIONS, anchors.assign(anchor_score=np.nan)).empty
    assert instruction_pairs(COMPLETIONS, anchors, rules=PairingRules(min_scores=2)).empty


def answers_of(sample, scores, dataset="flan", prompt="Why?"):
    """Return one verdict an answer; models are named in the order of the scores."""
    return pd.DataFrame(
        {
            "item_id": [f"{sample}/{n}" for n in range(len(scores))],
            "sample_id": sample,
            "dataset_name": dataset,
            "model": list("mnop")[: len(scores)],
            "judge": "x",
            "overall_score": scores,
            "prompt": prompt,
            "response": [f"answer {n}" for n in range(len(scores))],
        }
    )


def fates_of(table, anchors, **rules):
    """Return what is not 0, as the one row of the attrition."""
    found = instruction_attrition(table, anchors, rules=PairingRules(**rules))
    assert found["pairs"].sum() == len(instruction_pairs(table, anchors, rules=PairingRules(**rules)))
    counts = found.drop(columns="dataset_name")
    assert (counts.drop(columns="candidates").sum(axis=1) == counts["candidates"]).all()
    return {name: n for name, n in counts.sum().items() if n}


def test_every_two_scored_answers_to_an_instruction_have_one_fate():
    # medians 4.5, 3.0, 2.8, none, around 3.0: mn on one side, mo a pair, no 0.2 apart; p has no score
    anchors = pd.DataFrame({"sample_id": ["i"], "anchor_score": [3.0]})
    assert fates_of(COMPLETIONS, anchors) == {"candidates": 3, "same_side": 1, "below_min_delta": 1, "pairs": 1}
    assert fates_of(COMPLETIONS, anchors, min_delta=0.1) == {"candidates": 3, "same_side": 1, "pairs": 2}
    capped = {"candidates": 3, "same_side": 1, "over_cap": 1, "pairs": 1}
    assert fates_of(COMPLETIONS, anchors, min_delta=0.1, max_pairs=1) == capped
    # m alone has two verdicts
    assert fates_of(COMPLETIONS, anchors, min_scores=2) == {"candidates": 3, "too_few_scores": 3}
    for unknown in (anchors.assign(anchor_score=np.nan), anchors.assign(sample_id="j"), anchors.head(0)):
        assert fates_of(COMPLETIONS, unknown) == {"candidates": 3, "no_anchor": 3}


def test_an_answer_at_the_anchor_counts_as_above_it():
    anchors = pd.DataFrame({"sample_id": ["i"], "anchor_score": [3.0]})
    assert fates_of(answers_of("i", [4.0, 3.0]), anchors) == {"candidates": 1, "same_side": 1}
    assert fates_of(answers_of("i", [3.0, 2.5]), anchors) == {"candidates": 1, "pairs": 1}
    assert fates_of(answers_of("i", [2.5, 2.0]), anchors) == {"candidates": 1, "same_side": 1}


def test_the_cap_of_an_instruction_keeps_the_largest_deltas_and_breaks_ties_by_name():
    # around 3: mo 2.0, mp 2.0, no 1.0, np 1.0
    table = answers_of("i", [4.0, 3.0, 2.0, 2.0])
    anchors = pd.DataFrame({"sample_id": ["i"], "anchor_score": [3.0]})
    for rows in (table, table.iloc[::-1]):
        found = instruction_pairs(rows, anchors, rules=PairingRules(max_pairs=3))
        assert found[["chosen_model", "rejected_model"]].to_numpy().tolist() == [["m", "o"], ["m", "p"], ["n", "o"]]
    # mn and op lie on one side each
    assert fates_of(table, anchors, max_pairs=3) == {"candidates": 6, "same_side": 2, "over_cap": 1, "pairs": 3}


def test_the_fates_of_answers_are_counted_by_subset():
    table = pd.concat(
        [
            answers_of("i", [4.0, 2.0]),
            answers_of("j", [4.0, 2.0]),  # the same three texts as i
            answers_of("k", [4.0, 2.0, 1.0], "evol_instruct", "How?"),
            answers_of("l", [4.0], "evol_instruct", "When?"),
            answers_of("m", [None, None], "sharegpt", "Who?"),
        ]
    )
    anchors = pd.DataFrame({"sample_id": list("ijkl"), "anchor_score": 3.0})
    found = instruction_attrition(table, anchors)
    names = ["dataset_name", "candidates", "same_side", "duplicate", "pairs"]
    expected = [["evol_instruct", 3, 1, 0, 2], ["flan", 2, 0, 1, 1], ["sharegpt", 0, 0, 0, 0]]
    assert found[names].to_numpy().tolist() == expected
    assert found.drop(columns=names).to_numpy().sum() == 0
    assert found.columns.tolist()[2:] == list(ANSWER_FATES)
    assert instruction_attrition(table.iloc[::-1], anchors).equals(found)
    pairs = instruction_pairs(table, anchors)
    assert pairs[["sample_id", "dataset_name"]].to_numpy().tolist() == [
        ["i", "flan"],
        ["k", "evol_instruct"],
        ["k", "evol_instruct"],
    ]


def test_no_answers_have_no_fates():
    anchors = pd.DataFrame({"sample_id": ["i"], "anchor_score": [3.0]})
    assert instruction_attrition(COMPLETIONS.head(0), anchors).empty
    assert instruction_pairs(COMPLETIONS.head(0), anchors).empty


def pairs_of(samples, per_sample=4):
    rows = [
        (name, f"prompt {name} {n // 2}", ("error", "represent")[n % 2]) for name in samples for n in range(per_sample)
    ]
    table = pd.DataFrame(rows, columns=["sample_id", "prompt", "perturbation_category"])
    return table.assign(pair_key=[f"{n}" for n in range(len(table))])


def test_a_split_by_sample_takes_its_share_of_each_category():
    pairs = pairs_of([f"s{n}" for n in range(40)])
    sides = split(pairs)
    assert sides.name == "split"
    assert pairs.groupby(sides)["sample_id"].nunique().to_dict() == {"train": 36, "validation": 4}
    assert pairs["perturbation_category"][sides == "validation"].value_counts().tolist() == [8, 8]


def test_a_split_depends_on_the_seed_and_on_nothing_else():
    pairs = pairs_of([f"s{n}" for n in range(40)])
    assert split(pairs, seed=0).equals(split(pairs, seed=0))
    assert not split(pairs, seed=0).equals(split(pairs, seed=1))
    code = "from tests.test_pairing import *; print(list(split(pairs_of([f's{n}' for n in range(40)]))))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert outputs == {f"{list(split(pairs))}\n".encode()}


@pytest.mark.parametrize("samples", [["a", "b"], ["a", "b", "c"]])
def test_a_few_samples_still_give_both_sides(samples):
    assert set(split(pairs_of(samples))) == {"train", "validation"}


def test_one_sample_and_no_fraction_give_train_alone():
    assert set(split(pairs_of(["a"]))) == {"train"}
    assert set(split(pairs_of(["a", "b"]), validation_fraction=0)) == {"train"}


RECIPE = (
    "Mix {powder} with ethanol in a mortar, dry the slurry at 80 °C overnight, press it into pellets, heat them at "
    "{degrees} °C for 12 h in flowing oxygen; cool slowly, grind again, check the phase by X-ray diffraction before "
    "the second firing, which takes another 24 h in the same furnace with the same gas."
)


def test_near_copies_of_a_recipe_stay_together():
    words = [f"powder{n} made of metal{n} oxide{n} washed with acid{n} and stored over salt{n}" for n in range(20)]
    pairs = pd.DataFrame({"sample_id": [f"s{n:02d}" for n in range(20)], "prompt": words})
    pairs.loc[3, "prompt"] = RECIPE.format(powder="La2O3", degrees=900)
    pairs.loc[11, "prompt"] = RECIPE.format(powder="La2O3", degrees=950).upper().replace(" ", "  ")
    for seed in range(25):
        sides = split(pairs, validation_fraction=0.3, seed=seed)
        assert sides[3] == sides[11]


def test_wording_that_all_recipes_share_does_not_tie_them_together():
    pairs = pd.DataFrame({"sample_id": [f"s{n}" for n in range(20)]})
    pairs["prompt"] = [RECIPE.format(powder=f"Powder{n}", degrees=n) for n in range(20)]
    assert split(pairs).value_counts().to_dict() == {"train": 18, "validation": 2}


def test_a_split_by_row_is_the_published_share_of_each_category():
    pairs = pairs_of([f"s{n}" for n in range(63)]).iloc[:-1]
    sides = split(pairs, by="row")
    # 251 rows: a tenth, rounded up, is 26; of 126 error and 125 represent rows
    assert pairs["perturbation_category"][sides == "validation"].value_counts().tolist() == [13, 13]
    shuffled = pairs.sample(frac=1, random_state=0)
    assert split(shuffled, by="row").sort_index().equals(sides)
    assert split(pairs.drop(columns="pair_key"), by="row").value_counts()["validation"] == 26


def test_impossible_splits_are_refused():
    with pytest.raises(ValueError, match="by is 'prompt'"):
        split(pairs_of(["a"]), by="prompt")
    with pytest.raises(ValueError, match="validation_fraction is 1"):
        split(pairs_of(["a"]), validation_fraction=1)
