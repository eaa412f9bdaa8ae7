"""Whatever the text, a perturbation is exact, local, nested and undone to the letter."""

from __future__ import annotations

import itertools
import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.perturbations import CONDITIONS, KINDS, edit, perturb, revert

LINES = (resources.files("helpers") / "data" / "recipes.jsonl").read_text("utf-8").splitlines()
RECIPES = [json.loads(line) for line in LINES][:60]

WORDS = (
    "Heat heat dry the a an of in at and cooled by stirring 5% 95% H2 Ar TiO2 TiO₂ BaCO3 CuSO4·5H2O water − - 2 ± –"
    " 8,000 rpm g mL °C K 3×10⁻³ M x = 0.1 pH 7 1:2 (v/v) autoclave oven furnace agate mortar. ; ) No. As In"
)
words = st.sampled_from(WORDS.split())
texts = st.one_of(st.text(max_size=80), st.lists(words, max_size=25).map(" ".join))
seeds = st.integers(min_value=0, max_value=2**63)


def check(text: str, result) -> None:
    changes = result.changes
    assert result.applicable is bool(changes)
    assert (result.text != text) is bool(changes)
    assert revert(result.text, changes) == text
    assert all(a.end <= b.start for a, b in itertools.pairwise(changes))
    assert all(text[e.start : e.end] == e.old != e.new for e in changes)
    assert 0 <= result.rate_actual <= 1


@given(text=texts, kind=st.sampled_from(KINDS), seed=seeds)
def test_any_text_comes_back(text, kind, seed):
    result = edit(text, kind, seed=seed, sample_id="a")
    check(text, result)
    assert {e.kind for e in result.changes} <= {kind}


@given(text=texts, seed=seeds)
def test_any_text_is_perturbed_in_nested_steps(text, seed):
    for stem in ("all_error_perturbation", "llm_representational_perturbation"):
        results = [perturb(text, f"{stem}_{n}pct", seed=seed, sample_id="a") for n in (1, 2, 5, 10, 15)]
        for result in results:
            check(text, result)
        for low, high in itertools.pairwise(results):
            assert set(low.changes) <= set(high.changes)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe["sample_id"])
def test_a_real_recipe_is_perturbed_in_every_condition(recipe):
    text, target = recipe["recipe"], recipe["Material_Name"]
    for name in CONDITIONS:
        result = perturb(text, name, seed=42, sample_id=recipe["sample_id"], target=target)
        check(text, result)
        for left, right in ("()", "[]", "{}"):
            assert result.text.count(left) - result.text.count(right) == text.count(left) - text.count(right)
