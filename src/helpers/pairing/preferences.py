"""Anybody's preference rows, read in batches: text, lists of messages, or such lists written as JSON.

Without a column prompt, the prompt is what comes before the last message of the chosen conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Batch", "answers", "of_frame", "of_source", "prompt_text", "prompts"]

Batch = Mapping[str, Sequence[Any]]
ROWS = 4_096
COLUMNS = ("sample_id", "prompt", "chosen", "rejected")


def prompt_text(prompt: Any) -> str:
    """Return what the users and assistants of a prompt say, whichever way it is written.

    >>> prompt_text('[{"role": "system", "content": "Be strict."}, {"role": "user", "content": "Heat it."}]')
    'Heat it.'
    """
    messages = _messages(prompt)
    if isinstance(messages, str):
        return messages
    return "\n".join(_content(message) for message in messages if _role(message) != "system")


def _answer_text(answer: Any) -> str:
    messages = _messages(answer)
    return messages if isinstance(messages, str) else _content(messages[-1]) if messages else ""


def _messages(value: Any) -> str | list[dict[str, Any]]:
    """Return the messages of a list or of one written as JSON, else the text; a missing text is empty."""
    if isinstance(value, str):
        if value.startswith("[{"):
            with suppress(ValueError, AttributeError):
                messages: list[dict[str, Any]] = json.loads(value)
                return messages if all(map(_role, messages)) else value
        return value
    return [] if value is None or value is pd.NA or isinstance(value, float) else list(value)


def _role(message: Mapping[str, Any]) -> Any:
    return message.get("role", message.get("from"))


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content", message.get("value"))
    return "" if content is None else str(content)


def of_frame(pairs: pd.DataFrame) -> Iterator[Batch]:
    """Yield a table's rows."""
    for start in range(0, len(pairs), ROWS):
        part = pairs.iloc[start : start + ROWS]
        yield {name: part[name].tolist() for name in COLUMNS if name in part}


def of_source(source: Any) -> Iterator[Batch]:
    """Yield the rows of a Parquet file, of several in a list or a folder, or of a `datasets.Dataset`."""
    if not isinstance(source, str | Path | list):
        yield from source.iter(batch_size=ROWS)
        return
    for file in source if isinstance(source, list) else _files(Path(source)):
        yield from _of_file(file)


def _files(path: Path) -> list[Path]:
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path} holds no .parquet file")
    return files


def _of_file(path: Path) -> Iterator[Batch]:
    try:
        with pq.ParquetFile(path) as file:
            names = [name for name in COLUMNS if name in file.schema_arrow.names]
            if not {"chosen", "rejected"} <= set(names):
                raise ValueError(f"{path} has the columns {file.schema_arrow.names}; pairs have chosen and rejected")
            for batch in file.iter_batches(ROWS, columns=names):
                yield batch.to_pydict()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet, or is not complete: {error}") from error


def prompts(batch: Batch) -> list[str]:
    """Return the prompts as text."""
    if "prompt" in batch:
        return [prompt_text(prompt) for prompt in batch["prompt"]]
    conversations = [_messages(chosen) for chosen in batch["chosen"]]
    return ["" if isinstance(messages, str) else prompt_text(messages[:-1]) for messages in conversations]


def answers(batch: Batch, n: int) -> tuple[list[str], list[str]]:
    """Return the texts of chosen and rejected; a table without these columns gets their names instead."""
    chosen, rejected = (
        [_answer_text(answer) for answer in batch[side]] if side in batch else [side] * n
        for side in ("chosen", "rejected")
    )
    return chosen, rejected
