"""What holds for every reply: no exception, nothing off the scale, no score out of a cut-off object."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.verdicts import STATUSES, parse

KEYS = [
    "materials_appropriateness_score", "procedure_feasibility_score", "honesty_score", "overall_score",
]  # fmt: skip
half_steps = st.integers(2, 10).map(lambda n: n / 2)
prose = st.text(st.characters(exclude_characters="{}[]<>◁｛｝", exclude_categories=["Cs"]), max_size=300)
pieces = st.sampled_from([
    '{"overall_score": 4.0}', '{"overall_score": ', '"overall_score"', "overall_score: 4", "{", "}", "[", "]",
    ":", ",", '"', "'", "\\", "4.5", "5/5", "-2", "1e9", "NaN", "true", "None", "<think>", "</think>", "/*",
    "*/", "//", "\n", " ", "```json\n", "\n```", "“", "”", "：", "，", "｛", "｝", "４", "I cannot rate this.",
    "Overall Score: 4", "<|channel|>final<|message|>", "#", "\ufeff", "\u00a0", "\ud800",
])  # fmt: skip
finishes = st.sampled_from(["stop", "length", "content_filter", "tool_calls", "error", "unknown", "", None])


@settings(deadline=None)
@given(st.one_of(st.text(max_size=400), st.lists(pieces, max_size=30).map("".join)), finishes)
def test_no_reply_raises_or_gives_a_score_off_the_scale(raw, finish):
    verdict = parse(raw, finish_reason=finish)
    assert verdict.status in STATUSES
    assert (verdict.overall_score is not None) == (verdict.status in ("ok", "repaired"))
    assert all(1 <= score <= 5 for score in [*verdict.scores.values(), verdict.overall_score or 1])


@settings(deadline=None)
@given(st.lists(pieces, max_size=20).map("".join))
@example('[{"overall_score": 3}]')
@example('{"overall_score": 3, "overall_score": 3}')
def test_the_quick_reading_agrees_with_the_careful_one(raw):
    assert parse(raw) == parse(raw, finish_reason="eos")


@settings(deadline=None)
@given(prose, prose, st.dictionaries(st.sampled_from(KEYS), half_steps), half_steps)
def test_a_verdict_is_found_in_any_prose(before, after, scores, overall):
    scores |= {"overall_score": overall}
    verdict = parse(f"{before}\n```json\n{json.dumps(scores)}\n```\n{after}")
    assert (verdict.overall_score, verdict.status) == (overall, "ok")
    assert verdict.scores | {"overall_score": overall} == scores


@settings(deadline=None)
@given(prose, st.dictionaries(st.sampled_from(KEYS), half_steps, min_size=1), st.data())
def test_a_reply_that_was_cut_off_never_gives_a_score(before, scores, data):
    reply = f"{before}\n```json\n{json.dumps(scores | {'overall_score': 4.5})}"
    cut = data.draw(st.integers(0, len(reply) - 1))
    assert parse(reply[:cut], finish_reason="length").status == "truncated"


@settings(deadline=None)
@given(half_steps, half_steps, st.sampled_from(["", "\n```", " as I said"]))
def test_of_two_different_verdicts_the_last_counts_only_at_the_end(first, second, tail):
    verdict = parse(f'{{"overall_score": {first}}}\n{{"overall_score": {second}}}{tail}')
    if first == second or not tail.strip(" \n`"):
        assert verdict.overall_score == second
    else:
        assert verdict.status == "unparsable"


@settings(deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers())
def test_a_number_is_kept_as_it_is_or_refused(value):
    verdict = parse(json.dumps({"overall_score": value}))
    assert verdict.overall_score == (value if 1 <= value <= 5 else None)
