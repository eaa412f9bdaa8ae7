"""The dataset folder: Parquet that a trainer takes as it is, and a card made from the files.

<folder>/<track>/<split>-00000-of-00001.parquet and README.md, opened by `datasets.load_dataset(folder)`. Everything is
written beside its place and renamed at the end, so that a kill or a full disk leaves the last complete dataset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from helpers.export.card import Card, render
from helpers.export.messages import MESSAGES, Distinct, as_json, as_messages, equal_answers
from helpers.pairing.texts import Texts
from helpers.runs import replacing, replacing_folder

__all__ = [
    "FACTS",
    "PUBLISHED_COLUMNS",
    "ROW_GROUP",
    "SPLITS",
    "Track",
    "finish",
    "push",
    "whole_numbers",
    "write_dataset",
    "write_track",
]

Ints = npt.NDArray[np.int64]

ROW_GROUP = 8_192
# Small enough that the texts of a batch stay in the processor's cache.
BATCH = 1_024
SPLITS = ("train", "validation")
TEXT_COLUMNS = ("prompt", "chosen", "rejected")
PUBLISHED_COLUMNS = {
    **dict.fromkeys(TEXT_COLUMNS, pa.string()),
    **dict.fromkeys(("score_chosen", "score_rejected", "score_delta", "anchor_score"), pa.float64()),
    "sample_id": pa.int64(),
    **dict.fromkeys(("perturbation_type", "perturbation_category"), pa.string()),
    "perturbation_rate": pa.float64(),
    **dict.fromkeys(("chosen_model", "rejected_model"), pa.string()),
}
FACTS = ("Material_Name", "domain", "process")
MORE_COLUMNS = ("dataset_name", "chosen_principle", "rejected_principle", *FACTS, "pair_key")


@dataclass(frozen=True)
class Track:
    """One configuration of the dataset: pairs with a column `split`, in the order in which they are to be written.

    `system` is the system message before every prompt, "" for none. `texts` is the table of judgements when the pairs
    hold positions (`pairing.pair_rows`).
    """

    name: str
    pairs: pd.DataFrame
    system: str = ""
    texts: pd.DataFrame | None = None


def write_dataset(
    tracks: Sequence[Track], folder: str | Path, *, card: Card, message_format: str = "messages"
) -> pd.DataFrame:
    """Write the tracks, the first as the default configuration, and the card; replaces the folder in one step.

    As "messages", prompt, chosen and rejected are lists of role and content, beside everything known of the pair. As
    "json" they are such lists written as JSON and the columns are the published 13; sample_id is int64 there, or text
    when an id is not a whole number. Pairs whose answers are equal once trimmed are left out and counted. Returns one
    row a file: config, split, file, rows, bytes, left_out (of the track). Raises ValueError for an empty text or no
    pair at all, OSError for a full disk.
    """
    with replacing_folder(Path(folder)) as beside:
        left_out = {track.name: write_track(track, beside, message_format) for track in tracks}
        return finish(beside, card, left_out)


def write_track(track: Track, folder: Path, message_format: str, part: int = 0, ids: pa.DataType | None = None) -> int:
    """Write a track's files, or one part of them, into a folder for `finish`; return the number of pairs left out."""
    schema = _schema(track.pairs, message_format, ids)
    left_out = 0
    texts = _sources(track)
    for split in SPLITS:
        rows = np.flatnonzero(track.pairs["split"] == split)
        path = folder / track.name / f"{split}-{part:05d}.parquet"
        left_out += len(rows) - _write(path, _batches(track, rows, texts, schema), schema)
    return left_out


def finish(folder: Path, card: Card, left_out: Mapping[str, int]) -> pd.DataFrame:
    """Number the files of a folder made by `write_track`, write its card, and return one row a file."""
    rows = []
    for name, out in left_out.items():
        for lost in (folder / name).glob(".*"):
            lost.unlink()
        for split in SPLITS:
            parts = sorted((folder / name).glob(f"{split}-*.parquet"))
            for number, part in enumerate(parts):
                file = part.rename(folder / name / f"{split}-{number:05d}-of-{len(parts):05d}.parquet")
                counts = (pq.read_metadata(file).num_rows, file.stat().st_size, out)
                rows.append((name, split, file.relative_to(folder).as_posix(), *counts))
    files = pd.DataFrame(rows, columns=["config", "split", "file", "rows", "bytes", "left_out"])
    if files.empty:
        raise ValueError("there is no pair to write; pairing.attrition says what became of the candidates")
    (folder / "README.md").write_text(render(card, folder, files), encoding="utf-8")
    return files


