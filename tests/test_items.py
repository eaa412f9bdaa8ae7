import pandas as pd
import pyarrow as pa
import pytest

from helpers import items
from helpers.perturbations import CONDITIONS, Edit, revert

RECIPE = """## Materials
- TiO2, 1.6 g
- barium carbonate (BaCO3), 3.9 g

## Equipment
- furnace
- agate mortar

## Procedure
1. Mix TiO2 and BaCO3 for 30 min in ethanol.
2. Dry the mixture at 80 °C for 12 h.
3. Heat the powder in a furnace at 1100 °C for 4 h.

## Characterization
- X-ray diffraction"""


def recipes(*texts):
    facts = {"contribution": "Make BaTiO3.", "Material_Name": "BaTiO3", "process": "solid-state", "domain": "x"}
    rows = [{"sample_id": f"r{n}", "recipe": text, "source": "test"} | facts for n, text in enumerate(texts)]
    return pd.DataFrame(rows)


def instructions(*names):
    facts = {"correct_answers": [[]], "incorrect_answers": [[]], "source": "test"}
    frames = [pd.DataFrame({"sample_id": [n], "dataset_name": [n[:4]], "instruction": ["Why?"]} | facts) for n in names]
    return pd.concat(frames, ignore_index=True)


def test_every_text_is_the_original_with_its_recorded_edits():
    rows = items.from_recipes(recipes(RECIPE), seed=42).to_pylist()
    assert [row["dataset_name"] for row in rows] == ["original", *CONDITIONS]
    for row in rows:
        assert revert(row["response"], [Edit(**change) for change in row["changes"]]) == RECIPE
        assert (row["response"] == RECIPE) == (row["dataset_name"] == "original")


def test_a_recipe_with_nothing_to_edit_makes_no_row_but_its_original():
    rows = items.from_recipes(recipes("Leave it."), seed=42).to_pylist()
    assert [row["dataset_name"] for row in rows] == ["original"]


def test_adding_a_recipe_leaves_the_others_as_they_were():
    alone = items.from_recipes(recipes(RECIPE), seed=1).to_pylist()
    together = items.from_recipes(recipes(RECIPE, RECIPE.replace("TiO2", "ZrO2")), seed=1).to_pylist()
    assert together[: len(alone)] == alone


def test_buckets_hold_every_recipe_once_and_copies_together():
    texts = [f"Heat CaO at {degrees} °C." for degrees in range(300, 340)]
    given = recipes(*texts, *(text.upper() for text in texts))
    parts = items.in_buckets(given, 3)
    assert sorted(sample for part in parts for sample in part["sample_id"]) == sorted(given["sample_id"])
    assert min(map(len, parts)) > 0
    place = {sample: number for number, part in enumerate(parts) for sample in part["sample_id"]}
    assert all(place[f"r{n}"] == place[f"r{n + 40}"] for n in range(40))


def test_equal_numbers_of_edits_at_two_rates_mean_equal_texts():
    found = items.from_recipes(recipes(RECIPE, "Dry CaO at 500 °C."), seed=1)
    for _, rows in items.facts(found).assign(text=found["response"].to_pylist()).groupby("sample_id"):
        graded = rows[rows["perturbation_rate"].between(0, 1, inclusive="neither")]
        for _, same in graded.groupby("perturbation_category"):
            assert same["text"].nunique() == same["n_edits"].nunique()


def test_conditions_come_in_their_own_order_under_their_own_names():
    asked = ["llm_to_name_100pct", "all_error_injection_2pct"]
    names = items.from_recipes(recipes(RECIPE), asked, seed=1)["dataset_name"].to_pylist()
    assert names == ["original", "all_error_perturbation_2pct", "llm_to_name_100pct"]


def test_every_instruction_gets_k_different_models_and_a_prompt_of_its_principle():
    table, steps = items.from_instructions(
        instructions("flan-1", "flan-2"), models=["a", "b", "c"], k=2, seed=7, mix="code", unknown_subset="error"
    )
    rows = table.to_pandas()
    assert rows["item_id"].tolist() == ["flan-1/0", "flan-1/1", "flan-2/0", "flan-2/1"]
    assert rows.groupby("sample_id")["model"].nunique().tolist() == [2, 2]
    assert rows["principle"].tolist() == steps["principle"].tolist()
    assert rows["system_prompt"].tolist() == steps["system_prompt"].tolist()
    assert table["response"].null_count == 4


def test_an_unknown_subset_is_named():
    with pytest.raises(ValueError, match="'news'"):
        items.from_instructions(instructions("news-1"), models=["a"], k=1, seed=1, mix="code", unknown_subset="error")


def test_contexts_show_the_edit_where_it_stands_in_the_old_and_the_new_text():
    table = pa.Table.to_pandas(items.from_recipes(recipes(RECIPE), ["numerical_perturbation_100pct"], seed=42))
    shown = items.edit_contexts(table, per_kind=2, seed=42)
    assert len(shown) == 2
    for row in shown.itertuples():
        plain = row.before.replace("[", "").replace("]", "")
        assert plain in RECIPE
        assert row.after.replace("[", "").replace("]", "") != plain
        assert row.why


def test_a_rate_that_a_recipe_cannot_bear_is_told():
    table = items.facts(items.from_recipes(recipes("Dry CaO at 500 °C."), seed=1))
    told = "\n".join(items.notes(table))
    assert "llm_representational_perturbation_15pct equals llm_representational_perturbation_10pct in 1 of 1" in told
    assert items.notes(table[table["dataset_name"] == "original"]) == []
