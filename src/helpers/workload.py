"""Everything that a run would ask, before it asks anything: for its plan, and for batch files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd

from helpers import items, judgements, principles, sources
from helpers.answers import Request, Store
from helpers.judges import Model, keys
from helpers.judges.lanes import ASK_LIMIT
from helpers.params import Params
from helpers.perturbations import learning, proposals

__all__ = ["Workload", "workload"]

# A completion that is not written yet is judged at this length: about 120 tokens.
ASSUMED_RESPONSE = "x" * 480


@dataclass(frozen=True)
class Workload:
    """The requests of a run whose texts are known, those that wait for names or completions, and each stage's rows."""

    requests: list[Request]
    waiting: list[Request]
    rows: pd.DataFrame


def workload(params: Params, models: Mapping[str, Model], store: Store) -> Workload:
    """Make the requests of every stage from a run's parameters; nothing is sent and nothing is written."""
    subsets = principles.subsets(params.principle_mix) if params.unknown_subset == "error" else None
    asked = sources.instructions(params.instructions, params.n_per_subset, params.columns, subsets=subsets).frame
    loaded = sources.recipes(params.recipes, params.n_recipes, params.columns).frame
    drawn = items.from_instructions(
        asked,
        models=params.models,
        k=params.completions_per_instruction,
        seed=params.seed,
        mix=params.principle_mix,
        unknown_subset=params.unknown_subset,
    )[0].to_pandas()
    naming, texts, settled = _recipe_texts(loaded, params, models, store)
    writing = judgements.completion_requests(drawn)
    asking = partial(
        judgements.requests,
        repeats=params.judge_repeats,
        temperature=params.temperature,
        max_tokens=params.max_tokens,
        references=judgements.references(asked),
    )
    answers = [answer.text.strip() if answer is not None else "" for answer in store.get_many(keys(writing, models))]
    written = pd.Series(answers, index=drawn.index).ne("")
    assumed = drawn["item_id"] + ASSUMED_RESPONSE
    drawn["response"] = pd.Series(answers, index=drawn.index).where(written, assumed)
    judging, unsettled, rating, unwritten = (
        asking(part, panel)[0]
        for part, panel in (
            (texts[settled], params.judges),
            (texts[~settled], params.judges),
            (drawn[written], params.instruction_judges),
            (drawn[~written], params.instruction_judges),
        )
    )
    rows = {
        "recipes": len(loaded),
        **({"formulas without a name": len(naming)} if params.name_model else {}),
        "texts to judge, originals included": len(texts),
        "judgements of recipes": len(judging) + len(unsettled),
        "instructions": len(asked),
        "completions": len(writing),
        "judgements of completions": len(rating) + len(unwritten),
    }
    table = pd.DataFrame(rows.items(), columns=["what", "rows"])
    return Workload(naming + writing + judging + rating, unsettled + unwritten, table)


def _recipe_texts(
    recipes: pd.DataFrame, params: Params, models: Mapping[str, Model], store: Store
) -> tuple[list[Request], pd.DataFrame, pd.Series[bool]]:
    """Return the requests for names, the texts as the stored names make them, and which of these wait for none."""
    asked = recipes["recipe"] if params.name_model else ()
    unnamed, naming = proposals.formulas(asked), proposals.requests(asked, params.name_model)
    wanted = keys(naming, models)
    replies, (_, asked_before) = store.get_many(wanted), store.known(wanted)
    with learning.learned(proposals.accepted(unnamed, replies)[0]):
        texts = items.from_recipes(recipes, params.conditions, seed=params.seed).to_pandas()
    missing = {
        formula
        for formula, key, reply in zip(unnamed, wanted, replies, strict=True)
        if (reply is None or not proposals.is_answer(reply)) and asked_before.get(key, 0) < ASK_LIMIT
    }
    waits = {
        sample_id
        for sample_id, text in zip(recipes["sample_id"], recipes["recipe"], strict=True)
        if missing and not missing.isdisjoint(proposals.formulas([text]))
    }
    return naming, texts, ~texts["sample_id"].isin(waits)