def push(folder: str | Path, repo_id: str, *, dry_run: bool = True, private: bool = True) -> pd.DataFrame:
    """Return what goes to the Hugging Face Hub (file, bytes); upload it only when `dry_run` is False."""
    folder = Path(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if folder / "README.md" not in files:
        raise ValueError(f"{folder} is not a complete dataset: it has no README.md")
    if not dry_run:
        from huggingface_hub import HfApi

        api = HfApi()
        api.create_repo(repo_id, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(repo_id=repo_id, repo_type="dataset", folder_path=folder)
    rows = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
    return pd.DataFrame(rows, columns=["file", "bytes"])


def whole_numbers(ids: pd.Series | pd.Index) -> bool:
    """Whether all ids are whole numbers in their usual form, so that int64 holds them without a change."""
    return bool(pd.Series(ids).astype("str").str.fullmatch(r"-?[1-9]\d{0,17}|0").all())


def _schema(pairs: pd.DataFrame, message_format: str, ids: pa.DataType | None) -> pa.Schema:
    if message_format == "json":
        ids = ids or (pa.int64() if whole_numbers(pairs["sample_id"]) else pa.string())
        return pa.schema(PUBLISHED_COLUMNS | {"sample_id": ids})
    if message_format == "messages":
        columns = PUBLISHED_COLUMNS | {"sample_id": pa.string()} | dict.fromkeys(MORE_COLUMNS, pa.string())
        columns |= dict.fromkeys(TEXT_COLUMNS, MESSAGES)
        return pa.schema({name: kind for name, kind in columns.items() if name in pairs})
    raise ValueError(f"message_format is {message_format!r}; it is 'messages' or 'json'")


def _write(path: Path, tables: Iterator[pa.Table], schema: pa.Schema) -> int:
    rows = 0
    scalars = [name for name in schema.names if name not in TEXT_COLUMNS]
    options = {"compression": "zstd", "use_dictionary": scalars, "write_statistics": scalars}
    with replacing(path) as beside, pq.ParquetWriter(beside, schema, **options) as writer:
        while group := list(islice(tables, ROW_GROUP // BATCH)):
            if table := pa.concat_tables(group):
                writer.write_table(table, row_group_size=ROW_GROUP)
                rows += len(table)
    if not rows:
        path.unlink()
    return rows


def _batches(track: Track, rows: Ints, sources: Sequence[Texts], schema: pa.Schema) -> Iterator[pa.Table]:
    encode = as_messages if schema.field("prompt").type == MESSAGES else as_json
    for start in range(0, len(rows), BATCH):
        some = rows[start : start + BATCH]
        part = track.pairs.iloc[some]
        texts = [source.take(some).distinct() for source in sources]
        _refuse_empty(part, texts)
        keep = np.flatnonzero(~equal_answers(*texts[1:]))
        columns = _scalars(part.iloc[keep], schema)
        for name, (values, back) in zip(TEXT_COLUMNS, texts, strict=True):
            system, role = (track.system, "user") if name == "prompt" else ("", "assistant")
            columns[name] = encode(values, system, role).take(pa.array(back[keep]))
        yield pa.table(columns, schema=schema)


def _sources(track: Track) -> list[Texts]:
    if track.texts is None:
        return [Texts.of(track.pairs[name]) for name in TEXT_COLUMNS]
    user, text = Texts.of(track.texts["user"]), Texts.of(track.texts["text"])
    sources = zip(TEXT_COLUMNS, (user, text, text), strict=True)
    return [source.take(track.pairs[name].to_numpy()) for name, source in sources]


def _refuse_empty(part: pd.DataFrame, texts: Sequence[Distinct]) -> None:
    for name, (values, back) in zip(TEXT_COLUMNS, texts, strict=True):
        blank = pc.or_(pc.utf8_is_space(values), pc.equal(pc.binary_length(values), 0)).fill_null(True)
        if pc.any(blank).as_py():
            row = part.iloc[np.flatnonzero(blank.to_numpy(zero_copy_only=False)[back])[0]]
            where = {key: row[key] for key in ("sample_id", "chosen_model", "rejected_model")}
            raise ValueError(f"{name} is empty in the pair {where}; a trainer cannot use it")


def _scalars(part: pd.DataFrame, schema: pa.Schema) -> dict[str, Any]:
    columns = {field.name: part[field.name] for field in schema if field.name not in TEXT_COLUMNS}
    columns["sample_id"] = columns["sample_id"].astype("str")
    if pa.types.is_integer(schema.field("sample_id").type):
        columns["sample_id"] = columns["sample_id"].astype("int64")
    return {name: pa.Array.from_pandas(column, type=schema.field(name).type) for name, column in columns.items()}
