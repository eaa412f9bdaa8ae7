"""The dataset card: README.md with its YAML head, made from the files that were written and the facts of the run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.pairing.leaks import LeakReport

__all__ = ["Card", "render"]

KINDS = {
    "rules": "program that applies written rules; no language model",
    "local": "small language model on the author's machine",
    "endpoint": "language model behind an API",
}
MEANINGS = {
    "prompt": "what the judge was asked: the rubric (system) and the request with the text to judge (user)",
    "chosen": "the preferred answer",
    "rejected": "the other answer",
    "score_chosen": "overall score that the chosen answer gives (or was given), 1 to 5",
    "score_rejected": "overall score of the rejected answer",
    "score_delta": "distance of the two scores",
    "anchor_score": "the sample's anchor: the median over judges and meaning-preserving versions",
    "sample_id": "the sample; one is never on both sides unless the leak certificate says so",
    "perturbation_type": "how the text was changed",
    "perturbation_category": "represent: the meaning is kept; error: a scientific error was put in",
    "perturbation_rate": "requested share of the text's words that change",
    "chosen_model": "who wrote the chosen answer",
    "rejected_model": "who wrote the rejected answer",
    "dataset_name": "the condition, or the subset of an instruction",
    "pair_key": "SHA-256 of user text, chosen and rejected",
}
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10**7, "1M<n<10M"))


@dataclass(frozen=True)
class Card:
    """What only the run knows of its dataset. `licence` is the identifier of the Hub, such as "cc-by-4.0".

    `sources` maps each input to its licence, `judges` each judge to "rules", "local" or "endpoint"; `made` are the
    steps as sentences; `figures` maps files to captions; `leaks` holds one report a track; `flow` is
    `pairing.attrition`.
    """

    title: str
    licence: str
    sources: Mapping[str, str]
    judges: Mapping[str, str]
    made: Sequence[str] = ()
    limits: Sequence[str] = ()
    figures: Mapping[Path, str] = field(default_factory=dict)
    leaks: Mapping[str, LeakReport] = field(default_factory=dict)
    flow: pd.DataFrame | None = None


def render(card: Card, folder: Path, files: pd.DataFrame) -> str:
    """Return the text of README.md for the `files` (config, split, file, rows, bytes) that lie in `folder`."""
    if unknown := set(card.judges.values()) - KINDS.keys():
        raise ValueError(f"judges are of the kind {sorted(unknown)}; known are {sorted(KINDS)}")
    if not card.licence:
        raise ValueError("the card needs a licence, such as 'cc-by-4.0'")
    configs = {name: files[files["config"] == name] for name in files["config"].unique()}
    parts = {
        "Files": _markdown(files.drop(columns="left_out")),
        "Columns": "\n\n".join(_columns(folder, name, rows) for name, rows in configs.items()),
        "How it was made": "\n".join(f"* {sentence}" for sentence in [*card.made, *_left_out(configs)]),
        "Who judged": _judges(card.judges),
        "In numbers": "\n\n".join(_numbers(folder, name, rows) for name, rows in configs.items()),
        "What became of the candidates": "" if card.flow is None else _markdown(card.flow),
        "Figures": "\n\n".join(_figure(folder, path, caption) for path, caption in card.figures.items()),
        "Leak certificate": "\n\n".join(_certificate(name, report) for name, report in card.leaks.items()),
        "Limits": "\n".join(f"* {sentence}" for sentence in card.limits),
        "Input and licence": _markdown(pd.DataFrame(card.sources.items(), columns=["input", "licence"])),
        "Use": _usage(folder, files),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)
    return f"---\n{_head(card, folder, configs)}\n---\n\n# {card.title}\n\n{body}\n"


def _head(card: Card, folder: Path, configs: Mapping[str, pd.DataFrame]) -> str:
    from huggingface_hub import DatasetCardData

    rows = sum(int(files["rows"].sum()) for files in configs.values())
    return DatasetCardData(
        pretty_name=card.title,
        license=card.licence,
        language="en",
        size_categories=next((name for limit, name in SIZES if rows < limit), "n>10M"),
        task_categories=["text-generation"],
        tags=["preference", "dpo", "llm-as-a-judge", "trl"],
        configs=[
            {
                "config_name": name,
                **({"default": True} if place == 0 else {}),
                "data_files": [
                    {"split": split, "path": f"{name}/{split}-*.parquet"} for split in files["split"].unique()
                ],
            }
            for place, (name, files) in enumerate(configs.items())
        ],
        dataset_info=[_info(folder, name, files) for name, files in configs.items()],
    ).to_yaml()


def _info(folder: Path, name: str, files: pd.DataFrame) -> dict[str, Any]:
    sizes = files["file"].map(lambda file: _uncompressed(folder / file))
    splits = [
        {"name": split, "num_bytes": int(sizes[part.index].sum()), "num_examples": int(part["rows"].sum())}
        for split, part in files.groupby("split", sort=True)
    ]
    features = [_feature(field) for field in _schema(folder, files)]
    size = {"download_size": int(files["bytes"].sum()), "dataset_size": int(sizes.sum())}
    return {"config_name": name, "features": features, "splits": splits, **size}


def _uncompressed(path: Path) -> int:
    metadata = pq.read_metadata(path)
    return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))


def _schema(folder: Path, files: pd.DataFrame) -> pa.Schema:
    return pq.read_schema(folder / files["file"].iloc[0])


def _feature(field: pa.Field) -> dict[str, Any]:
    if pa.types.is_list(field.type):
        return {"name": field.name, "list": [_feature(part) for part in field.type.value_type]}
    return {"name": field.name, "dtype": "float64" if pa.types.is_float64(field.type) else str(field.type)}


def _columns(folder: Path, name: str, files: pd.DataFrame) -> str:
    rows = [(field.name, _type(field.type), MEANINGS.get(field.name, "")) for field in _schema(folder, files)]
    return f"`{name}`\n\n" + _markdown(pd.DataFrame(rows, columns=["column", "type", "meaning"]))


def _type(kind: pa.DataType) -> str:
    return "list of role and content" if pa.types.is_list(kind) else str(kind)


def _left_out(configs: Mapping[str, pd.DataFrame]) -> list[str]:
    counts = {name: int(files["left_out"].iloc[0]) for name, files in configs.items()}
    return [
        f"{count} pairs of `{name}` were left out, because chosen and rejected say the same."
        for name, count in counts.items()
        if count
    ]


def _judges(judges: Mapping[str, str]) -> str:
    rows = [(name, KINDS[kind]) for name, kind in judges.items()]
    plain = "" if set(judges.values()) != {"rules"} else "\n\nNo language model judged anything in this dataset."
    return _markdown(pd.DataFrame(rows, columns=["judge", "kind"])) + plain


def _numbers(folder: Path, name: str, files: pd.DataFrame) -> str:
    known = [
        key
        for key in ("perturbation_category", "perturbation_type", "dataset_name")
        if key in _schema(folder, files).names
    ]
    keys = known[:2] or known
    # Only counts are kept of each file, since all pairs together may not fit into memory.
    parts = [_counts(folder / file, keys) for file in files["file"]]
    deltas, samples = (pd.concat(tables) for tables in zip(*parts, strict=True))
    by = keys or ["all"]
    rows = [
        [*group, part["pairs"].sum(), *_middle(part["score_delta"], part["pairs"])]
        for group, part in deltas.groupby(by, dropna=False)
    ]
    table = pd.DataFrame(rows, columns=[*by, "pairs", "median_delta", "mean_delta"])
    counts = samples.groupby(by, as_index=False, dropna=False).agg(samples=("sample", "nunique"))
    table.insert(len(by), "samples", counts["samples"])
    return f"`{name}`: {deltas['pairs'].sum()} pairs of {samples['sample'].nunique()} samples\n\n" + _markdown(table)


def _counts(file: Path, keys: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how many pairs of each group have which delta, and the samples of each group as 64-bit hashes."""
    pairs = pq.read_table(file, columns=[*keys, "score_delta", "sample_id"]).to_pandas().assign(all="pairs")
    by = keys or ["all"]
    deltas = pairs.groupby([*by, "score_delta"], as_index=False, dropna=False).agg(pairs=("all", "size"))
    hashes = pd.util.hash_array(pairs["sample_id"].astype("str").to_numpy(dtype=object))
    return deltas, pairs[by].astype("category").assign(sample=hashes).drop_duplicates()


