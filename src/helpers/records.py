"""The record shapes: one Arrow schema for each table that the notebooks hand on.

Ids are text everywhere; a missing score is null beside a status, never a number.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

__all__ = ["SCHEMAS", "judgements"]

TEXT, SCORE, COUNT = pa.string(), pa.float64(), pa.int64()
TEXTS = pa.list_(TEXT)
EDITS = pa.list_(
    pa.struct(
        [
            ("start", COUNT),
            ("end", COUNT),
            ("old", TEXT),
            ("new", TEXT),
            ("kind", TEXT),
            ("entity", TEXT),
            ("why", TEXT),
        ]
    )
)


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


_PERTURBATION = {"perturbation_type": TEXT, "perturbation_category": TEXT, "perturbation_rate": SCORE}
_ANSWER = {
    "reasoning": TEXT,
    "finish_reason": TEXT,
    "requested_model": TEXT,
    "served_model": TEXT,
    "prompt_tokens": COUNT,
    "completion_tokens": COUNT,
    "answer_key": TEXT,
}

SCHEMAS: dict[str, pa.Schema] = {
    "instructions": _schema(
        sample_id=TEXT,
        dataset_name=TEXT,
        instruction=TEXT,
        correct_answers=TEXTS,
        incorrect_answers=TEXTS,
        source=TEXT,
    ),
    "recipes": _schema(
        sample_id=TEXT, contribution=TEXT, recipe=TEXT, Material_Name=TEXT, process=TEXT, domain=TEXT, source=TEXT
    ),
    "items": _schema(
        item_id=TEXT,
        track=TEXT,
        sample_id=TEXT,
        source=TEXT,
        dataset_name=TEXT,
        **_PERTURBATION,
        rate_actual=SCORE,
        budget=COUNT,
        changes=EDITS,
        principle=TEXT,
        system_prompt=TEXT,
        model=TEXT,
        prompt=TEXT,
        response=TEXT,
    ),
    "completions": _schema(item_id=TEXT, model=TEXT, status=TEXT, reason=TEXT, response=TEXT, **_ANSWER),
    "pairs": _schema(
        track=TEXT,
        sample_id=TEXT,
        dataset_name=TEXT,
        split=TEXT,
        **_PERTURBATION,
        score_chosen=SCORE,
        score_rejected=SCORE,
        score_delta=SCORE,
        anchor_score=SCORE,
        chosen_model=TEXT,
        rejected_model=TEXT,
        chosen_principle=TEXT,
        rejected_principle=TEXT,
        Material_Name=TEXT,
        domain=TEXT,
        process=TEXT,
        pair_key=TEXT,
        prompt=TEXT,
        chosen=TEXT,
        rejected=TEXT,
    ),
    "anchors": _schema(track=TEXT, sample_id=TEXT, anchor_score=SCORE, n_scores=COUNT, spread=SCORE),
}


def judgements(scores: Iterable[str]) -> pa.Schema:
    """Return the schema of a table of judgements with one column for each rubric score.

    >>> judgements(["honesty_score"]).names[:5]
    ['item_id', 'judge', 'repeat', 'overall_score', 'honesty_score']
    """
    rubric = dict.fromkeys((name for name in scores if name != "overall_score"), SCORE)
    identity = {"item_id": TEXT, "judge": TEXT, "repeat": COUNT, "overall_score": SCORE}
    return _schema(**identity, **rubric, status=TEXT, reason=TEXT, text=TEXT, **_ANSWER)
