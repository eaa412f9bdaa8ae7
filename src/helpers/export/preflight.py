"""What a trainer's tokenizer makes of a dataset: lengths, what the cut at max_length takes away, what would be enough.

TRL's DPOTrainer renders prompt and answer with the chat template, drops a row whose prompt alone fills `max_length`,
and keeps the first `max_length` tokens of the others; a judge's score stands at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Preflight", "preflight"]

Pair = dict[str, list[dict[str, str]]]

STEP = 64


@dataclass(frozen=True)
class Preflight:
    """Token counts of `rows` of the dataset's `of` rows, and the shares of them that a cut at `max_length` harms.

    `lengths` has one row for prompt, chosen, rejected and longest (prompt with its longer answer) and the columns
    median, p90, p99, max. `dropped`: the prompt alone fills max_length. `cut`: an answer loses its end. `score_cut`: an
    answer loses its last JSON object. `identical`: nothing that differs is left. `enough` is the least multiple of 64
    that cuts nothing; `rendered` is the first row's prompt and chosen answer as the model sees them.
    """

    rows: int
    of: int
    max_length: int
    lengths: pd.DataFrame
    dropped: float
    cut: float
    score_cut: float
    identical: float
    enough: int
    rendered: str

    def table(self) -> pd.DataFrame:
        """Return the shares in words: check, share."""
        checks = {
            f"prompt alone fills {self.max_length} tokens: the trainer drops the pair": self.dropped,
            f"an answer is cut at {self.max_length} tokens": self.cut,
            "the cut takes an answer's score": self.score_cut,
            "chosen and rejected are the same after the cut": self.identical,
        }
        return pd.DataFrame(checks.items(), columns=["check", "share"])


def preflight(
    folder: str | Path, tokenizer: Any, *, max_length: int = 1024, config: str = "recipes", rows: int = 2_000
) -> Preflight:
    """Tokenize every n-th pair of a dataset folder, at most `rows`, as DPOTrainer does.

    `tokenizer` is a transformers tokenizer, or the name or folder of one (extra `train`). Raises ValueError when it has
    no chat template, or one that refuses our roles.
    """
    tokenizer = _load(tokenizer) if isinstance(tokenizer, str | Path) else tokenizer
    if not getattr(tokenizer, "chat_template", None):
        raise ValueError("the tokenizer has no chat template; take that of a chat or instruct model")
    pairs, total = _some(Path(folder) / config, rows)
    facts = pd.DataFrame([_measure(tokenizer, pair, max_length) for pair in pairs])
    lengths = facts[["prompt", "chosen", "rejected", "longest"]].quantile([0.5, 0.9, 0.99, 1]).T
    lengths.columns = ["median", "p90", "p99", "max"]
    shares = {name: float(facts[name].mean()) for name in ("dropped", "cut", "score_cut", "identical")}
    enough = -(-int(facts["longest"].max()) // STEP) * STEP
    rendered = tokenizer.apply_chat_template(pairs[0]["prompt"] + pairs[0]["chosen"], tokenize=False)
    return Preflight(len(pairs), total, max_length, lengths, **shares, enough=enough, rendered=rendered)


def _load(name: str | Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name)


def _some(folder: Path, rows: int) -> tuple[list[Pair], int]:
    files = sorted(folder.glob("*.parquet"))
    try:
        total = sum(pq.read_metadata(file).num_rows for file in files)
        pairs = list(_every(files, max(1, -(-total // rows))))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{folder} cannot be read as Parquet, or is not complete: {error}") from error
    if not pairs:
        raise ValueError(f"{folder} holds no pairs")
    return pairs, total


def _every(files: list[Path], step: int) -> Iterator[Pair]:
    seen = 0
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(1_024, columns=["prompt", "chosen", "rejected"]):
            for row in batch.take(list(range(-seen % step, len(batch), step))).to_pylist():
                yield {name: json.loads(text) if isinstance(text, str) else text for name, text in row.items()}
            seen += len(batch)


def _measure(tokenizer: Any, pair: Pair, max_length: int) -> dict[str, Any]:
    prompt = len(_tokens(tokenizer, pair["prompt"], add_generation_prompt=True))
    whole = {side: _tokens(tokenizer, pair["prompt"] + pair[side]) for side in ("chosen", "rejected")}
    kept = {side: tokens[:max_length] for side, tokens in whole.items()}
    cut = [side for side in whole if len(whole[side]) > max_length]
    return {
        "prompt": prompt,
        **{side: len(tokens) - prompt for side, tokens in whole.items()},
        "longest": max(map(len, whole.values())),
        "dropped": prompt >= max_length,
        "cut": bool(cut),
        "score_cut": any(_score(pair[side]) not in tokenizer.decode(kept[side]) for side in cut),
        "identical": kept["chosen"] == kept["rejected"],
    }


def _tokens(tokenizer: Any, messages: list[dict[str, str]], **options: bool) -> list[int]:
    try:
        tokens = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, **options)["input_ids"]
    except Exception as error:
        if type(error).__name__ != "TemplateError":
            raise
        roles = ", ".join(message["role"] for message in messages)
        raise ValueError(f"the tokenizer's chat template refuses the roles {roles}: {error}") from error
    return list(tokens)


def _score(answer: list[dict[str, str]]) -> str:
    """Return the last JSON object of an answer, or its last word when it has none."""
    text = answer[-1]["content"]
    start, end = text.rfind("{"), text.rfind("}") + 1
    return text[start:end] if 0 <= start < end else text.split()[-1]
