import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from helpers import principles
from helpers.principles import mixes, multinomial

H, T, HO, VC = principles.PRINCIPLES
SHARES = {  # helpfulness, truthfulness, honesty, verbalized_calibration: weights, then 1 of 10 honest draws turned
    ("sharegpt", "code"): (0.6, 0.2, 0.18, 0.02),
    ("ultrachat", "code"): (0.6, 0.2, 0.18, 0.02),
    ("flan", "code"): (0.8, 0, 0, 0.2),
    ("evol_instruct", "code"): (1, 0, 0, 0),
    ("truthful_qa", "code"): (0, 0.5, 0.45, 0.05),
    ("false_qa", "code"): (0, 0.5, 0.45, 0.05),
    ("sharegpt", "readme"): (0.6, 0.2, 0.18, 0.02),
    ("ultrachat", "readme"): (0.6, 0.2, 0.18, 0.02),
    ("flan", "readme"): (0.6, 0.2, 0, 0.2),
    ("evol_instruct", "readme"): (1, 0, 0, 0),
    ("truthful_qa", "readme"): (0, 1, 0, 0),
    ("false_qa", "readme"): (0, 1, 0, 0),
}
cases = pytest.mark.parametrize(("subset", "mix"), SHARES)


def names(n):
    return [f"id-{i}" for i in range(n)]


@cases
def test_expected_shares_are_the_declared_ones(subset, mix):
    assert principles.expected(subset, mix) == dict(zip(principles.PRINCIPLES, SHARES[subset, mix], strict=True))


@cases
def test_100000_draws_lie_within_three_standard_errors(subset, mix):
    n = 100_000
    drawn = principles.draw([subset] * n, names(n), [0] * n, seed=42, mix=mix)
    for principle, share in zip(principles.PRINCIPLES, SHARES[subset, mix], strict=True):
        assert abs((drawn == principle).mean() - share) <= 3 * np.sqrt(share * (1 - share) / n)


def test_the_switch_is_a_second_step_that_only_touches_honesty():
    n = 100_000
    steps = principles.draw_steps(["sharegpt"] * n, names(n), [3] * n, seed=1)
    assert set(steps["first"]) == {H, T, HO}
    assert set(steps.loc[steps["switched"], "first"]) == {HO}
    assert set(steps.loc[steps["switched"], "principle"]) == {VC}
    assert (steps["principle"] == steps["first"])[~steps["switched"]].all()
    assert steps.loc[steps["first"] == HO, "switched"].mean() == pytest.approx(0.1, abs=0.007)  # 3 s.e. at 20,000


def test_draw_and_draw_steps_agree():
    rows = ["sharegpt", "flan", "false_qa"] * 40, names(120), list(range(120))
    assert (principles.draw(*rows, seed=5) == principles.draw_steps(*rows, seed=5)["principle"]).all()


def test_every_slot_beyond_the_fourth_has_a_draw_of_its_own():
    n = 20_000
    steps = [principles.draw_steps(["sharegpt"] * n, names(n), [s] * n, seed=0)["prompt_index"] for s in range(9)]
    for one in range(9):
        for other in range(one):
            assert (steps[one] == steps[other]).mean() == pytest.approx(1 / 12, abs=0.02)


def test_prompts_are_drawn_evenly_and_independently_of_the_principle():
    n = 120_000
    steps = principles.draw_steps(["ultrachat"] * n, names(n), [1] * n, seed=3)
    for principle, group in steps.groupby("principle"):
        counts = group["prompt_index"].value_counts()
        assert len(counts) == len(principles.prompts(principle))
        assert multinomial.fit(counts.to_numpy(), np.full(len(counts), 1 / len(counts))).p_value > 0.001


def test_the_stored_prompt_is_the_one_of_its_index():
    steps = principles.draw_steps(["flan"] * 50, names(50), [0] * 50, seed=8)
    for row in steps.itertuples():
        assert row.system_prompt == principles.prompts(row.principle)[row.prompt_index]


