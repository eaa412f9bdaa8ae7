"""Run the five notebooks through papermill, in order, and skip those whose inputs have not changed.

One process runs them all. While one notebook works, the kernel of the next one starts, and a kernel is killed once its
outputs are saved: five fresh kernels then cost little more than one.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from helpers import runs
from helpers.params import Params, declared, dump
from helpers.runs import STAGES
from helpers.sources import readers

__all__ = ["StageError", "run"]

# A night of paid judging is long; a notebook that is silent for two days is stuck.
CELL_TIMEOUT_SECONDS = 48 * 3600
# How a run is watched or spread over machines changes no number.
VOLATILE = {"interactive", "concurrency", "budget", "budget_requests", "engine", "dask_scheduler"}
PROGRESS = re.compile(r"[A-Z][a-z ]+: [\d,]+ of [\d,]+\b")


class StageError(RuntimeError):
    """A notebook that stopped; names it, the cell, the error, and where to look."""


def run(
    params: Params,
    *,
    force: bool = False,
    until: str = STAGES[-1],
    given: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Run the notebooks up to `until` and return the run's folder.

    A stage is skipped when its parameters, its notebook, the package, its inputs and its outputs are those of its last
    complete run, unless `force`. `given` are the parameters as they were given, for the manifest. Raises StageError.
    """
    from filelock import FileLock, Timeout

    folder = runs.outputs_folder() / params.run_id
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            return _run(folder, params, force, until, dict(given or {}), say)
    except Timeout:
        raise StageError(
            f"{runs.show_path(folder)} is in use by another run; wait for it, or give this one its own run_id"
        ) from None


def _run(
    folder: Path, params: Params, force: bool, until: str, given: dict[str, Any], say: Callable[[str], None]
) -> Path:
    if len(params.judges) < 2 and until in STAGES[3:]:
        raise StageError(
            f"'judges' is {params.judges}: one judge makes no pairs; add another, or stop with --until {STAGES[2]}"
        )
    started = time.monotonic()
    runs.write_text(folder / "params.yaml", dump(params))
    stages = STAGES[: STAGES.index(until) + 1]
    notebooks = {stage: runs.project_root() / "notebooks" / f"{stage}.ipynb" for stage in stages}
    keys = _Keys(params, folder)
    values = {stage: _values(notebooks[stage], params) for stage in stages}
    waiting: list[Any] = []
    try:
        for stage in stages:
            key = keys.of(stage, notebooks[stage], values[stage])
            if not force and _is_current(folder, stage, key):
                say(f"{stage:<14} up to date")
            else:
                kernel = waiting.pop() if waiting else _start_kernel()
                following = STAGES[STAGES.index(stage) + 1 :][:1]
                waiting += [_start_kernel() for name in following if name in stages]
                _execute(folder, stage, notebooks[stage], values[stage], kernel, say)
                _seal(folder, stage, key)
    finally:
        for kernel in waiting:
            _kill(kernel)
    if until == STAGES[-1]:
        _complete(folder, params, given, time.monotonic() - started, say)
    return folder


def _values(notebook: Path, params: Params) -> dict[str, Any]:
    names = declared(notebook)
    return {name: value for name, value in params.model_dump().items() if name in names} | {"interactive": False}


def _execute(
    folder: Path, stage: str, notebook: Path, values: dict[str, Any], kernel: Any, say: Callable[[str], None]
) -> None:
    import papermill
    from papermill.exceptions import PapermillExecutionError

    output = folder / "notebooks" / f"{stage}.ipynb"
    output.parent.mkdir(exist_ok=True)
    started = time.monotonic()
    try:
        papermill.execute_notebook(
            notebook,
            output,
            values,
            kernel_name="python3",
            progress_bar=False,
            request_save_on_cell_execute=False,
            execution_timeout=CELL_TIMEOUT_SECONDS,
            stdout_file=_ProgressLines(),
            km=kernel,
        )
    except PapermillExecutionError as error:
        raise StageError(
            f"{stage} stopped in cell {error.cell_index}: {error.ename}: {error.evalue.strip()}\n"
            f"The notebook with the traceback is {runs.show_path(output)}; `plumbline run` resumes there."
        ) from None
    except Exception as error:  # a kernel that died or never answered
        raise StageError(
            f"{stage} stopped: {type(error).__name__}: {str(error).strip()}\n`plumbline run` resumes there."
        ) from error
    finally:
        _kill(kernel)
    say(f"{stage:<14} {time.monotonic() - started:6.1f} s, of which cells {_cell_seconds(output):.1f} s")


