"""Sources: recipes and instructions from the built-in files, from a reader's own files, or from a dataset.

A source is "builtin", a CSV, JSONL, JSON or Parquet file, a glob of them, or "hf:<dataset>[:<split>]". The columns of
AlchemyBench, UltraFeedback, TruthfulQA and FalseQA are recognised, others are mapped by `columns` {ours: theirs}.
Texts stay as they are, with "\\n" as the end of a line. An id is text; a row without one is named by a hash of its
content, so that other rows do not matter. Nothing is dropped in silence: what cannot be used is an error, or a count
in `Loaded.left_out`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import pandas as pd

from helpers.sources import readers
from helpers.sources.readers import Part, Row, SourceError

__all__ = ["Loaded", "SourceError", "instructions", "recipes"]

Names = Mapping[str, tuple[str, ...]]

# Our column: the names it is known by, of which the first present counts; an empty one says that it may be absent.
RECIPE: Names = {
    "sample_id": ("sample_id", "id", ""),
    "contribution": ("contribution", "title"),
    "recipe": ("recipe",),
    "Material_Name": ("Material_Name", ""),
    "process": ("process", ""),
    "domain": ("domain", ""),
}
INSTRUCTION: Names = {
    "sample_id": ("sample_id", "id", ""),
    "dataset_name": ("dataset_name", "source"),
    "instruction": ("instruction",),
    "correct_answers": ("correct_answers", ""),
    "incorrect_answers": ("incorrect_answers", ""),
}
TRUTHFUL_QA: Names = {
    "sample_id": INSTRUCTION["sample_id"],
    "instruction": ("Question",),
    "correct_answers": ("Correct Answers",),
    "incorrect_answers": ("Incorrect Answers",),
}
FALSE_QA: Names = {
    "sample_id": INSTRUCTION["sample_id"],
    "instruction": ("question",),
    "correct_answers": ("answer",),
    "label": ("label",),
}
QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
TEXT_LIST = re.compile(rf"\[\s*(?:{QUOTED}(?:\s*,\s*{QUOTED})*\s*,?)?\s*\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rows to use, how many were read, and how many of them were left out for which reason."""

    frame: pd.DataFrame
    rows_read: int
    left_out: dict[str, int]


def recipes(source: str, n: int | None = None, columns: Mapping[str, str] | None = None) -> Loaded:
    """Load the first n recipes: sample_id, contribution, recipe, Material_Name, process, domain, source.

    Left out and counted: a row whose contribution or recipe is empty, and one without an id that repeats an earlier
    row. Raises SourceError.

    >>> loaded = recipes("builtin", n=2)
    >>> loaded.frame["sample_id"].tolist(), loaded.rows_read == 2 + loaded.left_out["after the first 2"]
    (['B001', 'B002'], True)
    """
    rows = []
    for part in _parts(source, "recipes.jsonl", columns):
        rows += _records(part, RECIPE, columns)
    return _loaded(rows, RECIPE, ("contribution", "recipe"), n, by="")


def instructions(
    source: str,
    n_per_subset: int | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    subsets: Collection[str] | None = None,
) -> Loaded:
    """Load the first n instructions of each subset, with their reference answers as lists.

    Columns: sample_id, dataset_name (the subset), instruction, correct_answers, incorrect_answers, source. Answers
    given as text are a list written out, or separated by ";". Of FalseQA the rows with label 1 are taken. A subset
    that is not among `subsets`, where these are given, is an error. Left out and counted as for recipes.

    >>> instructions("builtin", n_per_subset=1).frame["dataset_name"].tolist()[:3]
    ['sharegpt', 'ultrachat', 'flan']
    """
    rows = []
    for part in _parts(source, "instructions.jsonl", columns):
        if {"Question", "Correct Answers"} <= set(part.columns):
            rows += [row | {"dataset_name": "truthful_qa"} for row in _records(part, TRUTHFUL_QA, columns)]
        elif {"question", "answer", "label"} <= set(part.columns):
            rows += [_false_qa(row) for row in _records(part, FALSE_QA, columns)]
        else:
            rows += [_ultrafeedback(row) for row in _records(part, INSTRUCTION, columns)]
    _check_subsets(rows, subsets)
    return _loaded(rows, INSTRUCTION, ("dataset_name", "instruction"), n_per_subset, by="dataset_name")


def _parts(source: str, builtin: str, columns: Mapping[str, str] | None) -> list[Part]:
    if source == "builtin":
        path = str(resources.files("helpers") / "data" / builtin)
        return [part._replace(name="builtin") for part in readers.read(path, [*RECIPE, *INSTRUCTION])]
    tables = (RECIPE, INSTRUCTION, TRUTHFUL_QA, FALSE_QA)
    known = {name for table in tables for names in table.values() for name in names}
    for ours in columns or {}:
        if ours not in {*RECIPE, *INSTRUCTION}:
            raise SourceError(f"columns: {ours!r} is none of our columns {', '.join({**RECIPE, **INSTRUCTION})}")
    return readers.read(source, known | set((columns or {}).values()))


