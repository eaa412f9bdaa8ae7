"""Judgements and completions: the requests made from items, and the typed rows made from what the store answers."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from helpers import records, rubrics
from helpers import verdicts as parser
from helpers.answers import Answer, Request
from helpers.pairing import texts

__all__ = [
    "SCORES",
    "completion_requests",
    "completions",
    "for_pairing",
    "is_answer",
    "judgements",
    "of_answers",
    "pair_tables",
    "references",
    "requests",
    "typed_pairs",
    "usage",
    "with_items",
]

SCORES = tuple(dict.fromkeys(rubrics.RECIPE.scores + rubrics.INSTRUCTION.scores))
FROM_ANSWER = (
    "reasoning",
    "finish_reason",
    "requested_model",
    "served_model",
    "prompt_tokens",
    "completion_tokens",
)
# These are answers, though some hold no score: asking again would buy the same one.
FINAL = {"ok", "repaired", "out_of_range", "refused"}


def requests(
    items: pd.DataFrame,
    judges: Sequence[str],
    *,
    repeats: int = 1,
    temperature: float = 0.0,
    max_tokens: int | None = None,
    references: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
) -> tuple[list[Request], pd.DataFrame]:
    """Make the judges' requests for items of one track, and the table that says which request is whose.

    Items without a response are left out. The rubric's JSON schema goes to the models that take one. `references`
    gives the correct and incorrect answers by sample_id. Returns the requests and a table of the same length: item_id,
    judge, repeat. Items stay in order within a judge, so that a server can keep the rubric, which comes first.
    """
    rubric = rubrics.INSTRUCTION if (items["track"] == "instruction").any() else rubrics.RECIPE
    schema = rubrics.response_format(rubric)
    sampling = _sampling(temperature=temperature, max_tokens=max_tokens, response_format=schema)
    answered = items[items["response"].notna()]
    prompts = [
        _messages(track, sample_id, prompt, response, references or {})
        for track, sample_id, prompt, response in _rows(answered, "track", "sample_id", "prompt", "response")
    ]
    ids = answered["item_id"].tolist()
    rows = [
        (item_id, judge, repeat, messages)
        for judge in judges
        for item_id, messages in zip(ids, prompts, strict=True)
        for repeat in range(repeats)
    ]
    asked = [Request(judge, messages, sampling, repeat) for _, judge, repeat, messages in rows]
    return asked, pd.DataFrame([row[:3] for row in rows], columns=["item_id", "judge", "repeat"])


def completion_requests(items: pd.DataFrame, *, max_tokens: int | None = None) -> list[Request]:
    """Make the request of every drawn completion: the principle's prompt as system text, then the instruction.

    >>> row = {"model": "m", "system_prompt": "Be honest.", "prompt": "Is it?"}
    >>> [message["content"] for message in completion_requests(pd.DataFrame([row]))[0].messages]
    ['Be honest.', 'Is it?']
    """
    sampling = _sampling(max_tokens=max_tokens)
    return [
        Request(model, [{"role": "system", "content": system}, {"role": "user", "content": prompt}], sampling)
        for model, system, prompt in _rows(items, "model", "system_prompt", "prompt")
    ]


def is_answer(answer: Answer) -> bool:
    """Say whether a judge's reply settles its request: it holds a verdict, or is a refusal or off the scale."""
    return parser.parse(answer.text, finish_reason=answer.finish_reason, refusal=answer.refusal).status in FINAL


def judgements(
    asked: pd.DataFrame, keys: Iterable[bytes], answers: Iterable[Answer | None], failed: Mapping[bytes, str]
) -> pa.Table:
    """Read a verdict from every answer; a request without one has the status `failed` and says why.

    `asked` is the table that `requests` returns, `keys` and `answers` are in its order. The rows of the result are
    sorted by item, judge and repeat.
    """
    schema = records.judgements(SCORES)
    columns: dict[str, list[Any]] = {name: [] for name in schema.names if name not in asked}
    for key, answer in zip(keys, answers, strict=True):
        for name, value in _judgement(key, answer, failed).items():
            columns[name].append(value)
    table = pa.table({name: asked[name].tolist() if name in asked else columns[name] for name in schema.names}, schema)
    return table.sort_by([("item_id", "ascending"), ("judge", "ascending"), ("repeat", "ascending")])


def completions(
    items: pd.DataFrame, keys: Iterable[bytes], answers: Iterable[Answer | None], failed: Mapping[bytes, str]
) -> pd.DataFrame:
    """Return a row for every drawn completion: its response, or none and the reason."""
    rows = []
    for item_id, model, key, answer in zip(items["item_id"], items["model"], keys, answers, strict=True):
        response = answer.text.strip() if answer is not None else ""
        status = "ok" if response else "failed" if answer is None else "refused" if answer.refusal else "empty"
        reason = None if response else failed.get(key, "the model has not been asked") if answer is None else status
        rows.append(
            {"item_id": item_id, "model": model, "status": status, "reason": reason, "response": response or None}
            | _from_answer(key, answer)
        )
    return pd.DataFrame(rows, columns=records.SCHEMAS["completions"].names)


