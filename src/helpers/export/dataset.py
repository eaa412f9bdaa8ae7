"""The dataset of a run: its tracks as files that a trainer takes, and the card with what only the run knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from helpers import export, rubrics
from helpers.export.card import Card
from helpers.pairing import PairingRules, scale
from helpers.pairing.leaks import LeakReport, leak_report
from helpers.params import Params
from helpers.runs import Run, read_record

__all__ = ["card", "certificates", "rules", "write"]

BUILT_IN_LICENCE = "apache-2.0"
LIMITS = (
    "The pairs carry the taste of the judges that made them; a judge that is nearly always chosen can teach its style.",
    "An anchor is a consensus of the same panel, not a measurement of the truth.",
    "Perturbations are made by rules and tables; each records its reason, and not each was seen by a chemist.",
)
RULES_ONLY = "Every judge is a program that applies written rules: the pairs show the format, and are no result."


def card(run: Run, flow: pd.DataFrame, leaks: Mapping[str, LeakReport], licence: str = "") -> Card:
    """Collect what the run's dataset card states; `licence` is that of an input which is not built in."""
    sampling, judging = read_record(run.path, "01_sampling"), read_record(run.path, "02_judging")
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
    }


def write(
    run: Run, facts: Card, recipe_pairs: pd.DataFrame, verdicts: pd.DataFrame, answer_pairs: pd.DataFrame
) -> pd.DataFrame:
    """Write the folder dataset/ of a run, in buckets where the parameters say so, and return one row a file."""
    answers = [export.Track("instructions", answer_pairs)] if len(answer_pairs) else []
    folder, chosen = run.path / "dataset", run.params
    if chosen.buckets > 1 or chosen.engine == "dask":
        files = _in_buckets(run, facts, recipe_pairs, verdicts, answers)
    else:
        recipes = export.Track("recipes", recipe_pairs, rubrics.RECIPE.system, verdicts)
        files = export.write_dataset([recipes, *answers], folder, card=facts, message_format=chosen.message_format)
    run.writes.update(str(path.relative_to(run.path)) for path in folder.rglob("*") if path.is_file())
    return files


def _in_buckets(
    run: Run, facts: Card, recipe_pairs: pd.DataFrame, verdicts: pd.DataFrame, answers: Sequence[export.Track]
) -> pd.DataFrame:
    """Pair and export again bucket by bucket, on this machine's cores or on a cluster that sees the run's folder."""
    chosen = run.params
    known = recipe_pairs[["sample_id", *export.FACTS]].drop_duplicates("sample_id")
    originals = verdicts[verdicts["dataset_name"] == "original"].drop_duplicates("sample_id")
    numbers = scale.bucket_numbers(originals["user"].astype("str"), chosen.buckets)
    with TemporaryDirectory(dir=run.path, prefix=".buckets-") as work:
        source = Path(work) / "verdicts.parquet"
        verdicts.merge(known, on="sample_id", how="left", validate="m:1").to_parquet(source, index=False)
        bucket_of = dict(zip(originals["sample_id"], numbers.tolist(), strict=True))
        buckets = scale.partition(source, Path(work) / "buckets", bucket_of, chosen.buckets)
        build = scale.Build(
            chosen.judges,
            rules(chosen),
            rubrics.RECIPE.system,
            chosen.split_by,
            chosen.validation_fraction,
            chosen.seed,
            chosen.message_format,
        )
        return scale.build_dataset(
            buckets,
            run.path / "dataset",
            build,
            card=facts,
            more=answers,
            engine=chosen.engine,
            scheduler=chosen.dask_scheduler,
        )


def rules(chosen: Params) -> PairingRules:
    """Return the rules of pairing that a run's parameters give.

    >>> rules(Params(min_delta=1.0)).min_delta
    1.0
    """
    return PairingRules(
        rule=chosen.pairing_rule,
        min_delta=chosen.min_delta,
        represent_tolerance=chosen.represent_tolerance,
        error_tolerance=chosen.error_tolerance,
        max_pairs=chosen.max_pairs,
        min_scores=chosen.min_scores,
    )


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
