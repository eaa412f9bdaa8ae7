"""Actions: which words are verbs of the procedure, and what their opposite looks like."""

from __future__ import annotations

import pytest

from helpers.perturbations import actions
from helpers.perturbations.composition import rows
from helpers.perturbations.edits import apply

FORMS = ("base", "past", "participle", "gerund")


def flipped(text: str) -> str:
    return apply(text, actions.propose(text, seed=0, sample_id="r"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Heat at 300 K, then cool to 77 K.", "Chill at 300 K, then warm to 77 K."),
        ("Stir, cool, stir again and cool slowly.", "Settle, warm, settle again and warm slowly."),
        ("1. Mix the powders.\n2. **Dry** it at 80 °C.", "1. Separate the powders.\n2. **Wet** it at 80 °C."),
        ("It was gently heated and dried in air.", "It was gently chilled and wetted in air."),
        ("After cooling to 25 °C, by heating in air.", "After warming to 25 °C, by chilling in air."),
        ("We dissolved it and boiled it.", "We precipitated it and froze it."),
        ("It was boiled for 2 h.", "It was frozen for 2 h."),
        ("Allow it to cool down. Let it cool.", "Allow it to warm up. Let it warm."),
        ("Dry L-asparaginium chloride at 40 °C.", "Wet L-asparaginium chloride at 40 °C."),
        ("STIR well; Slowly add water.", "SETTLE well; Slowly remove water."),
    ],
)
def test_a_verb_keeps_its_case_and_tense(text, expected):
    assert flipped(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "As the solid dries, the dry powder and the stirred solution of mixed oxides are kept.",
        "heat treatment at a heating rate of 5 K/min under stirring in a drying oven",
        "Dry ethanol was used. - Dry ethanol, 20 mL",
        "Do not heat it. Never stir without cooling.",
        "Keep cool and dry. Store in a cool, dry place until dry.",
        "freeze-dried, heat-treated, pre-mix, water-cooled, freeze dried",
        "Grind, press, wash, centrifuge, calcine and sieve the powder.",
        "HCl was added dropwise to the solution; remove it from the oven.",
        "the melt, a mix of A and B, the precipitate, a boil",
    ],
)
def test_a_noun_an_adjective_or_a_verb_without_opposite_is_left_alone(text):
    assert flipped(text) == text


def test_every_opposite_is_one_per_verb_in_all_forms_with_a_source():
    table = rows("verbs")
    assert len({row["base"] for row in table}) == len(table)
    for row in table:
        assert all(row[form] for form in FORMS)
        assert all(row[f"opposite{form}"] for form in ("", "_past", "_participle", "_gerund"))
        assert row["why"]
        assert row["source"]


def test_no_chain_of_opposites_leads_back_to_its_start():
    opposite = {row["base"]: row["opposite"] for row in rows("verbs")}
    for verb in opposite:
        seen = [verb]
        while seen[-1] in opposite:
            seen.append(opposite[seen[-1]])
            assert len(set(seen)) == len(seen)


def test_every_form_of_every_verb_turns_after_an_auxiliary_or_by():
    for row in rows("verbs"):
        if row["unless"] or row["unless_before"]:
            continue
        assert flipped(f"It was {row['participle']} now.") == f"It was {row['opposite_participle']} now."
        assert flipped(f"It is made by {row['gerund']} it.") == f"It is made by {row['opposite_gerund']} it."
        assert flipped(f"Then {row['base']} it.") == f"Then {row['opposite']} it."


def test_text_without_actions_gives_no_edit():
    assert actions.propose("", seed=0, sample_id="r") == []