def test_same_draws_in_two_processes_with_different_hash_seeds():
    code = (
        "from helpers import principles as p; n = 500;"
        "s = ['sharegpt', 'false_qa'] * n; i = [f'id-{k}' for k in range(2 * n)];"
        "print(p.draw(s, i, [0, 5] * n, seed=0).tolist(), p.draw_models(i, 'abcde', 3, seed=0).tolist())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != b""


def test_draws_are_pinned():
    # Other values here would mean that every run ever published draws otherwise.
    steps = principles.draw_steps(["false_qa"] * 6, ["a", "a", "a", "a", "a", "é"], [0, 1, 2, 3, 4, 0], seed=42)
    assert steps["principle"].tolist() == [HO, T, VC, T, HO, HO]
    assert steps["prompt_index"].tolist() == [11, 2, 9, 9, 1, 2]


def test_an_unknown_subset_is_an_error_that_names_it_and_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown subset 'alpaca'.*sharegpt, ultrachat, flan"):
        principles.draw(["flan", "alpaca"], ["a", "b"], [0, 0], seed=0)
    with pytest.raises(ValueError, match="unknown subset 'alpaca'"):
        principles.expected("alpaca")


def test_an_unknown_subset_may_draw_helpfulness_when_asked():
    drawn = principles.draw(["alpaca"] * 9, names(9), [0] * 9, seed=0, unknown_subset="helpfulness")
    assert set(drawn) == {H}
    assert principles.expected("alpaca", unknown_subset="helpfulness")[H] == 1


def test_seeds_from_zero_on_differ_and_negative_ones_are_refused():
    rows = ["sharegpt"] * 200, names(200), [0] * 200
    zero, one = (principles.draw(*rows, seed=seed).tolist() for seed in (0, 1))
    assert zero == principles.draw(*rows, seed=0).tolist()
    assert zero != one != principles.draw(*rows, seed=2**200).tolist()
    with pytest.raises(ValueError, match="seed must be a whole number from 0, not -1"):
        principles.draw(*rows, seed=-1)


def test_no_rows_give_no_draws():
    assert principles.draw([], [], [], seed=0).tolist() == []
    assert principles.draw_steps([], [], [], seed=0).empty


def test_lengths_that_differ_are_an_error():
    with pytest.raises(ValueError, match="2 subsets and 1 ids"):
        principles.draw(["flan", "flan"], ["a"], [0], seed=0)
    with pytest.raises(ValueError, match="1 ids and 2 slots"):
        principles.draw(["flan"], ["a"], [0, 1], seed=0)


def test_whole_number_ids_draw_like_their_digits_and_other_ids_are_refused():
    big = 2**53 + 1
    number, text = (principles.draw_steps(["flan"] * 2, [x, "b"], [0, 0], seed=0) for x in (big, str(big)))
    pd.testing.assert_frame_equal(number, text)
    with pytest.raises(TypeError):
        principles.draw(["flan"], [1.0], [0], seed=0)


@pytest.mark.parametrize("principle", principles.PRINCIPLES)
def test_each_pool_holds_at_least_eleven_different_prompts(principle):
    assert len(set(principles.prompts(principle))) == len(principles.prompts(principle)) >= 11


def test_only_calibration_prompts_ask_for_a_stated_confidence():
    for principle in principles.PRINCIPLES:
        for prompt in principles.prompts(principle):
            assert ("Confidence: " in prompt) == (principle == VC)


def test_models_are_drawn_without_replacement_whatever_the_order_of_the_pool():
    drawn = principles.draw_models(names(3000), ["a", "b", "c", "d", "e"], 4, seed=0)
    assert all(len(set(row)) == 4 for row in drawn.tolist())
    assert (drawn == principles.draw_models(names(3000), ["e", "c", "a", "d", "b"], 4, seed=0)).all()
    for name in "abcde":  # each is in 4 of 5 draws: 2,400, three standard errors are 66
        assert abs((drawn == name).sum() - 2400) < 66


def test_a_model_more_in_the_pool_only_enters_the_draws_it_wins():
    few, more = (principles.draw_models(names(500), pool, 2, seed=0) for pool in ("abc", "abcd"))
    without = ~(more == "d").any(axis=1)
    assert (few[without] == more[without]).all()


def test_a_pool_that_is_too_small_or_repeats_a_name_is_an_error():
    with pytest.raises(ValueError, match="cannot draw 4 different models from a pool of 2: a, b"):
        principles.draw_models(["x"], ["a", "b"], 4, seed=0)
    with pytest.raises(ValueError, match="a, a"):
        principles.draw_models(["x"], ["a", "a"], 1, seed=0)


# The audit


def drawn(**counts):
    rows = [(subset, principle) for subset, row in counts.items() for principle, n in row.items() for _ in range(n)]
    return pd.DataFrame(rows, columns=["subset", "principle"])


def test_audit_compares_counts_with_exact_shares():
    table = principles.audit(drawn(flan={H: 70, VC: 30})).set_index("principle")
    assert table["observed"].to_dict() == {H: 70, T: 0, HO: 0, VC: 30}
    assert table["expected_share"].to_dict() == {H: 0.8, T: 0.0, HO: 0.0, VC: 0.2}
    assert table["tv_distance"].tolist() == pytest.approx([0.1] * 4)  # (|.7 - .8| + |.3 - .2|) / 2
    assert set(table["test"]) == {"chi-square"}
    assert table["p_value"].iloc[0] == pytest.approx(0.0124193, abs=1e-7)  # chi2 = 10²/80 + 10²/20 = 6.25, 1 df
    assert table.loc[H, ["low", "high"]].tolist() == pytest.approx([0.6042, 0.7810], abs=1e-4)  # Wilson, 70 of 100
    assert not table["violation"].any()


def test_audit_marks_a_draw_of_a_zero_share_principle():
    table = principles.audit(drawn(flan={H: 80, VC: 19, T: 1})).set_index("principle")
    assert table.index[table["violation"]].tolist() == [T]
    assert set(table["test"]) == {"impossible"}
    assert set(table["p_value"]) == {0.0}


def test_audit_of_a_real_draw_in_every_subset_finds_nothing():
    subsets = np.repeat(principles.subsets(), 400)
    steps = principles.draw_steps(subsets, names(2400), [0] * 2400, seed=42)
    table = principles.audit(steps)
    assert table["subset"].unique().tolist() == list(principles.subsets())
    assert (table["p_value"] > 0.001).all()
    assert not table["violation"].any()
    pd.testing.assert_frame_equal(table, principles.audit(steps.sample(frac=1, random_state=1), "code").pipe(sort))


def sort(table):
    order = {name: place for place, name in enumerate(principles.subsets())}
    return table.sort_values("subset", key=lambda s: s.map(order), kind="stable", ignore_index=True)


def test_audit_refuses_a_name_that_is_no_principle():
    with pytest.raises(ValueError, match="column 'principle' must hold"):
        principles.audit(drawn(flan={"harmlessness": 1}))


def test_exact_multinomial_by_hand():
    # Three outcomes of n = 2 with shares 1/4, 3/4: 1/16, 6/16, 9/16. As unlikely as (1, 1): 1/16 + 6/16.
    assert multinomial.fit(np.array([1, 1]), np.array([0.25, 0.75])) == ("exact multinomial", pytest.approx(7 / 16))
    assert multinomial.fit(np.array([0, 2]), np.array([0.25, 0.75])) == ("exact multinomial", pytest.approx(1.0))


def test_exact_multinomial_agrees_with_the_binomial_test():
    from scipy.stats import binomtest

    for k in range(13):
        fit = multinomial.fit(np.array([k, 12 - k]), np.array([0.3, 0.7]))
        assert fit.p_value == pytest.approx(binomtest(k, 12, 0.3).pvalue)


def test_too_many_outcomes_are_simulated_and_always_alike():
    counts, shares = np.array([150, 50, 47, 3]), np.array([0.6, 0.2, 0.19, 0.01])  # 250 × 0.01 = 2.5 < 5
    first, second = multinomial.fit(counts, shares), multinomial.fit(counts, shares)
    assert first == second
    assert first.test == "simulated multinomial"
    assert 0.5 < first.p_value <= 1


def test_a_single_possible_principle_is_certain():
    assert multinomial.fit(np.array([9, 0]), np.array([1.0, 0.0])) == ("certain", 1.0)


# Mixes of one's own


def write(tmp_path, text):
    path = tmp_path / "mix.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_mix_of_ones_own_is_drawn_from(tmp_path):
    mix = write(tmp_path, "subsets:\n  alloys: {truthfulness: 1, honesty: 3}\n")
    assert principles.expected("alloys", mix) == {H: 0, T: 0.25, HO: 0.75, VC: 0}
    assert set(principles.draw(["alloys"] * 50, names(50), [0] * 50, seed=0, mix=mix)) == {T, HO}


def test_a_switch_of_ones_own_is_applied(tmp_path):
    mix = write(
        tmp_path,
        "switch: {from: helpfulness, to: truthfulness, weight: 1, of: 4}\nsubsets: {x: {helpfulness: 1, honesty: 1}}\n",
    )
    assert principles.expected("x", mix) == {H: 0.375, T: 0.125, HO: 0.5, VC: 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("subsets: {x: {kindness: 1}}", "subset 'x': 'kindness' is not known"),
        ("subsets: {x: {honesty: -1}}", "subset 'x', honesty: '-1' is no weight"),
        ("subsets: {x: {honesty: 0.5}}", "subset 'x', honesty: '0.5' is no weight"),
        ("subsets: {x: {honesty: 0}}", "subset 'x': the weights sum to 0"),
        ("subsets: {x: {honesty: 10001}}", "subset 'x': the weights sum to 10001"),
        ("subsets: {x: 3}", "subset 'x': must hold 'name: value' pairs"),
        ("subset: {x: {honesty: 1}}", "'subset' is not known"),
        ("{}", "has no subsets"),
        ("switch: {from: honesty, to: hope, weight: 1, of: 2}\nsubsets: {x: {honesty: 1}}", "'hope' is no principle"),
        ("switch: {from: honesty, to: truthfulness, weight: 3, of: 2}\nsubsets: {x: {honesty: 1}}", "3 of 2"),
        ("switch: {from: honesty, weight: 3, of: 2}\nsubsets: {x: {honesty: 1}}", "lacks to"),
    ],
)
def test_a_mix_that_cannot_be_drawn_from_is_an_error(tmp_path, text, message):
    with pytest.raises(mixes.MixError, match=message):
        principles.subsets(write(tmp_path, text))


def test_a_mix_that_is_nowhere_is_an_error():
    with pytest.raises(mixes.MixError, match=r"no mix 'cod': it is neither code nor readme"):
        principles.subsets("cod")
