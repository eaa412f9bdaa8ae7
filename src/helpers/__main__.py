"""The command `plumbline`: a thin layer over the package's functions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from helpers.params import ParameterError, Params, load
from helpers.runs import STAGES, outputs_folder, show_path

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 when all is well, else print one readable line and return 1."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options) or 0)
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
    _with_params(commands, "check", _check, "check parameters, models and inputs, and run nothing")
    report = commands.add_parser("report", help="make report.html again from the executed notebooks")
    report.add_argument("run_id")
    report.set_defaults(command=_report)
    return parser


def _with_params(commands: Any, name: str, command: Any, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary)
    parser.add_argument("files", nargs="*", metavar="params.yaml", help="parameter files; later ones win")
    parser.add_argument(
        "-p", dest="overrides", action="append", default=[], metavar="name=value", help="wins over files"
    )
    parser.set_defaults(command=command)
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


def _check(options: argparse.Namespace) -> None:
    params = _load(options)
    print(f"{params.run_id}: the parameters are in order")


def _report(options: argparse.Namespace) -> None:
    from helpers import report

    print(show_path(report.build(outputs_folder() / options.run_id)))


if __name__ == "__main__":
    sys.exit(main())
