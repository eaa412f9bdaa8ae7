"""What asking would take, before it costs anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from helpers.answers import Request, Store
from helpers.judges import local
from helpers.judges.accounts import estimate
from helpers.judges.models import Model, ModelError, keys

__all__ = ["plan", "tokenizer"]

PROMPTS_COUNTED = 100
ASSUMED_SECONDS = 4.0  # a reply, where the store holds none of the model


def plan(
    requests: Iterable[Request], *, models: Mapping[str, Model], store: Store, concurrency: int = 64
) -> pd.DataFrame:
    """Return one row a model: what is asked for, what the store has, and what the rest would take.

    Columns: model, kind, requests (distinct), in_store, to_ask, prompt_tokens and counted_by (the model's tokenizer
    where it is on this machine, else a quarter of the characters), completion_tokens (at most), cost_low (if the
    replies had no length), cost_high (if each were as long as it may be), currency, minutes (under the limits a minute
    and at the speed of the replies stored so far, or 4 s each), too_long (by the estimate, prompt and longest reply do
    not fit into the context) and ready (its key is set, or it is installed). Retries are not counted.
    """
    requests = list(requests)
    distinct = dict(zip(keys(requests, models), requests, strict=True))
    answered, _ = store.known(list(distinct))
    took = dict(store.query("SELECT model, avg(seconds) FROM replies WHERE state >= 0 GROUP BY model"))
    rows = []
    for name in dict.fromkeys(request.model for request in requests):
        mine = {key: request for key, request in distinct.items() if request.model == name}
        todo = [request for key, request in mine.items() if key not in answered]
        counts = {"requests": len(mine), "in_store": len(mine) - len(todo), "to_ask": len(todo)}
        rows.append(_row(models[name], todo, took.get(name), concurrency) | counts)
    columns = ["model", "kind", "requests", "in_store", "to_ask", "prompt_tokens", "counted_by", "completion_tokens"]
    return pd.DataFrame(rows, columns=[*columns, "cost_low", "cost_high", "currency", "minutes", "too_long", "ready"])


def _row(model: Model, todo: Sequence[Request], seconds: float | None, concurrency: int) -> dict[str, Any]:
    if model.kind == "rules":
        prompt, completion, counted_by, minutes = 0, 0, "no tokens", 0.0
    else:
        prompt, counted_by = _prompt_tokens(model, todo)
        completion = sum(estimate(model, request)[1] for request in todo)
        minutes = _minutes(model, len(todo), prompt + completion, seconds or ASSUMED_SECONDS, concurrency)
    return {
        "model": model.name,
        "kind": model.kind,
        "prompt_tokens": prompt,
        "counted_by": counted_by,
        "completion_tokens": completion,
        "cost_low": model.cost(prompt, 0),
        "cost_high": model.cost(prompt, completion),
        "currency": model.currency,
        "minutes": minutes,
        "too_long": sum(sum(estimate(model, request)) > model.context for request in todo) if model.context else 0,
        "ready": _is_ready(model),
    }


def _is_ready(model: Model) -> bool:
    try:
        model.secret()
    except ModelError:
        return False
    return model.kind != "local" or local.installed()


def _prompt_tokens(model: Model, todo: Sequence[Request]) -> tuple[int, str]:
    estimates = [estimate(model, request)[0] for request in todo]
    count = tokenizer(model.model)
    if count is None or not todo:
        return sum(estimates), "a quarter of the characters"
    # A tokenizer takes a millisecond a prompt, so an even sample of them scales the estimate.
    step = max(1, len(todo) // PROMPTS_COUNTED)
    counted = sum(sum(count(str(message["content"])) for message in request.messages) for request in todo[::step])
    return round(sum(estimates) * counted / max(1, sum(estimates[::step]))), "tokenizer"


def tokenizer(name: str) -> Callable[[str], int] | None:
    """Return the token counter of a Hugging Face model id if it is on this machine; nothing is downloaded."""
    try:
        from transformers import AutoTokenizer

        encode = AutoTokenizer.from_pretrained(name, local_files_only=True).encode
    except (ImportError, OSError, ValueError):
        return None
    return lambda text: len(encode(text, add_special_tokens=False))


def _minutes(model: Model, count: int, tokens: int, seconds: float, concurrency: int) -> float:
    at_once = 1 if model.kind == "local" else min(concurrency, model.max_concurrency)
    limits = [count * seconds / 60 / at_once]
    limits += [count / model.requests_per_minute] if model.requests_per_minute else []
    limits += [tokens / model.tokens_per_minute] if model.tokens_per_minute else []
    return max(limits)