def references(instructions: pd.DataFrame) -> dict[str, tuple[list[str], list[str]]]:
    """Return the correct and the incorrect answers by sample_id, for the subsets that have them."""
    rows = _rows(instructions, "sample_id", "correct_answers", "incorrect_answers")
    return {sample_id: (list(correct), list(incorrect)) for sample_id, correct, incorrect in rows}


def usage(*answered: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Add up the tokens of answers by the model that was asked for, as the servers counted them."""
    rows = pd.concat([table[["requested_model", "prompt_tokens", "completion_tokens"]] for table in answered])
    sums = rows.dropna().groupby("requested_model", as_index=False).sum()
    return {name: {"prompt": int(sent), "completion": int(got)} for name, sent, got in _rows(sums, *sums.columns)}


def with_items(judgements: pd.DataFrame, items: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Put columns of the items beside their judgements."""
    return judgements.merge(items[["item_id", *columns]], on="item_id", how="left", validate="m:1")


def for_pairing(judgements: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts on recipes with their user text and reply: what `pairing.pair_rows` takes.

    The user text, which the panel shares, is categorical and so held once. A verdict that a judge repeats at the end
    of its reply is cut off, as published.
    """
    users = [rubrics.user_text(rubrics.recipe_messages(*row)) for row in _rows(items, "prompt", "response")]
    codes, distinct = pd.factorize(pd.Series(users, dtype="str"))
    columns = ["sample_id", "dataset_name", "perturbation_type", "perturbation_category", "perturbation_rate"]
    known = items[["item_id", *columns]].assign(user=pd.Categorical.from_codes(codes, distinct))
    replies = judgements["text"].copy()
    fenced_twice = replies.str.count("```").fillna(0) > 2
    replies[fenced_twice] = [parser.without_repeats(text) for text in replies[fenced_twice]]
    return judgements.assign(text=replies).merge(known, on="item_id", validate="m:1")


def of_answers(judgements: pd.DataFrame, items: pd.DataFrame, completions: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts on completions with the answer they are about: what `pairing.instruction_pairs` takes."""
    columns = ["item_id", "sample_id", "dataset_name", "model", "principle", "prompt"]
    answers = items[columns].merge(completions[["item_id", "response"]], on="item_id", validate="1:1")
    return judgements.merge(answers, on="item_id", validate="m:1")


def pair_tables(pairs: pd.DataFrame, verdicts: pd.DataFrame, rows: int = 8_192) -> Iterator[pa.Table]:
    """Yield recipes' pairs as the table `pairs`; the texts of each part are looked up when it is its turn."""
    for start in range(0, max(1, len(pairs)), rows):
        yield typed_pairs(texts.with_texts(pairs.iloc[start : start + rows], verdicts), "recipe")


def typed_pairs(pairs: pd.DataFrame, track: str) -> pa.Table:
    """Return pairs with their texts under the schema of the table `pairs`; a column that they lack is null."""
    frame, schema = pairs.assign(track=track), records.SCHEMAS["pairs"]
    arrays = [
        pa.array(frame[field.name], field.type, from_pandas=True)
        if field.name in frame
        else pa.nulls(len(frame), field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _rows(frame: pd.DataFrame, *columns: str) -> Iterable[tuple[Any, ...]]:
    return frame[list(columns)].itertuples(index=False, name=None)


def _sampling(**fields: Any) -> Mapping[str, Any]:
    return types.MappingProxyType({name: value for name, value in fields.items() if value is not None})


def _messages(
    track: str,
    sample_id: str,
    prompt: str,
    response: str,
    references: Mapping[str, tuple[Sequence[str], Sequence[str]]],
) -> list[dict[str, str]]:
    if track == "recipe":
        return rubrics.recipe_messages(prompt, response)
    correct, incorrect = references.get(sample_id, ((), ()))
    return rubrics.instruction_messages(prompt, response, correct, incorrect)


def _judgement(key: bytes, answer: Answer | None, failed: Mapping[bytes, str]) -> dict[str, Any]:
    scores: dict[str, float | None] = dict.fromkeys(SCORES)
    verdict: dict[str, Any]
    if answer is None:
        verdict = {"overall_score": None, "status": "failed", "reason": failed.get(key, "the judge has not been asked")}
    else:
        read = parser.parse(answer.text, finish_reason=answer.finish_reason, refusal=answer.refusal)
        scores |= {name: value for name, value in read.scores.items() if name in scores}
        verdict = {"overall_score": read.overall_score, "status": read.status, "reason": read.reason or None}
    text = answer.text if answer is not None else None
    return scores | verdict | {"text": text} | _from_answer(key, answer)


def _from_answer(key: bytes, answer: Answer | None) -> dict[str, Any]:
    return {name: getattr(answer, name, None) for name in FROM_ANSWER} | {"answer_key": key.hex()}
