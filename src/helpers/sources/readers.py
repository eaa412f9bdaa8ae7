"""Readers: the rows of files or of a dataset as they are; texts stay texts, whole numbers keep all their digits."""

from __future__ import annotations

import csv
import glob
import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from helpers import runs

__all__ = ["Part", "SourceError", "hashes", "paths", "read"]

Row = dict[str, Any]
Table = tuple[list[str], list[Row]]


class SourceError(ValueError):
    """An input that cannot be used; names the file, the column and the row."""


class Part(NamedTuple):
    """One file or dataset: its name without folders, its name in a message, all its columns, its rows."""

    name: str
    where: str
    columns: list[str]
    rows: list[Row]


def paths(source: str) -> list[Path]:
    """Find the file, or the files of a glob in order of name; from the working directory, else the project's root."""
    if not glob.has_magic(source):
        try:
            return [runs.find_input(source)]
        except FileNotFoundError as error:
            raise SourceError(f"no such file: {error}") from None
    for base in (Path.cwd(), runs.project_root()):
        if found := [base / name for name in sorted(glob.glob(source, root_dir=base, recursive=True))]:
            return [path for path in found if path.is_file()]
    raise SourceError(f"no file fits {source!r}, neither in {Path.cwd()} nor in {runs.project_root()}")


def hashes(source: str) -> dict[str, str]:
    """Return the name and SHA-256 of every local file behind a source; a built-in or a hub's dataset has none."""
    return {} if source == "builtin" or source.startswith("hf:") else {p.name: runs.sha256(p) for p in paths(source)}


def read(source: str, keep: Collection[str]) -> list[Part]:
    """Read a CSV, JSONL, JSON or Parquet file, a glob of them, or "hf:<dataset>[:<split>]"; of each row `keep` only.

    Raises SourceError for what is missing, empty, cut off or of another kind.
    """
    parts = [_dataset(source, keep)] if source.startswith("hf:") else [_file(path, keep) for path in paths(source)]
    for part in parts:
        if not part.rows:
            raise SourceError(f"{part.where}: holds no rows")
    return parts


def _file(path: Path, keep: Collection[str]) -> Part:
    where, reader = runs.show_path(path), READERS.get(path.suffix.lower())
    if reader is None:
        raise SourceError(f"{where}: is not a file that can be read; give {', '.join(READERS)}")
    try:
        return Part(path.name, where, *reader(path, keep))
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:
        raise SourceError(f"{where}: cannot be read, it may be cut off: {error}") from error


def _csv(path: Path, keep: Collection[str]) -> Table:
    csv.field_size_limit(2**31 - 1)  # a field may be longer than the 131,072 characters of the default
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        header = next(lines, [])
        if repeated := [name for name in header if header.count(name) > 1]:
            raise ValueError(f"column {repeated[0]!r} is there twice")
        rows = []
        for fields in filter(None, lines):
            if len(fields) != len(header):
                raise ValueError(f"line {lines.line_num} has {len(fields)} fields, the header has {len(header)}")
            rows.append({name: text for name, text in zip(header, fields, strict=True) if name in keep})
    return header, rows


def _jsonl(path: Path, keep: Collection[str]) -> Table:
    with path.open(encoding="utf-8-sig") as file:
        return _objects((_json_value(text, f"line {n}") for n, text in enumerate(file, 1) if text.strip()), keep)


def _json(path: Path, keep: Collection[str]) -> Table:
    rows = _json_value(path.read_text(encoding="utf-8-sig"), "the file")
    if not isinstance(rows, list):
        raise ValueError("it is not a list of objects")
    return _objects(rows, keep)


def _json_value(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON ({error.msg} at character {error.pos + 1})") from None


def _objects(values: Iterable[Any], keep: Collection[str]) -> Table:
    columns: dict[str, None] = {}
    rows = []
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise ValueError(f"row {number} is not an object with named values")
        columns.update(dict.fromkeys(value))
        rows.append({name: item for name, item in value.items() if name in keep})
    return list(columns), rows


def _parquet(path: Path, keep: Collection[str]) -> Table:
    names = pq.read_schema(path).names
    return names, pq.read_table(path, columns=[name for name in names if name in keep]).to_pylist()


READERS: dict[str, Callable[[Path, Collection[str]], Table]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".json": _json,
    ".parquet": _parquet,
}


def _dataset(source: str, keep: Collection[str]) -> Part:
    import datasets

    dataset, _, split = source.removeprefix("hf:").partition(":")
    folder = next((base / dataset for base in (Path.cwd(), runs.project_root()) if (base / dataset).is_dir()), dataset)
    try:
        loaded = datasets.load_dataset(str(folder), split=split or None)
    except Exception as error:  # the library raises many kinds; each means that this input cannot be had
        raise SourceError(f"{source}: cannot be loaded ({type(error).__name__}: {error})") from error
    if isinstance(loaded, datasets.DatasetDict):
        if len(loaded) > 1:
            raise SourceError(
                f"{source}: has the splits {', '.join(loaded)}; name one: hf:{dataset}:{next(iter(loaded))}"
            )
        loaded = next(iter(loaded.values()))
    names = [name for name in loaded.column_names if name in keep]
    return Part(
        Path(dataset).name if folder != dataset else dataset,
        source,
        loaded.column_names,
        loaded.select_columns(names).to_list(),
    )
