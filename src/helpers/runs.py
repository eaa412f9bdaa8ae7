"""A run's folder: its tables, figures, numbers and manifest, read and written in one place.

outputs/<run_id>/ holds params.yaml, manifest.json, report.html and the folders notebooks, stages, data, tables,
figures and dataset. Every file is written beside its place and then renamed, so that a kill or a full disk leaves the
last complete one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.params import Params, dump, load
from helpers.records import SCHEMAS

if TYPE_CHECKING:
    from helpers import figures

__all__ = [
    "STAGES",
    "Run",
    "find_input",
    "open_run",
    "outputs_folder",
    "project_root",
    "replacing",
    "replacing_folder",
    "sha256",
    "show_path",
]

Part: TypeAlias = pd.DataFrame | pa.Table | Iterable[pa.Table]
STAGES = ("01_sampling", "02_judging", "03_anchoring", "04_pairing", "05_analysis")
ROW_GROUP = 8_192


def project_root() -> Path:
    """Return the folder that holds notebooks/ and params/: the checkout, or else the working directory."""
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / "notebooks").is_dir() else Path.cwd()


def outputs_folder() -> Path:
    """Return where runs are kept: $PLUMBLINE_OUTPUTS (another disk, a test), or outputs/ in the project."""
    return Path(os.environ.get("PLUMBLINE_OUTPUTS") or project_root() / "outputs")


def find_input(name: str) -> Path:
    """Find a file named in a parameter: from the working directory, else from the project's root."""
    for base in (Path.cwd(), project_root()):
        if (base / name).exists():
            return base / name
    places = dict.fromkeys(str(base) for base in (Path.cwd(), project_root()) if not Path(name).is_absolute())
    raise FileNotFoundError(f"{name!r} is not there{'; looked in ' + ' and '.join(places) if places else ''}")


