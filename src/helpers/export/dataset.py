"""The dataset of a run: its tracks as files that a trainer takes, and the card with what only the run knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from helpers import export, judgements, pairing, rubrics
from helpers.export.card import Card
from helpers.pairing import PairingRules, scale, splits
from helpers.pairing.leaks import LeakReport, check
from helpers.pairing.texts import Words
from helpers.params import Params
from helpers.perturbations import CONDITIONS
from helpers.runs import Run, read_record

__all__ = ["Paired", "card", "pair", "rules", "tables", "verdicts", "write"]

RECIPES = [("track", "==", "recipe")]
ABOUT = ["sample_id", "dataset_name", "perturbation_type", "perturbation_category", "perturbation_rate"]
BY_CATEGORY = sorted(CONDITIONS, key=lambda name: CONDITIONS[name].category == "error")

BUILT_IN_LICENCE = "apache-2.0"
LIMITS = (
    "The pairs carry the taste of the judges that made them; a judge that is nearly always chosen can teach its style.",
    "An anchor is a consensus of the same panel, not a measurement of the truth.",
    "Perturbations are made by rules and tables; each records its reason, and not each was seen by a chemist.",
)
RULES_ONLY = "Every judge is a program that applies written rules: the pairs show the format, and are no result."


def card(run: Run, flow: pd.DataFrame, licence: str = "") -> Card:
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
        flow=flow,
    )


class Paired(NamedTuple):
    """What the recipes of a run, or of one of its buckets, give.

    `pairs` hold positions in the bucket's verdicts where texts belong (`pairing.pair_rows`) and, for the whole run,
    the columns bucket and split; `other` are the pairs by the rule that the run does not follow; `flow` is
    `pairing.attrition`, `summary` what a split by samples needs, `characters` the length of every evaluation.
    """

    pairs: pd.DataFrame
    other: pd.DataFrame
    flow: pd.DataFrame
    summary: pd.DataFrame
    characters: npt.NDArray[np.int64]


def verdicts(run: Run, bucket: int) -> pd.DataFrame:
    """Read the verdicts on a bucket's recipes with their texts: what `pairing.pair_rows` takes."""
    items = run.read("items", ["item_id", *ABOUT, "prompt", "response"], part=bucket, where=RECIPES)
    rows = run.read("judgements", ["item_id", "judge", "repeat", "overall_score", "text"], part=bucket)
    return judgements.for_pairing(rows, items)


def pair(run: Run) -> Paired:
    """Pair and split the verdicts of a run bucket by bucket, on this machine's cores or on a cluster."""
    chosen = run.params
    common = splits.shared_wording(verdicts(run, bucket) for bucket in range(chosen.buckets))
    found = scale.each_bucket(
        partial(_pair, run=run, common=common),
        range(chosen.buckets),
        engine=chosen.engine,
        scheduler=chosen.dask_scheduler,
    )
    pairs = pd.concat([part.pairs for part in found], ignore_index=True)
    other = pd.concat([part.other for part in found], ignore_index=True)
    flow, summary = (pd.concat(parts) for parts in zip(*((part.flow, part.summary) for part in found), strict=True))
    pairs["bucket"] = np.repeat(range(len(found)), [len(part.pairs) for part in found])
    share: dict[str, Any] = {"validation_fraction": chosen.validation_fraction, "seed": chosen.seed}
    if chosen.split_by == "sample":
        pairs["split"] = pairs["sample_id"].astype("str").map(splits.draw_samples(summary, **share))
    else:
        pairs["split"] = splits.split(pairs, by=chosen.split_by, **share)
    flow["dataset_name"] = pd.Categorical(flow["dataset_name"], BY_CATEGORY)
    flow = flow.groupby(["dataset_name", "perturbation_category"], observed=True).sum().reset_index()
    flow = flow[["perturbation_category", "dataset_name", *flow.columns[2:]]].astype({"dataset_name": "str"})
    return Paired(pairs, other, flow, summary, np.concatenate([part.characters for part in found]))


def _pair(bucket: int, run: Run, common: Words) -> Paired:
    chosen, rows = run.params, verdicts(run, bucket)
    mine = rules(chosen)
    panel: dict[str, Any] = {"judges": chosen.judges}
    anchors = _anchors(run)
    pairs = pairing.pair_rows(rows, anchors, **panel, rules=mine)
    other = pairing.pair_rows(
        rows, anchors, **panel, rules=replace(mine, rule="nearest" if mine.rule == "published" else "published")
    )
    said = rows["user"].astype("str").str.len() + rows["text"].str.len().fillna(0)
    return Paired(
        pairs,
        other.drop(columns=["prompt", "chosen", "rejected"]),
        pairing.attrition(rows, anchors, **panel, rules=mine),
        splits.sample_summary(pairs, rows, common=common),
        np.asarray(said + len(rubrics.RECIPE.system), np.int64),
    )


def tables(run: Run, pairs: pd.DataFrame, bucket: int) -> Iterator[pa.Table]:
    """Yield a bucket's share of the table `pairs`, with texts and what is known of the recipe, a few rows at a time."""
    mine = pairs[pairs["bucket"] == bucket].merge(_known(run), on="sample_id", how="left", validate="m:1")
    return judgements.pair_tables(mine, verdicts(run, bucket))


def write(run: Run, facts: Card, answer_pairs: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, LeakReport]]:
    """Write the folder dataset/ of a run; return one row a file, and for each track its leak certificate.

    The certificates are made from the files themselves, before they take the place of older ones.
    """
    chosen, folder = run.params, run.path / "dataset"
    certificates: dict[str, LeakReport] = {}

    def certified(written: Path) -> Card:
        certificates.update({track.name: _certificate(track) for track in sorted(written.iterdir(), reverse=True)})
        return replace(facts, leaks=certificates)

    build = scale.Build(
        chosen.judges,
        rules(chosen),
        rubrics.RECIPE.system,
        chosen.split_by,
        chosen.validation_fraction,
        chosen.seed,
        chosen.message_format,
        _anchors(run),
    )
    files = scale.build_dataset(
        range(chosen.buckets),
        folder,
        build,
        card=certified,
        read=partial(_with_facts, run=run),
        more=[export.Track("instructions", answer_pairs)] if len(answer_pairs) else [],
        engine=chosen.engine,
        scheduler=chosen.dask_scheduler,
    )
    run.writes.update(str(path.relative_to(run.path)) for path in folder.rglob("*") if path.is_file())
    return files, certificates


def _certificate(track: Path) -> LeakReport:
    return check(*(sorted(track.glob(f"{split}-*.parquet")) for split in export.SPLITS))


def _with_facts(bucket: int, run: Run) -> pd.DataFrame:
    rows, known = verdicts(run, bucket), _known(run).set_index("sample_id")
    return rows.assign(**{name: rows["sample_id"].map(known[name]) for name in export.FACTS})


def _anchors(run: Run) -> pd.DataFrame:
    return run.read("anchors", ["sample_id", "anchor_score", "n_scores"], where=RECIPES)


def _known(run: Run) -> pd.DataFrame:
    return run.read("recipes", ["sample_id", *export.FACTS])


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
