"""The seventeen conditions: names, budgets, nesting, the recorded cases, and independence of order and process."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from helpers import perturbations
from helpers.perturbations import CONDITIONS, KINDS, Edit, edit, perturb, rates, revert
from helpers.perturbations.edits import apply
from helpers.perturbations.rates import tokens, vanished

FOLDER = Path(__file__).parent / "cases"
CASES = [
    case
    for name in ("recipes.json", "recipes_own.json")
    for case in json.loads((FOLDER / name).read_text("utf-8"))["cases"]
]
OURS = {
    "numeric_change": ("numerical_perturbation",),
    "equipment_substitution": ("equipment_substitution",),
    "action_antonym": ("action_antonym",),
    "element_substitution": ("element_substitution",),
    "representation_rewrite": ("to_formula", "to_name", "to_iupac"),
}
RECIPE = """## Materials
- TiO2 (99.9 %), 0.80 g (10 mmol)
- BaCO3, 1.97 g (10 mmol)

## Equipment
- agate mortar
- furnace

## Procedure
1. Mix TiO2 and BaCO3 in the agate mortar for 30 min.
2. Heat at 1100 °C for 12 h in the furnace, then cool at 5 °C/min.
3. Dry and weigh the BaTiO3 powder."""
GRADED_ERRORS = [name for name in CONDITIONS if name.startswith("all_error")]
GRADED_NAMINGS = [name for name in CONDITIONS if name.startswith("llm_repr")]


def spans(text: str, phrases: list[str]) -> list[tuple[int, int]]:
    """Return where the phrases stand as whole words."""
    return [m.span() for phrase in phrases for m in re.finditer(rf"(?<!\w){re.escape(phrase)}(?!\w)", text)]


@pytest.mark.parametrize("ours", OURS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_a_recorded_case_changes_only_what_it_may(case: dict[str, Any], ours: str):
    text, may = case["text"], spans(case["text"], case["may"][ours])
    applicable = False
    for kind in OURS[ours]:
        for seed in range(200):
            result = edit(text, kind, seed=seed, sample_id=case["id"])
            applicable |= result.applicable
            assert result.applicable is (result.text != text) is bool(result.changes)
            assert all(any(a <= e.start and e.end <= b for a, b in may) for e in result.changes)
            assert all(phrase in result.text for phrase in case["never"][ours])
            assert revert(result.text, result.changes) == text
    assert may or not applicable


def test_the_conditions_are_the_seventeen_in_order():
    assert list(CONDITIONS) == [
        *(f"all_error_perturbation_{n}pct" for n in (1, 2, 5, 10, 15)),
        *(f"{kind}_100pct" for kind in KINDS[:4]),
        *(f"llm_representational_perturbation_{n}pct" for n in (1, 2, 5, 10, 15)),
        *(f"llm_{kind}_100pct" for kind in KINDS[4:]),
    ]
    assert [c.category for c in CONDITIONS.values()] == ["error"] * 9 + ["represent"] * 8
    assert CONDITIONS["all_error_perturbation_5pct"] == ("all_error", "error", 0.05)
    assert CONDITIONS["llm_to_iupac_100pct"] == ("llm_to_iupac", "represent", 1.0)


def test_published_aliases_give_the_same_text():
    for alias, name in [
        ("all_error_injection_15pct", "all_error_perturbation_15pct"),
        ("all_equivalence_rewriting_2pct", "llm_representational_perturbation_2pct"),
    ]:
        assert perturb(RECIPE, alias, seed=1, sample_id="a") == perturb(RECIPE, name, seed=1, sample_id="a")


def test_an_unknown_name_is_an_error_that_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'all_errors' is no condition; use one of original, all_error_pert"):
        perturb(RECIPE, "all_errors", seed=1, sample_id="a")
    with pytest.raises(ValueError, match=r"'antonym' is no kind of edit; use one of element_substitution"):
        edit(RECIPE, "antonym", seed=1, sample_id="a")


def test_the_original_is_itself():
    result = perturb(RECIPE, "original", seed=1, sample_id="a")
    assert (result.text, result.changes, result.rate_actual, result.applicable) == (RECIPE, (), 0.0, True)


@pytest.mark.parametrize("text", ["", "No chemistry here, only words."])
def test_a_text_with_nothing_to_edit_is_not_applicable(text):
    for name in CONDITIONS:
        result = perturb(text, name, seed=1, sample_id="a")
        assert (result.text, result.changes, result.applicable, result.rate_actual) == (text, (), False, 0.0)


@pytest.mark.parametrize("names", [GRADED_ERRORS, GRADED_NAMINGS], ids=["error", "represent"])
@pytest.mark.parametrize("seed", range(5))
def test_a_higher_rate_contains_the_lower_one(names, seed):
    made = [set(perturb(RECIPE, name, seed=seed, sample_id="a").changes) for name in names]
    assert made[0]
    assert all(low <= high for low, high in itertools.pairwise(made))
    assert len(made[-1]) > len(made[0])


def test_the_budget_is_the_share_of_distinct_tokens_and_is_met():
    # 18 distinct tokens: 15 % are 2.7, so 3 have to go; each edit of this text removes one.
    text = "Mix, dry, stir, heat, cool, dissolve: a b c d e f g h i j k l"
    result = perturb(text, "all_error_perturbation_15pct", seed=0, sample_id="a")
    assert (result.budget, len(result.changes), result.rate_actual) == (3, 3, 3 / 18)


def test_a_short_text_says_which_rate_it_reached():
    result = perturb(
        "Stir the water and the salt and the rest of it all", "all_error_perturbation_15pct", seed=0, sample_id="a"
    )
    assert result.rate_requested == 0.15
    assert result.rate_actual == 1 / 9  # the, water, and, salt, rest, of, it, all, stir: only the verb is gone
    assert len(result.changes) == 1


def test_the_words_that_vanish_are_counted_as_if_the_whole_text_were_read_again():
    for kind in KINDS:
        made = edit(RECIPE, kind, seed=2, sample_id="a").changes
        prefixes = [apply(RECIPE, made[: n + 1]) for n in range(len(made))]
        assert list(vanished(RECIPE, [[change] for change in made])) == [
            len(tokens(RECIPE) - tokens(text)) for text in prefixes
        ]


def test_two_edits_inside_one_word_are_counted_together():
    edits = [Edit(0, 1, "5", "7", "x"), Edit(1, 2, "h", "s", "x"), Edit(3, 5, "5h", "7s", "x")]
    assert list(vanished("5h 5h", [[edit] for edit in edits])) == [0, 0, 1]


def test_twice_the_edits_are_twice_the_work(monkeypatch):
    def work(count: int) -> int:
        """Return how many characters are read to count the words that vanish."""
        lengths: list[int] = []

        def counted(text: str, changes: Iterable[Edit]) -> str:
            lengths.append(len(text))
            return apply(text, changes)

        monkeypatch.setattr(rates, "apply", counted)
        text = " ".join(f"{n} mL" for n in range(1000, 1000 + count))
        steps = [[Edit(8 * n, 8 * n + 7, text[8 * n : 8 * n + 7], "9 L", "x")] for n in range(count)]
        assert list(vanished(text, steps))[-1] == count + 1  # each number, and "mL"
        return sum(lengths)

    assert work(2000) == 2 * work(1000)


LONG = ("1", "₂", "\n", " ", "(", "1,", "10, ", "TiO2-", "5% ", "the ", "- ")


@pytest.mark.parametrize("piece", LONG)
def test_ten_times_the_text_is_not_a_hundred_times_the_work(piece):
    def seconds(length: int) -> float:
        start = time.process_time()
        for kind in KINDS:
            edit(piece * (length // len(piece)), kind, seed=0, sample_id="a")
        return time.process_time() - start

    assert seconds(20_000) < 50 * max(seconds(2_000), 0.002)


def test_edits_of_one_entity_are_made_together_or_not_at_all():
    for seed in range(20):
        for name in GRADED_ERRORS:
            made = perturb(RECIPE, name, seed=seed, sample_id="a").changes
            every = {kind: edit(RECIPE, kind, seed=seed, sample_id="a").changes for kind in KINDS[:4]}
            for change in made:
                tied = [e for e in every[change.kind] if e.entity == change.entity != ""]
                assert all(e in made for e in tied)


def test_the_kinds_take_turns():
    made = perturb(RECIPE, "all_error_perturbation_10pct", seed=3, sample_id="a").changes
    assert len({change.kind for change in made}) >= min(len(made), 3)


def test_another_seed_or_sample_gives_another_draw():
    texts = {perturb(RECIPE, "numerical_perturbation_100pct", seed=s, sample_id=i).text for s in (1, 2) for i in "ab"}
    assert len(texts) == 4


def test_every_edit_fits_the_text_and_says_why():
    for name in CONDITIONS:
        for change in perturb(RECIPE, name, seed=7, sample_id="a").changes:
            assert isinstance(change, Edit)
            assert RECIPE[change.start : change.end] == change.old != change.new
            assert change.why


def digest() -> str:
    names = sorted(CONDITIONS, key=len)
    return "\n".join(f"{n} {perturb(RECIPE, n, seed=5, sample_id=i).text}" for i in ("b", "a") for n in names)


@pytest.mark.parametrize("hash_seed", ["0", "1", "2"])
def test_neither_order_nor_process_matters(hash_seed):
    for name in reversed(CONDITIONS):  # another order fills the caches in another order
        perturb(RECIPE, name, seed=5, sample_id="a")
    code = "import runpy, sys; sys.stdout.write(runpy.run_path(sys.argv[1])['digest']())"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
    other = subprocess.run(
        [sys.executable, "-c", code, __file__], env=environment, capture_output=True, check=True, encoding="utf-8"
    )
    assert other.stdout == digest()


def test_the_public_names_are_few():
    assert set(perturbations.__all__) >= {"CONDITIONS", "perturb", "edit", "revert"}