def _middle(deltas: pd.Series, pairs: pd.Series) -> tuple[float, float]:
    values = np.repeat(deltas.to_numpy(dtype=float), pairs)
    return float(np.median(values)), float(values.mean())


def _figure(folder: Path, path: Path, caption: str) -> str:
    target = folder / "figures" / path.name
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(path, target)
    return f"![{caption}](figures/{path.name})\n\n{caption}"


def _certificate(name: str, report: LeakReport) -> str:
    verdict = "no leak was found" if report.clean else "validation is NOT independent of train"
    return f"`{name}`: {verdict}.\n\n" + _markdown(report.table())


def _usage(folder: Path, files: pd.DataFrame) -> str:
    messages = pa.types.is_list(_schema(folder, files).field("prompt").type)
    lines = ["from datasets import load_dataset", "", 'dataset = load_dataset("path/or/name")']
    if not messages:
        columns = '("prompt", "chosen", "rejected")'
        lines += [
            "import json",
            f"dataset = dataset.map(lambda row: {{name: json.loads(row[name]) for name in {columns}}})",
        ]
    return (
        "```python\n"
        + "\n".join(lines)
        + "\n```\n\nScores stand at the end of the answers: set the trainer's `max_length` so that they stay."
    )


def _markdown(table: pd.DataFrame) -> str:
    def cell(value: object) -> str:
        text = f"{value:.3g}" if isinstance(value, float) else str(value)
        return " ".join(text.replace("|", "\\|").split())

    rows = [list(table.columns), ["---"] * table.shape[1], *table.itertuples(index=False, name=None)]
    return "\n".join("| " + " | ".join(map(cell, row)) + " |" for row in rows)
