import json

import pandas as pd

from helpers import judgements
from helpers.answers import Answer, keys

SCORES = {
    "materials_appropriateness_score": 4,
    "equipment_appropriateness_score": 4,
    "procedure_completeness_score": 3,
    "procedure_feasibility_score": 3,
    "characterization_appropriateness_score": 4,
    "overall_score": 3.5,
}
VERDICT = f"Fine.\n```json\n{json.dumps(SCORES)}\n```"


def texts(*responses):
    rows = [
        {"item_id": f"{n}/original", "sample_id": str(n), "track": "recipe", "prompt": "Make it.", "response": text}
        for n, text in enumerate(responses)
    ]
    return pd.DataFrame(rows)


def answer(key, text, **fields):
    return Answer(key, True, text, finish_reason=fields.pop("finish_reason", "stop"), **fields)


def test_every_judge_is_asked_of_every_text_as_often_as_wanted():
    asked, whose = judgements.requests(texts("a", "b"), ["x", "y"], repeats=2)
    assert len(asked) == len(whose) == 2 * 2 * 2
    assert whose.values.tolist()[:3] == [["0/original", "x", 0], ["0/original", "x", 1], ["1/original", "x", 0]]
    assert len(set(keys(asked))) == 8


def test_the_judges_of_one_text_share_one_prompt():
    asked, _ = judgements.requests(texts("a"), ["x", "y"])
    assert asked[0].messages is asked[1].messages
    assert asked[0].messages[0]["role"] == "system"


def test_a_text_without_a_response_is_not_judged():
    asked, whose = judgements.requests(texts("a", None), ["x"])
    assert whose["item_id"].tolist() == ["0/original"]
    assert len(asked) == 1


def test_a_request_without_an_answer_keeps_its_row_and_says_why():
    asked, whose = judgements.requests(texts("a", "b"), ["x"])
    first, second = keys(asked)
    rows = judgements.judgements(
        whose, [first, second], [answer(first, VERDICT), None], {second: "timeout"}
    ).to_pylist()
    assert [row["status"] for row in rows] == ["ok", "failed"]
    assert [row["overall_score"] for row in rows] == [3.5, None]
    assert rows[0]["materials_appropriateness_score"] == 4.0
    assert rows[0]["honesty_score"] is None
    assert rows[1]["reason"] == "timeout"
    assert rows[1]["text"] is None


def test_the_order_of_the_answers_does_not_show():
    asked, whose = judgements.requests(texts("a", "b"), ["y", "x"])
    wanted = keys(asked)
    got = [answer(key, VERDICT) for key in wanted]
    table = judgements.judgements(whose, wanted, got, {})
    turned = judgements.judgements(whose[::-1].reset_index(drop=True), wanted[::-1], got[::-1], {})
    assert table.equals(turned)


def test_a_refusal_settles_a_request_and_an_unreadable_reply_does_not():
    assert judgements.is_answer(answer(b"", VERDICT))
    assert judgements.is_answer(answer(b"", "", refusal="I can't."))
    assert judgements.is_answer(answer(b"", '{"overall_score": 9}'))
    assert not judgements.is_answer(answer(b"", "I am not sure."))
    assert not judgements.is_answer(answer(b"", '{"overall_score": 4.', finish_reason="length"))


def test_the_principles_prompt_is_the_system_text_of_the_request_that_is_sent():
    row = {"model": "m", "system_prompt": "Say how sure you are.", "prompt": "Why?"}
    (request,) = judgements.completion_requests(pd.DataFrame([row]))
    assert list(request.messages) == [
        {"role": "system", "content": "Say how sure you are."},
        {"role": "user", "content": "Why?"},
    ]


def test_a_completion_that_could_not_be_had_has_a_reason():
    drawn = pd.DataFrame({"item_id": ["a/0", "a/1", "a/2"], "model": ["m", "n", "o"]})
    got = [answer(b"1", " Because. "), None, answer(b"3", "  ")]
    rows = judgements.completions(drawn, [b"1", b"2", b"3"], got, {b"2": "timeout"})
    assert rows["status"].tolist() == ["ok", "failed", "empty"]
    assert rows["response"].tolist()[0] == "Because."
    assert rows["reason"].tolist()[1:] == ["timeout", "empty"]


def test_tokens_are_added_up_by_the_model_that_was_asked():
    first = pd.DataFrame({"requested_model": ["m", "m", None], "prompt_tokens": [10, 20, None], "completion_tokens": 1})
    second = pd.DataFrame({"requested_model": ["m"], "prompt_tokens": [5], "completion_tokens": [2]})
    assert judgements.usage(first, second) == {"m": {"prompt": 35, "completion": 4}}


def test_pairing_sees_the_user_text_of_the_request_that_was_judged():
    items = texts("Heat it.").assign(
        dataset_name="original", perturbation_type="original", perturbation_category="original", perturbation_rate=0.0
    )
    asked, _ = judgements.requests(items, ["x"])
    rows = pd.DataFrame(
        {"item_id": ["0/original"], "judge": ["x"], "repeat": [0], "overall_score": [4.0], "text": ["t"]}
    )
    assert judgements.for_pairing(rows, items)["user"].tolist() == [asked[0].messages[1]["content"]]


def test_a_verdict_that_is_written_twice_is_trained_on_once():
    verdict = '```json\n{"overall_score": 3.5}\n```'
    rows = pd.DataFrame(
        {"item_id": ["r/a"] * 3, "judge": ["x", "y", "z"], "text": [f"So: {verdict} Again: {verdict}", verdict, None]}
    )
    about = ("dataset_name", "perturbation_type", "perturbation_category", "perturbation_rate")
    item = {"item_id": "r/a", "sample_id": "r", "prompt": "p", "response": "r"} | dict.fromkeys(about, "original")
    found = judgements.for_pairing(rows, pd.DataFrame([item]))["text"]
    assert found.tolist()[:2] == [f"So: {verdict}", verdict]
    assert found.isna().tolist() == [False, False, True]
