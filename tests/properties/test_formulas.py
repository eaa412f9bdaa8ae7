"""Whatever compounds a text names: formulas read back, swaps are errors, names mean what they replace."""

from __future__ import annotations

import itertools

from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.perturbations import formulas, names
from helpers.perturbations.composition import find, parse, rows
from helpers.perturbations.edits import apply, revert
from helpers.perturbations.nomenclature import Salt, compound, formula_of, read, same

ELEMENTS = {row["symbol"]: row for row in rows("elements")}
METALS = [s for s, row in ELEMENTS.items() if row["kind"] == "metal" and row["states"] and s != "U"]
ANIONS = [row["formula"] for row in rows("ions") if int(row["charge"]) < 0]
KNOWN = [row["formula"] for row in rows("compounds")]


@st.composite
def salts(draw: st.DrawFn) -> str:
    metal = draw(st.sampled_from(METALS))
    state = int(draw(st.sampled_from(ELEMENTS[metal]["states"].split())))
    water = draw(st.sampled_from(["", "·H2O", "·6H2O", ".9H2O", " · 2H2O"]))
    return formula_of(Salt(metal, state, draw(st.sampled_from(ANIONS)))) + water


@st.composite
def mixed_oxides(draw: st.DrawFn) -> str:
    chosen = draw(st.lists(st.sampled_from(METALS), min_size=2, max_size=4, unique=True))
    counts = [draw(st.sampled_from(["", "2", "3", "0.5", "0.25", "1/3"])) for _ in chosen]
    return "".join(map("".join, zip(chosen, counts, strict=True))) + f"O{draw(st.integers(2, 9))}"


COMPOUNDS = st.one_of(salts(), mixed_oxides(), st.sampled_from(KNOWN))
TEXTS = st.lists(COMPOUNDS, min_size=1, max_size=5, unique=True).map(lambda found: f"Mix {' with '.join(found)} well.")


def symbols(text: str) -> set[str]:
    return {symbol for token in find(text) if token.composition for symbol in token.composition.elements}


@given(COMPOUNDS)
def test_a_formula_reads_the_same_when_its_plain_form_is_read_again(formula: str):
    first = parse(formula)
    assume(first is not None)
    assert first is not None
    again = parse(first.plain)
    assert again is not None
    assert (dict(again.elements), again.hydrate) == (dict(first.elements), first.hydrate)


@given(TEXTS)
def test_formulas_in_a_text_are_found_whole_and_do_not_overlap(text: str):
    tokens = find(text)
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert all(one.end <= two.start for one, two in itertools.pairwise(tokens))


@given(TEXTS, st.integers(0, 2**32), COMPOUNDS)
def test_a_swap_keeps_brackets_and_brings_an_element_that_nothing_calls_for(text: str, seed: int, target: str):
    edits = formulas.propose(text, seed=seed, sample_id="a", target=target)
    after = apply(text, edits)
    assert revert(after, edits) == text
    assert edits == formulas.propose(text, seed=seed, sample_id="a", target=target)
    for edit in edits:
        assert all(edit.new.count(one) == edit.new.count(two) for one, two in ("()", "[]", "{}"))
        brought = formulas.elements(edit.new) - formulas.elements(edit.old)
        assert len(brought) == 1
        assert brought <= ELEMENTS.keys() - formulas.elements(target) - formulas.elements(text)


@given(TEXTS, st.sampled_from(["formula", "name", "iupac"]))
def test_a_new_name_means_the_compound_that_it_replaces(text: str, to: str):
    edits = names.propose(text, to, seed=0, sample_id="a")
    assert revert(apply(text, edits), edits) == text
    for edit in edits:
        assert same(read(edit.new) or edit.new, edit.entity)
        assert edit.new != edit.old


@given(COMPOUNDS)
def test_both_names_of_a_compound_keep_its_composition_and_its_water(formula: str):
    found = compound(formula)
    if found is not None:
        assert same(read(found.name) or "", formula)
        assert same(read(found.iupac) or "", formula)
