"""Anchors by hand: five conditions, a few scores."""

from __future__ import annotations

import pandas as pd
import pytest

from helpers.anchoring import GRADED, anchor_scores, condition_names, instruction_anchors, leave_one_out


def verdicts(*rows):
    return pd.DataFrame(rows, columns=["sample_id", "dataset_name", "judge", "overall_score"])


def test_the_anchor_is_the_median_over_judges_and_graded_conditions():
    table = verdicts(
        ("a", GRADED[0], "x", 3.0),
        ("a", GRADED[0], "y", 4.0),
        ("a", GRADED[4], "x", 4.5),
        ("a", "llm_to_name_100pct", "x", 1.0),
        ("a", "original", "x", 1.0),
    )
    found = anchor_scores(table)
    # sorted 3, 4, 4.5: median 4; quartiles 3.5 and 4.25
    assert found.to_dict("records") == [{"sample_id": "a", "anchor_score": 4.0, "n_scores": 3, "spread": 0.75}]


def test_the_published_aliases_count():
    table = verdicts(("a", "all_equivalence_rewriting_1pct", "x", 2.0), ("a", GRADED[1], "x", 4.0))
    assert anchor_scores(table)["anchor_score"].tolist() == [3.0]


def test_a_missing_score_is_left_out_and_counted():
    found = anchor_scores(verdicts(("a", GRADED[0], "x", None), ("a", GRADED[0], "y", 4.0)))
    assert found[["anchor_score", "n_scores"]].to_numpy().tolist() == [[4.0, 1]]


def test_too_few_scores_leave_a_row_without_an_anchor():
    table = verdicts(("a", GRADED[0], "x", 4.0), ("b", "original", "x", 4.0), ("b", GRADED[0], "x", None))
    found = anchor_scores(table, min_scores=2)
    assert found["anchor_score"].isna().all()
    assert found["n_scores"].tolist() == [1, 0]


def test_an_empty_table_has_no_anchors():
    found = anchor_scores(verdicts())
    assert list(found) == ["sample_id", "anchor_score", "n_scores", "spread"]
    assert found.empty


def test_two_verdicts_of_one_judge_on_one_text_are_an_error():
    with pytest.raises(ValueError, match=r"two verdicts on the same text.*'judge': 'x'"):
        anchor_scores(verdicts(("a", GRADED[0], "x", 4.0), ("a", GRADED[0], "x", 3.0)))


def test_repeats_count_like_further_scores():
    table = verdicts(("a", GRADED[0], "x", 4.0), ("a", GRADED[0], "x", 3.0)).assign(repeat=[0, 1])
    assert anchor_scores(table)["anchor_score"].tolist() == [3.5]


def test_row_order_and_id_type_change_nothing():
    table = verdicts((10, GRADED[0], "x", 4.0), (9, GRADED[0], "x", 3.0), (9, GRADED[1], "x", 2.0))
    assert anchor_scores(table)["sample_id"].tolist() == [9, 10]
    assert anchor_scores(table).equals(anchor_scores(table.iloc[::-1]))


def test_conditions_are_read_from_type_and_rate():
    table = pd.DataFrame(
        {
            "perturbation_type": ["llm_representational", "all_equivalence_rewriting", "action_antonym", None],
            "perturbation_rate": [0.05, 0.1, 1.0, None],
        }
    )
    assert condition_names(table).tolist() == [GRADED[2], GRADED[3], "action_antonym_100pct", "original"]


def test_a_row_without_condition_is_an_error():
    with pytest.raises(ValueError, match="judgement 1 has no dataset_name"):
        condition_names(pd.DataFrame({"dataset_name": ["original", None]}))


def test_min_scores_below_one_is_refused():
    with pytest.raises(ValueError, match="min_scores is 0"):
        anchor_scores(verdicts(), min_scores=0)


def test_leave_one_out_leaves_out_the_condition_being_paired():
    table = verdicts(("a", GRADED[0], "x", 1.0), ("a", GRADED[1], "x", 3.0), ("a", GRADED[2], "x", 5.0))
    found = leave_one_out(table).set_index("dataset_name")["anchor_score"]
    # without 1: median of 3 and 5; without 3: of 1 and 5; without 5: of 1 and 3; else of all three
    assert found.tolist() == [4.0, 3.0, 2.0, 3.0, 3.0]


def test_an_instruction_is_anchored_over_completions_and_judges():
    table = pd.DataFrame(
        {
            "sample_id": ["i", "i", "i", "j"],
            "item_id": ["i/0", "i/0", "i/1", "j/0"],
            "judge": ["x", "y", "x", "x"],
            "overall_score": [2.0, 3.0, 5.0, None],
        }
    )
    found = instruction_anchors(table)
    assert found["n_scores"].tolist() == [3, 0]
    assert found["anchor_score"].iloc[0] == 3.0