def show_path(path: Path) -> str:
    """Write a path as a reader would type it: from the working directory where that is possible."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside `folder`, and put it in its place once everything has been written."""
    beside, old = (folder.with_name(f".{folder.name}.{end}") for end in (f"new.{os.getpid()}", "old"))
    if old.exists() and not folder.exists():
        old.rename(folder)
    left = [path for path in folder.parent.glob(f".{folder.name}.new.*") if not _is_alive(path.suffix[1:])]
    for stale in (*left, old):
        shutil.rmtree(stale, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        yield beside
        if folder.exists():
            folder.rename(old)
        beside.rename(folder)
    except OSError as error:
        raise OSError(error.errno, f"{folder} was not written, the last complete one is untouched ({error})") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write to, and rename it to `path` only when everything has been written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        os.replace(beside, path)
    except OSError as error:
        raise OSError(error.errno, f"{show_path(path)} was not written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with Unix line ends, replacing the old file in one step."""
    with replacing(path) as beside:
        beside.write_bytes(text.encode())


@dataclass(frozen=True)
class Run:
    """One stage's view of a run folder."""

    path: Path
    stage: str
    params: Params
    writes: set[str] = field(default_factory=set)
    cited: dict[str, Any] = field(default_factory=dict)

    def write(self, name: str, table: Part) -> None:
        """Write data/<name>.parquet under the table's schema; a table in pieces is never held as a whole."""
        with self.writing(name) as add:
            add(table)

    @contextmanager
    def writing(self, name: str, *, buckets: int = 1) -> Iterator[Callable[[Part], None]]:
        """Give a function that adds parts to data/<name>.parquet; of a part in pieces no more than one is held.

        With several buckets the table is a folder with a file for each part, which pandas and pyarrow read alike.
        """
        path = self.path / "data" / f"{name}.parquet"
        with ExitStack() as stack:
            beside = stack.enter_context(replacing_folder(path) if buckets > 1 else replacing(path))
            writers: list[pq.ParquetWriter] = []

            def add(part: Part) -> None:
                for place, table in enumerate(_pieces(part, SCHEMAS.get(name))):
                    if not writers or (buckets > 1 and place == 0):
                        file = beside / f"{len(writers):05d}.parquet" if buckets > 1 else beside
                        writers.append(stack.enter_context(pq.ParquetWriter(file, table.schema, compression="zstd")))
                    writers[-1].write_table(table, row_group_size=ROW_GROUP)
                if buckets > 1:
                    writers[-1].close()

            yield add
            for writer in writers:
                writer.close()
            if path.is_dir() and buckets == 1:
                shutil.rmtree(path)
            elif path.is_file() and buckets > 1:
                path.unlink()
        self.writes.update(part.relative_to(self.path).as_posix() for part in self._parts(name))

    def _parts(self, name: str) -> list[Path]:
        """Return the files of a table, one or one a bucket; says which notebook writes it when there are none."""
        path = self.path / "data" / f"{name}.parquet"
        parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path] if path.exists() else []
        if not parts:
            raise FileNotFoundError(
                f"{show_path(path)} is not there yet: run the notebooks before {self.stage} first, "
                f"or all of them with `plumbline run`"
            )
        return parts

    def wrote(self, name: str) -> Path:
        """Note that this stage writes a file of the run's folder, and return its path."""
        self.writes.add(name)
        return self.path / name

    def read(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        part: int | None = None,
        where: Sequence[tuple[str, str, Any]] | None = None,
    ) -> pd.DataFrame:
        """Read a table, or of a table in several files one part; `where` are Parquet filters: (column, "in", values).

        A table in one file has one part, whatever its number. Says which notebook writes the table when it is not
        there.
        """
        parts = self._parts(name)
        if part is not None and len(parts) != (1 if self.params.buckets == 1 else self.params.buckets + 1):
            raise ValueError(
                f"the table {name} of {show_path(self.path)} was not written with buckets={self.params.buckets}; "
                f"give {self.stage} the buckets of the run, or run the notebooks before it again"
            )
        chosen = parts if part is None or len(parts) == 1 else [parts[part]]
        frame: pd.DataFrame = pa.concat_tables(_read(path, columns, where) for path in chosen).to_pandas()
        return frame

    def save_table(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Write tables/<name>.csv and .tex, and hand the table back for display."""
        from helpers import tables

        write_text(self.wrote(f"tables/{name}.csv"), table.to_csv(index=False, lineterminator="\n"))
        write_text(self.wrote(f"tables/{name}.tex"), tables.to_latex(table))
        return table

    def save_figure(self, name: str, drawn: Any, data: pd.DataFrame, caption: str) -> figures.Shown:
        """Write figures/<name> as PDF, PNG, SVG, the plotted numbers (CSV) and the caption, and return the picture."""
        from helpers import figures

        shown = figures.save(drawn, self.path / "figures" / name, data, caption)
        self.writes.update(f"figures/{file.name}" for file in shown.files)
        return shown

    def numbers(self, **values: Any) -> dict[str, Any]:
        """Note the numbers that this stage's prose cites, and hand them back; `finish` writes them."""
        self.cited.update({key: _plain(value) for key, value in values.items()})
        return values

    def finish(
        self,
        *,
        inputs: Mapping[str, Any] | None = None,
        unfinished: int = 0,
        warnings: Sequence[str] = (),
        **counts: Any,
    ) -> None:
        """Record what this stage read, wrote and counted; the manifest is put together from these records.

        `unfinished` counts what a later run may still get, such as judgements that failed: the stage is then run again.
        `warnings` say what a reader of the results must know; the command repeats them.
        """
        record = {
            "stage": self.stage,
            "params": self.params.model_dump(include=self.params.model_fields_set),
            "inputs": dict(inputs or {}),
            "outputs": {name: sha256(self.path / name) for name in sorted(self.writes)},
            "numbers": self.cited,
            "counts": {key: _plain(value) for key, value in counts.items()},
            "unfinished": unfinished,
            "warnings": list(warnings),
        }
        write_text(self.path / "stages" / f"{self.stage}.json", to_json(record))
        write_summary(self.path)


def read_record(folder: Path, stage: str) -> dict[str, Any]:
    """Return what a stage recorded of itself; a record that is missing or damaged is an empty one."""
    try:
        record = json.loads((folder / "stages" / f"{stage}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) and record.get("stage") == stage else {}


def write_summary(folder: Path) -> None:
    """Write tables/summary.json and numbers.tex anew from the records of the stages."""
    from helpers import tables

    records = {stage: read_record(folder, stage) for stage in STAGES}
    summary = {stage: record["numbers"] for stage, record in records.items() if record}
    write_text(folder / "tables" / "summary.json", to_json(summary))
    write_text(folder / "tables" / "numbers.tex", tables.numbers_tex(summary))


def open_run(params: Params, stage: str) -> Run:
    """Open the run's folder for a stage; what this stage and later ones have said of themselves is taken back.

    The manifest goes too: a run in which a stage is being made again is not complete. Stages before this one that have
    not been run, or whose inputs have been made again since, are run first, so that every notebook works alone.
    """
    if stage not in STAGES:
        raise ValueError(f"{stage!r} is not a stage; known are: {', '.join(STAGES)}")
    run = Run(outputs_folder() / params.run_id, stage, params)
    earlier = STAGES[: STAGES.index(stage)]
    if not all(read_record(run.path, name) for name in earlier):
        _run_until(earlier[-1], params)
    for folder in ("data", "tables", "figures", "stages"):
        (run.path / folder).mkdir(parents=True, exist_ok=True)
    if (run.path / "manifest.json").exists():
        print("manifest.json is taken back, since this stage is made again; `plumbline run` writes it and the report.")
    resting = [run.path / "stages" / f"{later}.json" for later in STAGES[STAGES.index(stage) :]]
    strays = [
        path
        for folder in ("data", "tables")
        for path in (run.path / folder).glob(".*")
        if not _is_alive(path.name.rpartition(".")[2])
    ]
    for stale in (run.path / "manifest.json", *resting, *strays):
        shutil.rmtree(stale) if stale.is_dir() else stale.unlink(missing_ok=True)
    return run


def _read(path: Path, columns: Sequence[str] | None, where: Sequence[tuple[str, str, Any]] | None) -> pa.Table:
    try:
        schema = pq.read_schema(path)
        # An empty list would have no type to compare with.
        typed = [
            (name, sign, pa.array(value, schema.field(name).type) if sign == "in" else value)
            for name, sign, value in where or ()
        ]
        return pq.read_table(path, columns=None if columns is None else list(columns), filters=typed or None)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(
            f"{show_path(path)} is not a complete Parquet file ({error}); run its notebook again"
        ) from None


def _pieces(part: Part, schema: pa.Schema | None) -> Iterator[pa.Table]:
    if isinstance(part, pd.DataFrame):
        part = pa.Table.from_pandas(part, schema, preserve_index=False)
    return map(plain_text, [part] if isinstance(part, pa.Table) else part)


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return int(process) != os.getpid()


def plain_text(table: pa.Table) -> pa.Table:
    """Write every text column as `string`: pandas makes `large_string`, and readers refuse to join the two."""
    fields = [field.with_type(pa.string()) if pa.types.is_large_string(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields)).replace_schema_metadata(None)


def _run_until(stage: str, params: Params) -> None:
    folder = outputs_folder() / params.run_id
    print(f"{show_path(folder)} is not complete up to {stage}: running the notebooks before this one first.")
    given = {name: value for name in STAGES for name, value in read_record(folder, name).get("params", {}).items()}
    # A notebook's default says nothing of what an earlier stage was told.
    defaults = load().model_dump()
    given |= {name: value for name, value in params.model_dump().items() if value != defaults[name]}
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "params.yaml"
        file.write_text(dump(load(overrides=given)), encoding="utf-8")
        command = [sys.executable, "-m", "helpers", "run", str(file), "--until", stage]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"the notebooks before this one did not end well: {done.stderr.strip()}")


def manifest(folder: Path, params: Params, given: Mapping[str, Any]) -> dict[str, Any]:
    """Put together what a complete run says of itself, from the records of its stages and the files in its folder."""
    records = [read_record(folder, stage) for stage in STAGES]
    outputs = {name for record in records for name in record["outputs"]} | {"tables/summary.json", "tables/numbers.tex"}
    return {
        "run_id": folder.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "params": params.model_dump() | {"interactive": False},
        "params_given": dict(given),
        "code": _code_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _versions(),
        "stages": {
            record["stage"]: {key: record[key] for key in ("inputs", "counts", "warnings")} for record in records
        },
        "outputs": {name: _describe(folder / name) for name in sorted(outputs) if (folder / name).exists()},
    }


def _describe(path: Path) -> dict[str, Any]:
    described: dict[str, Any] = {"sha256": sha256(path), "bytes": path.stat().st_size}
    return described | ({"rows": pq.read_metadata(path).num_rows} if path.suffix == ".parquet" else {})


def _code_version() -> dict[str, Any]:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(project_root()), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def _versions() -> dict[str, str]:
    names = ("plumbline", "numpy", "pandas", "pyarrow", "scipy", "statsmodels", "matplotlib", "chemicals", "papermill")
    return {name: metadata.version(name) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def to_json(value: Any) -> str:
    """Write strict JSON with sorted keys; NaN is an error."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
