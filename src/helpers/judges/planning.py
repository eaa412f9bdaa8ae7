"""What asking would take, before it costs anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from helpers.answers import Request, Store
from helpers.judges import local
from helpers.judges.accounts import UNSET_COMPLETION_TOKENS, estimate
from helpers.judges.models import Model, keys

__all__ = ["ASSUMPTIONS", "Average", "averages", "plan", "together", "tokenizer"]

PROMPTS_COUNTED = 100
TYPICAL_TOKENS = 400  # a reply, where the store holds none of the model
TOKENS_A_SECOND = 100.0  # the same
ASSUMPTIONS = (
    "cost_low and minutes assume that replies are as long and as slow as the stored ones of the model, on average; "
    f"where there are none, {TYPICAL_TOKENS} tokens (or max_tokens, if less) at {TOKENS_A_SECOND:g} tokens a second. "
    f"cost_high assumes that each is as long as max_tokens allows ({UNSET_COMPLETION_TOKENS:,} where it is not set); "
    "retries are not counted, and no server was contacted."
)
STORED = """SELECT model, avg(completion_tokens), avg(nullif(seconds, 0)) FROM replies
    WHERE state >= 0 GROUP BY model"""  # a reply from a batch file took no time of its own


class Average(NamedTuple):
    """What a model's stored replies took on average; None where no reply says."""

    tokens: float | None = None
    seconds: float | None = None


def averages(store: Store) -> dict[str, Average]:
    """Return what the stored replies of each model took; reads the whole store, so ask once for several plans."""
    return {name: Average(*means) for name, *means in store.query(STORED)}


def plan(
    requests: Iterable[Request],
    *,
    models: Mapping[str, Model],
    store: Store,
    concurrency: int = 64,
    stored: Mapping[str, Average] | None = None,
) -> pd.DataFrame:
    """Return one row a model: what is asked for, what the store has, and what the rest would take.

    Columns: model, kind, requests (distinct), in_store, to_ask, prompt_tokens and counted_by (the model's tokenizer
    where it is on this machine, else a quarter of the characters), completion_tokens (at most), cost_low (replies of
    the length of those stored so far on average, else of 400 tokens, and never longer than they may be), cost_high
    (each as long as it may be), currency, minutes (replies as slow as those stored so far, else at 100 tokens a second
    and as long as for cost_low, and never over the limits a minute, where the longest reply counts), too_long (by the
    estimate, prompt and longest reply do not fit into the context) and ready: `yes`, `not contacted` for a server, or
    what is missing. Retries are not counted. `ASSUMPTIONS` says this to the reader of the table. `stored` spares the
    look at all replies (`averages`).
    """
    requests = list(requests)
    distinct = dict(zip(keys(requests, models), requests, strict=True))
    answered, _ = store.known(list(distinct))
    stored = averages(store) if stored is None else stored
    rows = []
    for name in dict.fromkeys(request.model for request in requests):
        mine = {key: request for key, request in distinct.items() if request.model == name}
        todo = [request for key, request in mine.items() if key not in answered]
        counts = {"requests": len(mine), "in_store": len(mine) - len(todo), "to_ask": len(todo)}
        rows.append(_row(models[name], todo, stored.get(name, Average()), concurrency) | counts)
    columns = ["model", "kind", "requests", "in_store", "to_ask", "prompt_tokens", "counted_by", "completion_tokens"]
    return pd.DataFrame(rows, columns=[*columns, "cost_low", "cost_high", "currency", "minutes", "too_long", "ready"])


def together(plans: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Add up the plans of requests that are asked one part after the other."""
    rows = pd.concat(list(plans), ignore_index=True)
    told = dict.fromkeys(["kind", "counted_by", "currency"], "first") | {"ready": _least_ready}
    how = {name: told.get(name, _sum) for name in rows.columns if name != "model"}
    return rows.groupby("model", sort=False, as_index=False).agg(how)


def _sum(column: pd.Series) -> Any:
    return column.sum(skipna=False)


def _least_ready(column: pd.Series) -> str:
    return next((str(told) for told in column if told != "yes"), "yes")


def _row(model: Model, todo: Sequence[Request], stored: Average, concurrency: int) -> dict[str, Any]:
    if model.kind == "rules":
        prompt, likely, completion, counted_by, minutes = 0, 0, 0, "no tokens", 0.0
    else:
        prompt, counted_by = _prompt_tokens(model, todo)
        longest = [estimate(model, request)[1] for request in todo]
        completion, typical = sum(longest), stored.tokens or TYPICAL_TOKENS
        likely = round(sum(min(typical, most) for most in longest))
        seconds = len(todo) * stored.seconds if stored.seconds else likely / TOKENS_A_SECOND
        minutes = _minutes(model, len(todo), prompt + completion, seconds, concurrency)
    return {
        "model": model.name,
        "kind": model.kind,
        "prompt_tokens": prompt,
        "counted_by": counted_by,
        "completion_tokens": completion,
        "cost_low": model.cost(prompt, likely),
        "cost_high": model.cost(prompt, completion),
        "currency": model.currency,
        "minutes": minutes,
        "too_long": sum(sum(estimate(model, request)) > model.context for request in todo) if model.context else 0,
        "ready": _readiness(model) if todo else "yes",
    }


def _readiness(model: Model) -> str:
    if trouble := model.key_trouble():
        return f"{model.key_env} {trouble}"
    if model.kind == "local" and not local.installed():
        return "not installed"
    return "not contacted" if model.kind == "endpoint" else "yes"


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
    limits = [seconds / 60 / at_once]
    limits += [count / model.requests_per_minute] if model.requests_per_minute else []
    limits += [tokens / model.tokens_per_minute] if model.tokens_per_minute else []
    return max(limits)
