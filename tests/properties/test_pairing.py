"""The vectorised rule equals the plain one, whatever the scores, gaps, copies and order."""

from __future__ import annotations

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.anchoring import anchor_scores
from helpers.pairing import PairingRules, attrition, make_pairs, split
from tests import oracle

JUDGES = ["delta", "alpha", "charlie", "bravo"]
SCORES = st.one_of(
    st.none(),
    st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0]),
    st.sampled_from([2.3, 1.8, 4.1, 3.6, 3.61]),
)
CONDITIONS = [oracle.GRADED[0], oracle.GRADED[1], "llm_to_name_100pct", "element_substitution_100pct"]
CELLS = [(sample, name, judge) for sample in range(4) for name in [*CONDITIONS, "original"] for judge in JUDGES]


@st.composite
def judgements(draw: st.DrawFn) -> pd.DataFrame:
    """Draw a table in which samples 2 and 3 are copies of one recipe and judges may repeat themselves."""
    rows = []
    for sample, name, judge in CELLS:
        if draw(st.integers(0, 9)):
            score = draw(SCORES)
            wording = draw(st.sampled_from(["", f" {judge}", f" {judge} {name}"]))
            user = f"recipe {min(sample, 2)} under {'1pct' if draw(st.booleans()) else name}"
            rows.append((sample, name, judge, score, user, f"overall {score}{wording}"))
    columns = ["sample_id", "dataset_name", "judge", "overall_score", "user", "text"]
    table = pd.DataFrame(rows, columns=columns).astype({"overall_score": "float64"})
    table["user"] = table.groupby(["sample_id", "dataset_name"])["user"].transform("first")
    if draw(st.booleans()):
        table = pd.concat([table[table["sample_id"] != 3], table[table["sample_id"] == 2].assign(sample_id=3)])
    return table.iloc[draw(st.permutations(range(len(table))))]


def plain(table: pd.DataFrame) -> list[dict[str, object]]:
    return table.astype(object).where(table.notna(), None).to_dict("records")


@settings(max_examples=80, deadline=None)
@given(judgements(), st.permutations(JUDGES), st.integers(1, 6))
def test_the_published_rule_equals_the_oracle_row_for_row(table, judges, max_pairs):
    found = make_pairs(table, anchor_scores(table), judges=judges, rules=PairingRules(max_pairs=max_pairs))
    expected = oracle.pairs(plain(table), judges, max_pairs)
    columns = list(expected[0]) if expected else []
    by_key = {tuple(row[name] for name in columns[:2] + columns[-2:]): row for row in expected}
    rows = found[columns].to_dict("records")
    assert [by_key[tuple(row[name] for name in columns[:2] + columns[-2:])] for row in rows] == rows
    assert len(found) == len(expected)


@settings(max_examples=25, deadline=None)
@given(judgements(), st.sampled_from(["published", "nearest"]))
def test_the_order_of_rows_and_judges_changes_nothing(table, rule):
    ordered = table.sort_values(["sample_id", "dataset_name", "judge"])
    rules = PairingRules(rule=rule)
    one = make_pairs(table, anchor_scores(table), judges=JUDGES, rules=rules)
    other = make_pairs(ordered, anchor_scores(ordered), judges=sorted(JUDGES), rules=rules)
    pd.testing.assert_frame_equal(one, other)


@settings(max_examples=25, deadline=None)
@given(judgements(), st.sampled_from(["published", "nearest"]))
def test_every_candidate_has_one_fate(table, rule):
    rules = PairingRules(rule=rule)
    anchors = anchor_scores(table)
    flow = attrition(table, anchors, judges=JUDGES, rules=rules)
    assert (flow.iloc[:, 3:].sum(axis=1) == flow["candidates"]).all()
    assert flow["pairs"].sum() == len(make_pairs(table, anchors, judges=JUDGES, rules=rules))


@settings(max_examples=25, deadline=None)
@given(judgements())
def test_nearest_pairs_choose_the_nearer_score_and_errors_below_the_anchor(table):
    pairs = make_pairs(table, anchor_scores(table), judges=JUDGES, rules=PairingRules(rule="nearest"))
    off_chosen = (pairs["score_chosen"] - pairs["anchor_score"]).abs()
    off_rejected = (pairs["score_rejected"] - pairs["anchor_score"]).abs()
    represent = pairs["perturbation_category"] == "represent"
    assert (off_chosen < off_rejected)[represent].all()
    assert (pairs["score_chosen"] < pairs["anchor_score"])[~represent].all()


@settings(max_examples=25, deadline=None)
@given(judgements(), st.randoms(use_true_random=False))
def test_no_sample_and_no_prompt_crosses_a_split_and_row_order_changes_nothing(table, random):
    pairs = make_pairs(table, anchor_scores(table), judges=JUDGES)
    sides = split(pairs, validation_fraction=0.3)
    for name in ("sample_id", "prompt"):
        assert (
            sides.groupby(pairs[name]).nunique().max() in (1, *([float("nan")] if pairs.empty else [])) or pairs.empty
        )
    order = random.sample(range(len(pairs)), len(pairs))
    shuffled = pairs.iloc[order]
    assert split(shuffled, validation_fraction=0.3).sort_index().equals(sides)
