"""The dataset of a run: its tracks as files that a trainer takes, and the card with what only the run knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from helpers import export, rubrics
from helpers.card import Card
from helpers.leaks import LeakReport, leak_report
from helpers.runs import Run

__all__ = ["card", "certificates", "write"]

BUILT_IN_LICENCE = "apache-2.0"
LIMITS = (
    "The pairs carry the taste of the judges that made them; a judge that is nearly always chosen can teach its style.",
    "An anchor is a consensus of the same panel, not a measurement of the truth.",
    "Perturbations are made by rules and tables; each records its reason, and not each was seen by a chemist.",
)
RULES_ONLY = "Every judge is a program that applies written rules: the pairs show the format, and are no result."


def card(run: Run, flow: pd.DataFrame, leaks: Mapping[str, LeakReport], licence: str = "") -> Card:
    """Collect what the run's dataset card states; `licence` is that of an input which is not built in."""
    sampling, judging = _stage(run, "01_sampling"), _stage(run, "02_judging")
    kinds = judging["counts"]["models"]
    panel = [*judging["params"]["judges"], *judging["params"]["instruction_judges"]]
    judges = {name: kinds[name] for name in panel}
    sources = {name: BUILT_IN_LICENCE if name == "builtin" else licence or "unknown" for name in sampling["inputs"]}
    figures = [run.path / "figures" / f"{name}.png" for name in ("anchors", "flow")]
    return Card(
        title=f"Plumbline pairs: {run.params.run_id}",
        licence=next((value for value in sources.values() if value != BUILT_IN_LICENCE), BUILT_IN_LICENCE),
        sources=sources,
        judges=judges,
        made=_made(run, sampling["params"]),
        limits=(RULES_ONLY, *LIMITS) if set(judges.values()) == {"rules"} else LIMITS,
        figures={path: path.with_suffix(".txt").read_text().strip() for path in figures},
        leaks=leaks,
        flow=flow,
    )


def certificates(
    recipe_pairs: pd.DataFrame, verdicts: pd.DataFrame, answer_pairs: pd.DataFrame
) -> dict[str, LeakReport]:
    """Report, for each track that has pairs, what its validation split shares with training."""
    tracks = {"recipes": (recipe_pairs, verdicts), "instructions": (answer_pairs, None)}
    return {
        name: leak_report(pairs[pairs["split"] == "train"], pairs[pairs["split"] == "validation"], texts=texts)
        for name, (pairs, texts) in tracks.items()
        if len(pairs)
    }


def write(
    run: Run, facts: Card, recipe_pairs: pd.DataFrame, verdicts: pd.DataFrame, answer_pairs: pd.DataFrame
) -> pd.DataFrame:
    """Write the folder dataset/ of a run and return one row a file."""
    tracks = [export.Track("recipes", recipe_pairs, rubrics.RECIPE.system, verdicts)]
    if len(answer_pairs):
        tracks.append(export.Track("instructions", answer_pairs))
    folder = run.path / "dataset"
    files = export.write_dataset(tracks, folder, card=facts, message_format=run.params.message_format)
    run.writes.update(str(path.relative_to(run.path)) for path in folder.rglob("*") if path.is_file())
    return files


def _stage(run: Run, stage: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((run.path / "stages" / f"{stage}.json").read_text())
    return record


def _made(run: Run, sampling: Mapping[str, Any]) -> list[str]:
    chosen = run.params
    return [
        f"Recipes were perturbed under the conditions {', '.join(sampling['conditions'])} (seed {sampling['seed']}) "
        f"and judged by {', '.join(chosen.judges)}.",
        "A recipe's anchor is the median of all scores on its five graded versions of equivalent wording.",
        f"Pairs follow the rule '{chosen.pairing_rule}': delta at least {chosen.min_delta:g}, tolerances "
        f"{chosen.represent_tolerance:g} and {chosen.error_tolerance:g}, at most {chosen.max_pairs} pairs a text.",
        f"The split is by {chosen.split_by}, with {chosen.validation_fraction:.0%} for validation.",
    ]