def _records(part: Part, names: Names, columns: Mapping[str, str] | None) -> list[Row]:
    """Turn a part's rows into ours; `at` and `id_at` say where a row and its own id (if it has one) stand."""
    mapped = {} if part.name == "builtin" else {ours: (theirs,) for ours, theirs in (columns or {}).items()}
    found = {ours: _find(part, ours, mapped.get(ours, known)) for ours, known in names.items()}
    records = []
    for number, row in enumerate(part.rows, 1):
        at = f"{part.where}, row {number}"
        record = {ours: _value(ours, row.get(theirs), f"{at}, column {theirs!r}") for ours, theirs in found.items()}
        id_at = f"{at}, column {found['sample_id']!r}" if record["sample_id"] else ""
        records.append(record | {"source": part.name, "at": at, "id_at": id_at})
    return records


def _find(part: Part, ours: str, names: tuple[str, ...]) -> str:
    for name in names:
        if name in part.columns or not name:
            return name
    sought = " or ".join(map(repr, names))
    raise SourceError(
        f"{part.where}: has no column {sought} for {ours!r}, only {', '.join(part.columns)}; "
        f"name it by the parameter columns: {{{ours}: its name}}"
    )


def _value(ours: str, value: Any, at: str) -> Any:
    if ours.endswith("_answers"):
        return _answers(value, at)
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n")
    if isinstance(value, bool | list | dict) or (ours == "sample_id" and isinstance(value, float)):
        raise SourceError(
            f"{at}: {value!r} is no {'id: give text or whole numbers' if ours == 'sample_id' else 'text'}"
        )
    return str(value)


def _answers(value: Any, at: str) -> list[str]:
    if isinstance(value, str):
        value = _written_list(value.strip(), at) if value.strip().startswith("[") else value.split(";")
    if not isinstance(value, list | None) or not all(isinstance(text, str) for text in value or []):
        raise SourceError(f"{at}: {value!r} is no list of texts")
    return [text.strip() for text in value or [] if text.strip()]


def _written_list(text: str, at: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        if TEXT_LIST.fullmatch(text):  # so that ['a' 'b'], an array printed by numpy, is not read as ['ab']
            return ast.literal_eval(text)
    raise SourceError(f"{at}: {text[:60]!r} starts like a list of texts, but is none")


def _false_qa(row: Row) -> Row:
    if row["label"] not in ("0", "1"):
        raise SourceError(f"{row['at']}, column 'label': {row['label']!r} is neither 0 nor 1")
    skip = "" if row["label"] == "1" else "label is 0"
    return row | {"dataset_name": "false_qa", "incorrect_answers": [], "skip": skip}


def _ultrafeedback(row: Row) -> Row:
    none = row["correct_answers"] == row["incorrect_answers"] == ["None"]  # how that dataset writes "no reference"
    return row | {"correct_answers": [], "incorrect_answers": []} if none else row


def _check_subsets(rows: Iterable[Row], subsets: Collection[str] | None) -> None:
    for row in rows:
        if subsets is not None and row["dataset_name"] not in subsets:
            raise SourceError(f"{row['at']}: unknown subset {row['dataset_name']!r}; known: {', '.join(subsets)}")


def _loaded(rows: list[Row], columns: Iterable[str], required: tuple[str, ...], n: int | None, by: str) -> Loaded:
    _check_ids(rows)
    kept: dict[str, Row] = {}
    left_out, taken = Counter[str](), Counter[str]()
    for row in rows:
        key, group = row["sample_id"] or _content_id(row, required), row.get(by, "")
        empty = [name for name in required if not row[name].strip()]
        if row.get("skip") or empty:
            left_out[row.get("skip") or f"{empty[0]} is empty"] += 1
        elif key in kept:
            left_out["repeats an earlier row"] += 1
        elif n is not None and taken[group] >= n:
            left_out[f"after the first {n}"] += 1
        else:
            kept[key] = row | {"sample_id": key}
            taken[group] += 1
    if not kept:
        raise SourceError(f"{rows[0]['at'].split(', row')[0]}: no row can be used: {dict(left_out)}")
    return Loaded(_frame(kept.values(), [*columns, "source"]), len(rows), dict(left_out))


def _check_ids(rows: Iterable[Row]) -> None:
    places: dict[str, list[str]] = {}
    for row in rows:
        if row["id_at"]:
            places.setdefault(row["sample_id"], []).append(row["id_at"])
    repeated = [f"{key!r} ({'; '.join(where[:3])})" for key, where in places.items() if len(where) > 1]
    if repeated:
        raise SourceError(f"{len(repeated)} ids stand more than once: {', '.join(repeated[:3])}")


def _content_id(row: Row, columns: Iterable[str]) -> str:
    return hashlib.sha256("\x1f".join(row[name] for name in columns).encode()).hexdigest()[:16]


def _frame(rows: Iterable[Row], columns: Iterable[str]) -> pd.DataFrame:
    kinds = {name: object if name.endswith("_answers") else "str" for name in columns}
    rows = list(rows)
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in kinds.items()})
