"""The command `plumbline`: a thin layer over the package's functions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helpers.params import ParameterError, Params, describe, load
from helpers.runs import STAGES, find_input, outputs_folder, show_path

if TYPE_CHECKING:
    from helpers.answers import Store
    from helpers.judges import Model
    from helpers.workload import Workload

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 when all is well, else print one readable line and return 1."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options) or 0)
    except BrokenPipeError:
        return 0  # whoever read our lines has seen enough
    except (ParameterError, OSError, ValueError, RuntimeError) as error:
        print(f"plumbline: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("plumbline: stopped; what was answered is stored, and the next run goes on from there", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="plumbline", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    run = _with_params(commands, "run", _run, "run the five notebooks into outputs/<run_id>/")
    run.add_argument("--force", action="store_true", help="run every stage again, also where nothing has changed")
    run.add_argument("--until", choices=STAGES, default=STAGES[-1], help="stop after this stage")
    _command(commands, "parameters", lambda _: print(describe()), "list every parameter, its default and its meaning")
    _with_params(commands, "check", _check, "check parameters, models, keys and inputs, and run nothing")
    _with_params(commands, "plan", _plan, "say what a run would ask, and what that takes, before it costs anything")
    report = _command(commands, "report", _report, "make report.html again from the executed notebooks")
    report.add_argument("run_id")
    answers = _command(commands, "answers", _answers, "show what the answer store holds; export or import it")
    answers.add_argument("--export", metavar="FILE.jsonl", help="write every answer to a file")
    answers.add_argument("--import", dest="imported", metavar="FILE.jsonl", help="add the answers of an export")
    batch = commands.add_parser("batch", help="requests as OpenAI Batch files, and their results")
    directions = batch.add_subparsers(required=True, metavar="write|read")
    _with_params(directions, "write", _batch_write, "write outputs/<run_id>/batch/*.jsonl, one model a file")
    read = _command(directions, "read", _batch_read, "put the results in these files into the store")
    read.add_argument("files", nargs="+", metavar="results.jsonl")
    read.add_argument("--models-file", default="params/models.yaml")
    leaks = _command(commands, "leaks", _leaks, "report what two Parquet files, folders or splits of pairs share")
    leaks.add_argument("train", help="a Parquet file, a folder of them, or hf:dataset:split")
    leaks.add_argument("validation")
    leaks.add_argument("--figure", metavar="FILE.png", help="draw the report as well")
    preflight = _command(commands, "preflight", _preflight, "count what a trainer's cut at max_length takes away")
    preflight.add_argument("dataset", help="a run's dataset folder")
    preflight.add_argument("--model", required=True, help="name or folder of a tokenizer (extra 'train')")
    preflight.add_argument("--max-length", type=int, default=1024)
    push = _command(
        commands, "push", _push, "upload a dataset to the Hugging Face Hub; without --yes only show what goes"
    )
    push.add_argument("dataset", help="a run's dataset folder")
    push.add_argument("repo_id", help="owner/name")
    push.add_argument("--yes", action="store_true", help="really upload")
    push.add_argument("--public", action="store_true", help="for everybody to see; private otherwise")
    return parser


def _command(commands: Any, name: str, command: Any, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary)
    parser.set_defaults(command=command)
    return parser


def _with_params(commands: Any, name: str, command: Any, summary: str) -> argparse.ArgumentParser:
    parser = _command(commands, name, command, summary)
    parser.add_argument("files", nargs="*", metavar="params.yaml", help="parameter files; later ones win")
    parser.add_argument(
        "-p", dest="overrides", action="append", default=[], metavar="name=value", help="wins over files"
    )
    return parser


def _given(options: argparse.Namespace) -> dict[str, str]:
    given = {}
    for item in options.overrides:
        name, sign, value = item.partition("=")
        if not sign:
            raise ParameterError(f"-p {item!r} is not of the form name=value")
        given[name.strip()] = value.strip()
    return given


def _load(options: argparse.Namespace) -> Params:
    return load(options.files, _given(options))


def _run(options: argparse.Namespace) -> None:
    from helpers import stages

    given = {"files": options.files, "overrides": _given(options)}
    stages.run(_load(options), force=options.force, until=options.until, given=given)


def _models(params: Params) -> dict[str, Model]:
    from helpers.judges import load as load_models

    names = [*params.models, *params.judges, *params.instruction_judges, *filter(None, [params.name_model])]
    return load_models(find_input(params.models_file), names)


def _workload(params: Params, store: Store) -> Workload:
    from helpers.workload import workload

    return workload(params, _models(params), store)


def _store() -> Store:
    from helpers.answers import Store, archive

    store = Store(outputs_folder() / "answers.sqlite")
    archive.import_recorded(store)
    return store


def _check(options: argparse.Namespace) -> None:
    params = _load(options)
    models = _models(params)
    for model in models.values():
        model.secret()
    with _store() as store:
        print(_workload(params, store).rows.to_string(index=False, header=False))
    print(f"{params.run_id}: parameters, inputs and {len(models)} models are in order")


def _plan(options: argparse.Namespace) -> None:
    from helpers import tables
    from helpers.judges.planning import ASSUMPTIONS, plan

    params = _load(options)
    with _store() as store:
        work = _workload(params, store)
        table = plan(work.requests + work.waiting, models=_models(params), store=store, concurrency=params.concurrency)
    print(tables.show(work.rows, "What the run works on"), end="\n\n")
    print(tables.show(table, "What it would ask"))
    print(ASSUMPTIONS)
    if work.waiting:
        print(
            f"\n{len(work.waiting):,} of these wait for names or completions; assumed: no names, and 120 tokens each."
        )


def _report(options: argparse.Namespace) -> None:
    from helpers import report

    print(show_path(report.build(outputs_folder() / options.run_id)))


def _answers(options: argparse.Namespace) -> None:
    from helpers import tables
    from helpers.answers import archive

    with _store() as store:
        if options.imported:
            print(f"{archive.import_jsonl(store, options.imported):,} answers added from {options.imported}")
        if options.export:
            print(f"{archive.export_jsonl(store, options.export):,} answers written to {options.export}")
        print(tables.show(archive.stats(store), f"{show_path(store.path)}, {store.path.stat().st_size / 1e6:,.1f} MB"))


def _batch_write(options: argparse.Namespace) -> None:
    from helpers import tables
    from helpers.judges import batch

    params = _load(options)
    with _store() as store:
        work = _workload(params, store)
        folder = outputs_folder() / params.run_id / "batch"
        files = batch.write(work.requests, folder, models=_models(params), store=store)
    print(tables.show(files, f"Batch files in {show_path(folder)}"))
    if work.waiting:
        print(f"{len(work.waiting):,} judgements wait for names or completions: read the results, then write again")


def _batch_read(options: argparse.Namespace) -> None:
    from helpers.judges import batch
    from helpers.judges import load as load_models

    with _store() as store:
        counts = batch.read(options.files, models=load_models(find_input(options.models_file)), store=store)
    print(", ".join(f"{number:,} {what}" for what, number in counts.items()))


def _leaks(options: argparse.Namespace) -> int:
    from helpers import tables
    from helpers.pairing import leaks

    report = leaks.check(_pairs_at(options.train), _pairs_at(options.validation))
    print(tables.show(report.table(), f"{options.train} (train) and {options.validation} (validation)", rows=40))
    if options.figure:
        import matplotlib.pyplot as plt

        from helpers import figures

        figures.use_style("screen")
        figures.plot_leaks(report.table())
        plt.savefig(options.figure)
    return 0 if report.clean and report.sound else 2


def _pairs_at(name: str) -> Any:
    if not name.startswith("hf:"):
        return name
    from datasets import load_dataset

    path, _, split = name.removeprefix("hf:").rpartition(":")
    return load_dataset(path or split, split=split if path else "train")


def _preflight(options: argparse.Namespace) -> None:
    from helpers import tables
    from helpers.export.preflight import preflight

    found = preflight(options.dataset, options.model, max_length=options.max_length)
    print(found.rendered, end="\n\n")
    print(tables.show(found.lengths, "Tokens"), end="\n\n")
    print(tables.show(found.table(), f"At max_length {found.max_length}; {found.enough} cuts nothing"))


def _push(options: argparse.Namespace) -> None:
    from helpers import export, tables

    files = export.push(options.dataset, options.repo_id, dry_run=not options.yes, private=not options.public)
    where = "public" if options.public else "private"
    print(tables.show(files, f"{'Uploaded' if options.yes else 'Would go'} to {options.repo_id} ({where})", rows=200))


if __name__ == "__main__":
    sys.exit(main())
