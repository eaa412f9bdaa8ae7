"""The answer store for people: what is in it, and its answers as JSONL to keep, to share and to ship."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from helpers.answers.store import ANSWERED, UNUSABLE, Reply, Store, StoreError
from helpers.runs import replacing

__all__ = ["export_jsonl", "import_jsonl", "import_recorded", "stats"]

SUMS = {
    "answers": "sum(state = 1)",
    "unusable": "sum(state = 0)",
    "failures": "sum(state = -1)",
    "surplus": "sum(state = 2)",
    "prompt_tokens": "sum(prompt_tokens)",
    "completion_tokens": "sum(completion_tokens)",
    "cost": "sum(cost)",
    "seconds": "avg(CASE WHEN state >= 0 THEN seconds END)",
    "first": "datetime(min(started), 'unixepoch')",
    "last": "datetime(max(started), 'unixepoch')",
}


def stats(store: Store) -> pd.DataFrame:
    """Count what is stored, one row a model.

    Columns: model, answers, unusable (replies without a verdict), failures, surplus (a second run asked the same at the
    same time), prompt_tokens, completion_tokens, cost, seconds (mean of a reply), first and last (UTC).
    """
    columns = ", ".join(f"{sql} AS {name}" for name, sql in SUMS.items())
    rows = store.query(f"SELECT model, {columns} FROM replies GROUP BY model ORDER BY model")
    return pd.DataFrame(rows, columns=["model", *SUMS])


def export_jsonl(store: Store, path: str | Path) -> int:
    """Write every answer, and every reply without a verdict, as a line of JSON; return how many.

    The file takes its place only when all of it is written. Failures are not in it.
    """
    count = 0
    columns = ", ".join(Reply._fields)
    with replacing(Path(path)) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for row in store.query(f"SELECT {columns} FROM replies WHERE state IN (0, 1) ORDER BY id"):
            fields = dict(zip(Reply._fields, row, strict=True)) | {"key": row[0].hex()}
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")
            count += 1
    return count


def import_recorded(store: Store) -> int:
    """Store the recorded answers that come with the package, which make the demo run without a model.

    They are SmolLM2-135M-Instruct's, under five sampling settings, to the drawn requests of the built-in instructions.
    """
    return import_jsonl(store, Path(__file__).parents[1] / "data" / "recorded.jsonl")


def import_jsonl(store: Store, path: str | Path) -> int:
    """Store the lines of an export that are not there yet, all of them or none; return how many.

    Raises StoreError that names the file and the first line that is not one of an export.
    """
    with Path(path).open(encoding="utf-8") as lines:
        return store.add(_reply(line, f"{path}, line {number}") for number, line in enumerate(lines, 1))


def _reply(line: str, where: str) -> Reply:
    try:
        fields: dict[str, Any] = json.loads(line)
        reply = _checker().validate_python({**fields, "key": bytes.fromhex(fields["key"])}, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        raise _refused(where, f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise _refused(where, f"{type(error).__name__}: {error}") from None
    if len(reply.key) != 32 or reply.state not in (ANSWERED, UNUSABLE):
        raise _refused(where, "its key or its state is not one of an answer")
    return reply


@cache
def _checker() -> TypeAdapter[Reply]:
    return TypeAdapter(Reply)


def _refused(where: str, reason: str) -> StoreError:
    return StoreError(f"{where}: is not a line of an answers export ({reason}); nothing was imported")