class _ProgressLines:
    """Pass a notebook's lines of progress on to the terminal, indented below the line of its stage."""

    def write(self, text: str) -> None:
        sys.stdout.write("".join(f"  {line}\n" for line in text.splitlines() if PROGRESS.match(line)))

    def flush(self) -> None:
        sys.stdout.flush()


def _start_kernel() -> Any:
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import run_sync

    kernel = AsyncKernelManager(kernel_name="python3")
    # Its warning that local messages are not encrypted would stand above every run.
    run_sync(kernel.start_kernel)(cwd=str(Path.cwd()), extra_arguments=["--log-level=ERROR"])
    return kernel


def _kill(kernel: Any) -> None:
    from jupyter_core.utils import run_sync

    if kernel.has_kernel:
        run_sync(kernel.shutdown_kernel)(now=True)


def _cell_seconds(output: Path) -> float:
    cells = json.loads(output.read_text(encoding="utf-8"))["cells"]
    return sum(cell["metadata"].get("papermill", {}).get("duration") or 0.0 for cell in cells)


class _Keys:
    """Everything that a stage's result rests on, hashed: parameters, notebook, package, inputs, earlier data."""

    def __init__(self, params: Params, folder: Path) -> None:
        self.folder = folder
        self.common = [_fingerprint(), *(_file_hashes(params))]

    def of(self, stage: str, notebook: Path, values: Mapping[str, Any]) -> str:
        earlier = STAGES[: STAGES.index(stage)]
        records = [runs.read_record(self.folder, name) for name in earlier]
        data = [item for record in records for item in record.get("outputs", {}).items() if item[0].startswith("data/")]
        kept = {name: value for name, value in values.items() if name not in VOLATILE}
        parts = [*self.common, runs.sha256(notebook), sorted(kept.items()), sorted(data)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _fingerprint() -> str:
    files = sorted(
        path for path in Path(str(resources.files("helpers"))).rglob("*") if path.is_file() and path.suffix != ".pyc"
    )
    return hashlib.sha256("".join(runs.sha256(path) for path in files).encode()).hexdigest()


def _file_hashes(params: Params) -> Iterable[str]:
    """Yield the hash of every local file that the parameters name; a built-in or a hub's name stands for itself."""
    for name in (params.recipes, params.instructions, params.principle_mix, params.models_file):
        try:
            found = readers.paths(name.removeprefix("hf:").partition(":")[0] if name.startswith("hf:") else name)
        except readers.SourceError:
            found = []
        files = [file for path in found for file in ([path] if path.is_file() else sorted(path.rglob("*.*")))]
        yield name
        yield from (runs.sha256(file) for file in files if file.is_file())


def _is_current(folder: Path, stage: str, key: str) -> bool:
    record = runs.read_record(folder, stage)
    if record.get("key") != key or record.get("unfinished"):
        return False
    return all(
        (folder / name).exists() and runs.sha256(folder / name) == digest for name, digest in record["outputs"].items()
    )


def _seal(folder: Path, stage: str, key: str) -> None:
    record = runs.read_record(folder, stage)
    if not record:
        raise StageError(f"{stage} ran to its end but recorded nothing: its last cell must call `run.finish(...)`")
    runs.write_text(folder / "stages" / f"{stage}.json", runs.to_json(record | {"key": key}))


def _complete(folder: Path, params: Params, given: dict[str, Any], seconds: float, say: Callable[[str], None]) -> None:
    from helpers import report

    runs.write_summary(folder)
    manifest = runs.manifest(folder, params, given)
    page = report.build(folder, manifest)
    runs.write_text(folder / "manifest.json", runs.to_json(manifest))
    for stage, about in manifest["stages"].items():
        for warning in about["warnings"]:
            say(f"{stage:<14} note: {warning}")
    say(f"{'report':<14} {runs.show_path(page)}")
    say(f"done in {seconds:.1f} s: {runs.show_path(folder)}")
