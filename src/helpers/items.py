"""Items: the texts to judge, made from recipes (every condition) and from instructions (every drawn completion)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from helpers import keyed, perturbations, principles
from helpers.pairing.scale import bucket_numbers
from helpers.perturbations import CONDITIONS
from helpers.records import SCHEMAS

__all__ = ["condition_names", "edit_contexts", "facts", "from_instructions", "from_recipes", "in_buckets", "notes"]


def from_recipes(recipes: pd.DataFrame, conditions: Sequence[str] = ("all",), *, seed: int) -> pa.Table:
    """Make every asked-for dataset of every recipe, and `original`; a recipe that has nothing to edit makes no row.

    `recipes` has the columns of the `recipes` table; the result has those of `items`, in the order of the recipes and,
    within one, of the conditions. `metrics.applicability` counts what is not there.
    """
    names = ["original", *condition_names(conditions)]
    rows = [
        row
        for recipe in recipes.itertuples()
        for name in names
        if (row := _recipe_item(recipe, name, seed)) is not None
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["items"])


def in_buckets(recipes: pd.DataFrame, buckets: int) -> list[pd.DataFrame]:
    """Divide recipes by the content of their texts, so that a recipe and its copies stay together."""
    numbers = bucket_numbers(recipes["recipe"], buckets)
    return [recipes[numbers == bucket] for bucket in range(buckets)]


def facts(made: pa.Table) -> pd.DataFrame:
    """Return what is known of each item but its texts, and the number of its edits as `n_edits`."""
    counted = made.append_column("n_edits", pc.list_value_length(made["changes"]))
    frame: pd.DataFrame = counted.drop_columns(["changes", "system_prompt", "prompt", "response"]).to_pandas()
    return frame


def condition_names(conditions: Iterable[str]) -> list[str]:
    """Return the conditions by their own names and in their own order; `all` stands for the 17.

    >>> condition_names(["all_error_injection_5pct", "element_substitution_100pct"])
    ['all_error_perturbation_5pct', 'element_substitution_100pct']
    """
    asked = {perturbations.canonical(name) for name in conditions if name != "all"}
    return [name for name in CONDITIONS if name in asked or "all" in conditions]


def notes(items: pd.DataFrame) -> list[str]:
    """Say of each graded condition whether its texts are mostly those of a lower rate, and whether it falls short.

    A short recipe cannot bear a rate of 1 %, and one with few names runs out of rewordings: a reader must know.
    `items` is what `facts` returns. A higher rate has the edits of a lower one and more, or the same text.
    """
    found = []
    graded = items[items["perturbation_rate"].between(0, 1, inclusive="neither")]
    for _, rows in graded.groupby("perturbation_category"):
        edits = rows.pivot(index="sample_id", columns="perturbation_rate", values="n_edits")
        names = rows.groupby("perturbation_rate")["dataset_name"].first()
        reached = rows.groupby("perturbation_rate")["rate_actual"].median()
        for lower, higher in itertools.pairwise(names.index):
            same, both = (
                int((edits[lower] == edits[higher]).sum()),
                int(edits[[lower, higher]].notna().all(axis=1).sum()),
            )
            if 2 * same > both:
                found.append(f"{names[higher]} equals {names[lower]} in {same:,} of {both:,} recipes")
        found += [
            f"{names[rate]} reaches {reached[rate]:.1%} of the words in the median recipe"
            for rate in names.index
            if reached[rate] < 0.8 * rate
        ]
    return found


def edit_contexts(items: pd.DataFrame, *, per_kind: int, seed: int, width: int = 60) -> pd.DataFrame:
    """Draw some edits of every kind and return them with their context: kind, sample_id, before, after, why.

    `items` holds sample_id, changes and response; of a text in several datasets the edits are taken once.
    """
    texts: Iterable[tuple[Any, ...]] = items[["sample_id", "changes", "response"]].itertuples(index=False, name=None)
    drawn = {
        keyed.word(seed, "context", edit.kind, sample_id, edit.old, edit.new): (edit.kind, sample_id, *views, edit.why)
        for sample_id, changes, response in texts
        for edit, *views in _views(response, [perturbations.Edit(**change) for change in changes], width)
    }
    table = pd.DataFrame(
        [drawn[order] for order in sorted(drawn)], columns=["kind", "sample_id", "before", "after", "why"]
    )
    return table.groupby("kind").head(per_kind).sort_values("kind", kind="stable", ignore_index=True)


def from_instructions(
    instructions: pd.DataFrame, *, models: Sequence[str], k: int, seed: int, mix: str, unknown_subset: str
) -> tuple[pa.Table, pd.DataFrame]:
    """Draw k models and their principles for every instruction; the responses are still to be asked for.

    Returns the rows of `items` with a null response, and the draws with both of their steps (columns of
    `principles.draw_steps`).
    """
    drawn = principles.draw_models(instructions["sample_id"], models, k, seed=seed)
    rows = instructions.loc[instructions.index.repeat(k)].reset_index(drop=True)
    slots = list(range(k)) * len(instructions)
    steps = principles.draw_steps(
        rows["dataset_name"], rows["sample_id"], slots, seed=seed, mix=mix, unknown_subset=unknown_subset
    )
    columns = {
        "item_id": rows["sample_id"] + "/" + pd.Series(slots).astype(str),
        "track": "instruction",
        "sample_id": rows["sample_id"],
        "source": rows["source"],
        "dataset_name": rows["dataset_name"],
        "principle": steps["principle"],
        "system_prompt": steps["system_prompt"],
        "model": drawn.reshape(-1),
        "prompt": rows["instruction"],
    }
    frame = pd.DataFrame(columns)
    arrays = [
        pa.array(frame[field.name], field.type) if field.name in frame else pa.nulls(len(frame), field.type)
        for field in SCHEMAS["items"]
    ]
    return pa.table(arrays, schema=SCHEMAS["items"]), steps


def _recipe_item(recipe: object, name: str, seed: int) -> dict[str, object] | None:
    sample_id, text = str(recipe.sample_id), str(recipe.recipe)  # type: ignore[attr-defined]
    target = str(recipe.contribution)  # type: ignore[attr-defined]
    made = perturbations.perturb(text, name, seed=seed, sample_id=sample_id, target=target)
    if not made.applicable:
        return None
    condition = CONDITIONS.get(name)
    return {
        "item_id": f"{sample_id}/{name}",
        "track": "recipe",
        "sample_id": sample_id,
        "source": recipe.source,  # type: ignore[attr-defined]
        "dataset_name": name,
        "perturbation_type": condition.type if condition else "original",
        "perturbation_category": condition.category if condition else "original",
        "perturbation_rate": condition.rate if condition else 0.0,
        "rate_actual": made.rate_actual,
        "budget": made.budget,
        "changes": [asdict(change) for change in made.changes],
        "prompt": target,
        "response": made.text,
    }


def _views(
    response: str, edits: Sequence[perturbations.Edit], width: int
) -> Iterator[tuple[perturbations.Edit, str, str]]:
    """Yield every edit with what stood there and what stands there now."""
    original, shift = perturbations.revert(response, edits), 0
    for edit in sorted(edits):
        start = edit.start + shift
        yield edit, _view(original, edit.start, edit.end, width), _view(response, start, start + len(edit.new), width)
        shift += len(edit.new) - len(edit.old)


def _view(text: str, start: int, end: int, width: int) -> str:
    left, right = text[max(0, start - width) : start].split("\n")[-1], text[end : end + width].split("\n")[0]
    return f"{left}[{text[start:end]}]{right}"
