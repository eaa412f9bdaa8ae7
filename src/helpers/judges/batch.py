"""Requests as OpenAI Batch files, and their results back into the store: the way to a provider's batch service, to
`vllm run-batch` and so to a cluster.

A line's custom_id is the request's key, and nothing else joins a result to its request: results may come in any order,
in several files, in part, and twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from helpers.answers import Reply, Request, Store
from helpers.answers.store import FAILED, UNUSABLE
from helpers.judges import endpoint
from helpers.judges.lanes import Row
from helpers.judges.models import Model, keys
from helpers.judges.reading import Http
from helpers.judges.reading import read as read_reply
from helpers.judges.scrubbing import finished

__all__ = ["read", "write"]

MOST_LINES, MOST_BYTES = 50_000, 200_000_000
LINES_A_COMMIT = 1_000


def write(
    requests: Iterable[Request],
    folder: str | Path,
    *,
    models: Mapping[str, Model],
    store: Store,
    most_lines: int = MOST_LINES,
    most_bytes: int = MOST_BYTES,
) -> pd.DataFrame:
    """Write the requests to servers that the store has no answer to, one model a file, none over the size limits.

    Returns the files: model, file, requests, megabytes. Built-in judges and the model on this machine need no file.
    """
    requests = [request for request in requests if models[request.model].kind == "endpoint"]
    todo = dict(zip(keys(requests, models), requests, strict=True))
    answered, asked = store.known(list(todo))
    store.mark({key: request.model for key, request in todo.items() if key not in answered})
    rows = []
    for name in dict.fromkeys(request.model for request in requests):
        open_rows = (Row(k, r, asked.get(k, 0)) for k, r in todo.items() if r.model == name and k not in answered)
        lines = (_line(row, models[name]) for row in open_rows)
        for number, part in enumerate(_parts(lines, most_lines, most_bytes), 1):
            file = Path(folder) / f"{_file_name(name)}-{number:03d}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"".join(part))
            rows.append((name, str(file), len(part), sum(map(len, part)) / 1e6))
    return pd.DataFrame(rows, columns=["model", "file", "requests", "megabytes"])


def read(files: Iterable[str | Path], *, models: Mapping[str, Model], store: Store) -> dict[str, int]:
    """Put the results in these files into the store, and count what was in them.

    Counts `answers` (new replies; whether they hold a verdict is seen when they are asked for), `known` (stored
    before), `failed`, `unknown` (not of a file that was written here), `unreadable` (no line of a result, as the last
    one of a file that is still being written). Costs are the list prices; a batch discount is not known here.
    """
    owners = dict(store.query("SELECT key, model FROM written"))
    counts = dict.fromkeys(("answers", "known", "failed", "unknown", "unreadable"), 0)
    for file in files:
        with Path(file).open("rb") as lines:
            for part in _parts(filter(bytes.strip, lines), LINES_A_COMMIT, MOST_BYTES):
                found = [_reply(line, owners, models) for line in part]
                replies = [reply for reply in found if isinstance(reply, Reply)]
                answers = [reply for reply in replies if reply.state == UNUSABLE]
                new = store.add(answers)
                store.add(reply for reply in replies if reply.state == FAILED)
                counts["answers"] += new
                counts["known"] += len(answers) - new
                counts["failed"] += len(replies) - len(answers)
                for reason in ("unknown", "unreadable"):
                    counts[reason] += found.count(reason)
    store.checkpoint()
    return counts


def _line(row: Row, model: Model) -> bytes:
    line = {
        "custom_id": row.key.hex(),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": endpoint.body(model, row.request, seed=row.seed),
    }
    return json.dumps(line).encode() + b"\n"


def _parts(lines: Iterable[bytes], most_lines: int, most_bytes: int) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for line in lines:
        if part and (len(part) >= most_lines or size + len(line) > most_bytes):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield part


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in name)


def _reply(line: bytes, owners: Mapping[bytes, str], models: Mapping[str, Model]) -> Reply | str:
    """Read a line: a reply, or the name of the count that it belongs to."""
    try:
        result: dict[str, Any] = json.loads(line)
        key = bytes.fromhex(result["custom_id"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "unreadable"
    if key not in owners or owners[key] not in models:
        return "unknown"
    response = result.get("response")
    response = response if isinstance(response, dict) else {}
    # What went wrong stands in OpenAI's body, and beside vLLM's empty one.
    content = response.get("body") or {"error": result.get("error")}
    status = response.get("status_code")
    http = Http(status if isinstance(status, int) else 0, {}, json.dumps(content).encode())
    exchange = finished(read_reply(http, now=0.0))
    # Whether there is a verdict in it is seen when it is asked for.
    state = UNUSABLE if exchange.kind in ("answer", "empty") else FAILED
    return endpoint.as_reply(models[owners[key]], key, exchange, state, time.time())
