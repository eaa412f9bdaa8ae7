"""The parser of judges' replies: every recorded trouble, the record it returns, and its limits."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from helpers import verdicts
from helpers.verdicts import Verdict, parse, without_repeats

CASES = json.loads((Path(__file__).parent / "cases" / "judge_outputs.json").read_text("utf-8"))["cases"]
SCORED = ("ok", "repaired")


def read(case: dict[str, Any]) -> Verdict:
    return parse(case["raw"], finish_reason=case["api"]["finish_reason"], refusal=case["api"].get("refusal"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_a_recorded_reply_gives_its_verdict(case):
    verdict = read(case)
    allowed = [case["expect"], *case["expect"].get("also_ok", [])]
    assert (verdict.overall_score, verdict.status) in [(e["overall_score"], e["status"]) for e in allowed]
    assert verdict.overall_score not in case["expect"].get("never", [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_score_exists_exactly_when_the_status_says_so(case):
    verdict = read(case)
    assert (verdict.overall_score is not None) == (verdict.status in SCORED)
    assert verdict.status == "ok" or verdict.reason
    assert verdict.status in verdicts.STATUSES


@pytest.mark.parametrize("case", [c for c in CASES if c["api"]["finish_reason"] == "stop"], ids=lambda c: c["id"])
def test_the_quick_reading_agrees_with_the_careful_one(case):
    # "eos" means the same as "stop", but only "stop" takes the quick path.
    assert read(case) == parse(case["raw"], finish_reason="eos", refusal=case["api"].get("refusal"))


def test_one_bad_reply_of_a_hundred_costs_one_row():
    replies = ['{"overall_score": 3.5}'] * 99 + ["Rating: high"]
    statuses = [parse(reply).status for reply in replies]
    assert (statuses.count("ok"), statuses.count("unparsable")) == (99, 1)


def test_a_verdict_is_frozen():
    with pytest.raises(AttributeError):
        parse('{"overall_score": 3}').overall_score = 5.0  # type: ignore[misc]


def test_the_scores_of_any_rubric_are_kept_beside_the_overall_score():
    verdict = parse('{"honesty_score": 2, "truthfulness_score": 2.5, "overall_score": 2.0}')
    assert verdict == Verdict(2.0, {"honesty_score": 2.0, "truthfulness_score": 2.5}, "ok")


def test_a_bad_side_score_is_left_out_and_named_and_the_overall_score_stays():
    verdict = parse('{"a_score": 9, "b_score": null, "c_score": "4/5", "note": "x", "overall_score": 2.0}')
    assert verdict == Verdict(2.0, {"c_score": 4.0}, "ok", "left out: a_score, b_score.")


def test_a_side_score_that_comes_twice_with_two_values_is_left_out():
    verdict = parse('{"a_score": 2, "a_score": 3, "a_score": 2, "overall_score": 2.0}')
    assert (verdict.scores, verdict.reason) == ({}, "left out: a_score.")


def test_nested_side_scores_never_count():
    assert parse('{"criteria": {"a_score": 4}, "overall_score": 2.0}').scores == {}


def test_the_scores_come_from_the_level_of_the_overall_score():
    verdict = parse('{"x_score": 1, "verdict": {"a_score": 4, "overall_score": 2.0}}')
    assert verdict == Verdict(2.0, {"a_score": 4.0}, "repaired", "repaired: wrapper.")


def test_the_reason_says_what_was_repaired():
    verdict = parse('{"Overall Score": "4,5",}')
    assert verdict.reason == "repaired: syntax, key, text '4,5'."


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS"])
def test_a_complete_object_counts_even_if_the_text_after_it_was_cut_off(reason):
    assert parse('{"overall_score": 3.5} As to the furn', finish_reason=reason).overall_score == 3.5


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "refusal"])
def test_a_filter_stop_is_refused_whatever_the_text_holds(reason):
    assert parse('{"overall_score": 3.5}', finish_reason=reason).status == "refused"


def test_an_error_of_the_server_is_never_read():
    assert parse('[ERROR] code 4 {"overall_score": 4}', finish_reason="error").status == "failed"


def test_the_whole_reply_may_be_something_else_than_text():
    assert parse(b'{"overall_score": 4}').status == "unparsable"  # type: ignore[arg-type]
    assert parse(None, finish_reason=["stop"]).status == "unparsable"  # type: ignore[arg-type]


def test_a_reply_with_too_many_broken_objects_is_given_up_even_if_one_was_read():
    assert parse('{"a": 1,}' * 60 + '{"overall_score": 4}').status == "unparsable"
    assert parse('{"overall_score": 4}' + '{"a": 1,}' * 60).status == "unparsable"
    assert parse('{"a": 1,}' * 9 + '{"overall_score": 4}').overall_score == 4.0


FIRST = 'Sound.\n\n```json\n{"a_score": 4, "overall_score": 3.5}\n```'
SECOND = '```json\n{"a_score": 4, "overall_score": 3.5}\n```'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{FIRST}\n\n{SECOND}", FIRST),
        (f"{FIRST}\n\nThe final verdict:\n{SECOND}\nDone.", FIRST),
        (f"{FIRST}\n{SECOND}\n{SECOND}", FIRST),
        (f"{FIRST}{SECOND}", FIRST),
        (f"{FIRST}\n```JSON\n{{'overall_score': '3.5/5',}}\n```", FIRST),
        (f"{FIRST.removesuffix('```')}\n{SECOND}\n```", FIRST.removesuffix("\n```")),
        (f"{FIRST.replace('json', '')}\n{SECOND}", FIRST.replace("json", "")),
        (f"As ```x = 1``` says. {FIRST}\n{SECOND}", f"As ```x = 1``` says. {FIRST}"),
        (f"<think>{SECOND}</think>{FIRST}\n{SECOND}", f"<think>{SECOND}</think>{FIRST}"),
        (f'```json\n{{"items": 3}}\n```\n{FIRST}\n{SECOND}', f'```json\n{{"items": 3}}\n```\n{FIRST}'),
        (f'{{"overall_score": 3.5}}\n{FIRST}\n{SECOND}', f'{{"overall_score": 3.5}}\n{FIRST}'),
        (f"４．５ “wide”\n{FIRST}\n{SECOND}", f"４．５ “wide”\n{FIRST}"),
    ],
)
def test_a_verdict_that_is_repeated_is_left_out(text, expected):
    assert without_repeats(text) == expected
    assert parse(expected).overall_score == parse(text).overall_score == 3.5
    assert without_repeats(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no fence",
        FIRST,
        f"{FIRST}\nAs to the furnace: ```T = 900 °C```",
        f"{FIRST}\n{SECOND.replace('3.5', '4.0')}",  # the last one would count
        f"{FIRST}\n{SECOND.replace('3.5', '4.0')}\nas I said.",  # neither would count
        f"{FIRST}\n{SECOND[:-11]}",  # cut off in the second
        f"{FIRST.replace('3.5', '9')}\n{SECOND.replace('3.5', '9')}",
        '{"overall_score": 2}\n```json\n{"overall_score": 3.5} so\n```\n' + SECOND + " so",  # no score with or without
        f"<think>{FIRST}\n{SECOND}</think> I cannot decide.",
        f"<think>{SECOND}</think>{FIRST}",
        '{"overall_score": 3.5}\n' + FIRST,  # the first stands in no fence, the second is the first fenced one
    ],
)
def test_a_reply_without_a_repetition_stays_as_it_is(text):
    assert without_repeats(text) == text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_leaving_out_repeats_never_changes_a_score(case):
    raw = case["raw"] or ""
    cut = without_repeats(raw)
    assert raw.startswith(cut)
    assert parse(cut).overall_score == parse(raw).overall_score


N = 300_000
ENDLESS = {
    "braces": "{" * N, "brace and quote": '{"' * N, "nested": '{"a":' * N, "bare keys": "{a:" * N,
    "closed": '{"a":' * N + "1" + "}" * N, "brackets": '{"a":' + "[" * N, "open tags": "<think>" * N,
    "closing tags": "</think>" * N, "objects": '{"overall_score": 3}' * (N // 20), "broken": '{"a" b}' * N,
    "to repair": '{"a": 1,}' * N, "dropped": '{"a": "x</think>' * (N // 10), "blocks": "<think></think>" * N,
    "quotes": '{"a": "' + '"' * N, "commas": '{"a": "' + '", "' * N, "blanks": "{a" + " " * N + "x",
    "digits": '{"overall_score": ' + "9" * N + "x}", "fraction": '{"overall_score": "4' + " " * N + '/50"}',
    "backslashes": '{"a": "' + "\\" * N, "comments": '{"a": 1 ' + "/*" * N, "label": "overall score: " * N,
    "refusal": "I cannot " * N, "underscores": "{" + "a_" * N, "wide": "｛" * N,
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_a_huge_reply_is_read_in_a_moment_and_gives_no_score(name):
    begin = time.perf_counter()
    verdict = parse(ENDLESS[name])
    # The slowest takes 0.5 s; quadratic reading would take minutes.
    assert time.perf_counter() - begin < 10
    assert name == "objects" or verdict.overall_score is None


FENCES = {
    "fences": "```json\n" * N, "ticks": "`" * N + "json", "empty": "```json\n{}\n```\n" * (N // 10),
    "no verdicts": "```json\n{'a': 1}\n```\n" * (N // 10), "blanks": FIRST + ("``` " + " " * 50) * (N // 10),
    "verdicts": SECOND * (N // 10), "two blanks": FIRST + "```" + " " * N + "```" + " " * N,
}  # fmt: skip


@pytest.mark.parametrize("name", FENCES)
def test_repeats_in_a_huge_reply_are_found_in_a_moment(name):
    begin = time.perf_counter()
    cut = without_repeats(FENCES[name])
    assert time.perf_counter() - begin < 10
    assert cut == (SECOND if name == "verdicts" else FENCES[name])
