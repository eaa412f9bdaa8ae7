"""Equipment: whole phrases, no verbs, one replacement for all mentions, and the article that stands there."""

from __future__ import annotations

import pytest

from helpers.perturbations import equipment
from helpers.perturbations.composition import rows
from helpers.perturbations.edits import apply


def found(text: str) -> list[str]:
    return [text[m.start : m.end] for m in equipment.find(text)]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        (
            "a 100 mL Teflon-lined stainless-steel autoclave, an oven",
            ["Teflon-lined stainless-steel autoclave", "oven"],
        ),
        ("in an agate mortar and pestle", ["agate mortar and pestle"]),
        ("Use a 0.22 μm filter and a No. 2 crucible.", ["filter", "crucible"]),
        ("using a uniaxial press, by planetary ball mill", ["uniaxial press", "planetary ball mill"]),
        ("## Equipment\n- furnace\n- filter\n- Büchner funnel", ["furnace", "filter", "Büchner funnel"]),
        ("must go to the hood; boil in a kettle", ["hood", "kettle"]),
        ("the furnace tube of a tube furnace, a filter press", ["tube furnace", "filter press"]),
    ],
)
def test_a_whole_phrase_is_found(text, spans):
    assert found(text) == spans


@pytest.mark.parametrize(
    "text",
    [
        "Filter the solution, press the pellet and centrifuge at 8,000 rpm.",
        "- Filter the solution\n- Press the powder",
        "oven-dried, furnace-cooled, ball-milled, oven dried",
        "4 Å molecular sieves; keep the bath cold; a 420 nm cut-off filter",
        "a hoodie, an ovenware dish",
    ],
)
def test_a_verb_or_another_word_is_no_equipment(text):
    assert found(text) == []


@pytest.mark.parametrize("seed", range(30))
def test_the_article_before_it_agrees(seed):
    text = "Put it in an oven, then in a furnace."
    edits = equipment.propose(text, seed=seed, sample_id="r")
    assert edits[0].new[0] in "aeiou"
    assert edits[1].new[0] not in "aeiou"
    assert apply(text, edits).startswith("Put it in an ")


@pytest.mark.parametrize("seed", range(30))
def test_all_mentions_of_a_device_change_together(seed):
    text = "- Tube furnace\n\n1. Heat in the furnace. 2. Two furnaces; THE FURNACE."
    edits = equipment.propose(text, seed=seed, sample_id="r")
    assert len(edits) == 4
    assert len({edit.entity for edit in edits}) == 1
    head = edits[1].new
    assert edits[0].new == head[0].upper() + head[1:]  # the capital of the list item
    assert edits[3].new == head.upper()
    assert edits[2].new in {row["plural"] for row in rows("equipment_swaps")}


def test_cooling_in_the_furnace_alone_is_no_error_in_a_refrigerator():
    assert equipment.propose("Let it cool in the furnace.", seed=0, sample_id="r") == []
    assert len(equipment.propose("Heat in a furnace. Let it cool in the furnace.", seed=0, sample_id="r")) == 2


def test_every_reason_names_the_operation_that_cannot_be_done():
    tasks = {row["task"] for row in rows("equipment_swaps")}
    text = "an autoclave, a furnace, an agate mortar, a desiccator, a rotary evaporator, a pH meter"
    edits = equipment.propose(text, seed=5, sample_id="r")
    assert len(edits) == 6
    assert all(edit.why.partition(" cannot ")[2] in tasks for edit in edits)


def test_every_device_has_an_operation_with_a_replacement_for_either_article():
    operations = {row["operation"] for row in rows("equipment_swaps")}
    devices = [row for row in rows("equipment") if row["operation"] != "describes"]
    assert {row["operation"] for row in devices} == operations
    for row in rows("equipment_swaps"):
        assert row["after_an"][0] in "aeiou"
        assert row["instead"][0].lower() not in "aeiou"
    assert all(row["source"] for name in ("equipment", "equipment_swaps") for row in rows(name))
