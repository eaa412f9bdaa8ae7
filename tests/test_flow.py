"""The flow of requests against a scripted server, on a fake clock."""

import asyncio
import html
import json
import re
import shutil
import statistics
import types
from collections import Counter
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helpers.judges.flow
from helpers import judges, rubrics, verdicts
from helpers.answers import Answer, Request, Store, StoreError
from helpers.judges import Budget, Clock, Model, ModelError, Outcome, Stopped, Tally, local
from helpers.judges.reading import Http
from helpers.progress import Progress
from tests.server import Reply, Server, completion, scripted

CASES = json.loads((Path(__file__).parent / "cases" / "api_responses.json").read_text())["cases"]
START = 1_800_000_000.0
GOOD = Reply(body=completion('{"overall_score": 4.0}'))


class FakeClock(Clock):
    def __init__(self) -> None:
        self.time, self.waits = START, []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def has_verdict(answer: Answer) -> bool:
    status = verdicts.parse(answer.text, finish_reason=answer.finish_reason, refusal=answer.refusal).status
    return status in {"ok", "repaired", "refused", "out_of_range"}


def rows(count: int = 1, *, repeats: int = 1, model: str = "judge", **sampling: Any) -> list[Request]:
    prompts = [[{"role": "user", "content": f"q{number}"}] for number in range(1, count + 1)]
    return [Request(model, prompt, sampling, repeat) for prompt in prompts for repeat in range(repeats)]


def model(server: Server, name: str = "judge", **fields: Any) -> Model:
    return Model(name=name, base_url=server.url, model="judge-1", **fields)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as store:
        yield store


async def ask(server: Server, store: Store, requests: list[Request], **options: Any) -> Outcome:
    options = {"models": {"judge": model(server)}, "usable": has_verdict, "clock": FakeClock()} | options
    return await judges.ask(requests, store=store, **options)


def scores(store: Store, requests: list[Request], models: dict[str, Model]) -> list[float | None]:
    answers = store.get_many(judges.keys(requests, models))
    return [None if answer is None else verdicts.parse(answer.text).overall_score for answer in answers]


def as_reply(entry: dict[str, Any]) -> Reply:
    if "exception" in entry:
        return Reply(body=completion("cut"), breaks="reset")
    headers = {
        name: value.replace("<HTTP date 4 s in the future>", formatdate(START + 4, usegmt=True))
        for name, value in entry.get("headers", {}).items()
    }
    return Reply(entry["status"], entry["body"], headers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
async def test_the_server_behaves_as_scripted_and_the_client_as_expected(case, store):
    expect, asked = case["expect"], case.get("request", {})
    sampling = {"max_tokens": 200} | ({"logprobs": True} if asked.get("logprobs") else {})
    requests = rows(asked.get("rows", 1), repeats=asked.get("repeats", 1), **sampling)
    clock = FakeClock()
    options = {"clock": clock} | case.get("config", {})
    async with scripted(map(as_reply, case["script"])) as server:
        models = {"judge": model(server)}
        if asked.get("store"):
            async with Server(lambda body: GOOD) as earlier:
                await ask(earlier, store, [requests[0], requests[3]], models={"judge": model(earlier)})
        for _ in range(asked.get("runs", 1)):
            outcome = await ask(server, store, requests, models=models, concurrency=1, **options)
        assert len(server.bodies) == expect.get("requests", expect.get("requests_after_resume"))
        sent = list(server.bodies)
        if "requests_on_rerun" in expect:
            await ask(server, store, requests, models=models)
            assert len(server.bodies) - len(sent) == expect["requests_on_rerun"]
    tally = outcome.tallies["judge"]
    answers = store.get_many(judges.keys(requests, models))
    assert expect.get("min_wait_s", 0) <= sum(clock.waits) <= expect.get("max_wait_s", 1e9)
    if "status" in expect:
        read = verdicts.parse(answers[0].text, finish_reason=answers[0].finish_reason, refusal=answers[0].refusal)
        assert (read.status, read.overall_score) == (expect["status"], expect["overall_score"])
    if expect.get("outcome") == "row_failed":
        (told,) = outcome.failed.values()
        assert (sum(tally.failed.values()), tally.stopped) == (1, "")
        assert all(words in told for words in expect["error_mentions"])
        assert told.startswith(expect.get("reason", ""))
    if expect.get("outcome") == "stop_run":
        with pytest.raises(Stopped, match=expect["error_mentions"][0]):
            outcome.check()
    if expect.get("cached") is False:
        assert answers == [None]
    if "scores" in expect:
        assert [verdicts.parse(answer.text).overall_score for answer in answers] == expect["scores"]
        assert statistics.median(expect["scores"]) == expect["median"]
    if "warning_mentions" in expect:
        assert all(any(word in warning for warning in tally.warnings) for word in expect["warning_mentions"])
    if "rows_total" in expect:
        assert [body["messages"][0]["content"] for body in sent] == ["q2", "q3"]
        assert sum(answer is not None for answer in answers) == expect["rows_total"]
    if "second_request_has" in expect:
        assert all(expect["second_request_has"] in body for body in sent[1:])
        assert expect["second_request_lacks"] not in sent[1]
    if "stored_reasoning" in expect:
        assert answers[0].reasoning == expect["stored_reasoning"]
    if "stored_model" in expect:
        assert (answers[0].served_model, answers[0].requested_model) == ("judge-1-2025-11", "judge-1")


TOO_LONG = "'max_tokens' must be at least 1, got -186."


@pytest.mark.parametrize(
    ("replies", "requests", "status"),
    [
        ([Reply(429, {"error": {"message": "wait"}}, {"retry-after-ms": "1500"}), GOOD], 2, "ok"),
        ([Reply(429, {"error": {"message": "wait"}}, {"Retry-After": "nan"}), GOOD], 2, "ok"),
        ([Reply(body={"choices": None, "error": {"message": "busy", "code": 429}}), GOOD], 2, "ok"),
        ([Reply(body={"choices": [], "error": {"message": "busy", "code": "502"}}), GOOD], 2, "ok"),
        ([Reply(body={"choices": [{"finish_reason": "error", "error": {"code": 502}, "message": {}}]}), GOOD], 2, "ok"),
        ([Reply(body={"choices": [{"finish_reason": "error", "error": {"code": 502}}]}), GOOD], 2, "ok"),
        ([Reply(body={"id": "x", "choices": []}), GOOD], 2, "ok"),
        ([Reply(body=b"<html>one moment</html>"), GOOD], 2, "ok"),
        ([Reply(body=b""), GOOD], 2, "ok"),
        ([Reply(529, b"overloaded"), GOOD], 2, "ok"),
        ([Reply(body=completion("cut"), breaks="torn"), GOOD], 2, "ok"),
        ([Reply(body=completion("cut"), breaks="hang"), GOOD], 2, "ok"),
        ([Reply(body=completion(None, tool_calls=[{"id": "t"}])), GOOD], 2, "ok"),
        ([Reply(body=completion("I think it is fine.")), GOOD], 2, "ok"),
        ([Reply(body=completion([{"type": "text", "text": '{"overall_score": 4.0}'}]))], 1, "ok"),
        ([Reply(body=completion('{"overall_score": 4.0}'), headers={"Content-Encoding": "gzip"})], 1, "ok"),
        ([Reply(body=completion('{"overall_score": 4.0}') | {"choices_extra": {"a": 1}, "usage": "?"})], 1, "ok"),
        ([Reply(body=completion(None, finish_reason="content_filter"))], 1, "refused"),
        ([Reply(body=completion('{"overall_score": 9}'))], 1, "out_of_range"),
        ([Reply(body=completion('{"overall_score": 3.', finish_reason="length"))], 1, "truncated"),
        ([Reply(body=completion("?"))] * 2, 2, "unparsable"),
        ([Reply(body=completion(" \n"))] * 4, 4, "unparsable"),
    ],
)  # fmt: skip
async def test_a_reply_is_read_by_its_structure(replies, requests, status, store):
    async with scripted(replies) as server:
        models = {"judge": model(server, timeout_s=0.2)}
        await ask(server, store, rows(), models=models)
        assert len(server.bodies) == requests
    (answer,) = store.get_many(judges.keys(rows(), models))
    read = verdicts.parse(answer.text, finish_reason=answer.finish_reason, refusal=answer.refusal)
    assert read.status == status


@pytest.mark.parametrize(
    ("reply", "requests", "kind", "words"),
    [
        (Reply(429, {"error": {"message": "wait"}}, {"Retry-After": "120"}), 1, "rate_limited", "120 s"),
        (Reply(500, {"error": {"message": "internal"}}), 4, "server_error", "gave up after 4 of 4 attempts"),
        (Reply(200, b"not JSON"), 4, "malformed", "not JSON"),
        (Reply(breaks="hang", body={}), 4, "timeout", "TimeoutError"),
        (Reply(breaks="reset", body={}), 4, "broken", "gave up after 4"),
        (Reply(400, {"error": {"message": TOO_LONG, "code": 400}}), 1, "context_too_long", "-186"),
        (Reply(400, {"error": {"message": "x", "code": "context_length_exceeded"}}), 1, "context_too_long", "x"),
        (Reply(400, {"object": "error", "message": "top_k must be positive", "code": 400}), 1, "bad_request", "top_k"),
        (Reply(422, {"detail": [{"msg": "no"}]}), 1, "bad_request", "detail"),
        (
            Reply(403, {"error": {"message": "flagged", "code": 403, "metadata": {"reasons": ["?"]}}}),
            1,
            "moderated",
            "",
        ),
    ],
)
async def test_a_row_fails_alone_with_its_reason_and_is_asked_again_next_time(reply, requests, kind, words, store):
    async with Server(lambda body: reply) as server:
        models = {"judge": model(server, timeout_s=0.1)}
        outcome = await ask(server, store, rows(), models=models)
        assert len(server.bodies) == requests
        assert store.get_many(judges.keys(rows(), models)) == [None]
        (told,) = outcome.failed.values()
        assert told.startswith(f"{kind}: ")
        assert words in told
        outcome.check()
        server.respond = lambda body: GOOD
        await ask(server, store, rows(), models=models)
        assert len(server.bodies) == requests + 1
    assert scores(store, rows(), models) == [4.0]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (
            Reply(429, {"error": {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}}),
            "quota",
        ),
        (Reply(402, {"error": {"message": "no credits", "code": 402}}), "quota: no credits"),
        (Reply(401, {"error": {"message": "bad key"}}), "auth: bad key"),
        (Reply(403, {"error": {"message": "not yours"}}), "auth: not yours"),
        (Reply(404, b"404 page not found"), "model_not_found: 404 page"),
        (Reply(301, b"", {"Location": "https://moved.invalid/"}), "redirect: the server points to https://moved"),
    ],
)
async def test_a_model_that_cannot_be_used_costs_one_request_and_the_panel_goes_on(reply, words, store):
    async with Server(lambda body: reply) as down, Server(lambda body: GOOD) as up:
        models = {"down": model(down, "down"), "up": model(up, "up")}
        requests = rows(30, model="down") + rows(30, model="up")
        outcome = await ask(down, store, requests, models=models)
    assert (len(down.bodies), len(up.bodies)) == (1, 30)
    assert (outcome.tallies["up"].answered, outcome.tallies["down"].not_asked) == (30, 30)
    with pytest.raises(Stopped, match=rf"model 'down': {words}.*30 requests were not asked"):
        outcome.check()


async def test_what_stopped_in_an_earlier_call_is_not_asked_again(store):
    async with (
        Server(lambda body: Reply(401, {"error": {"message": "bad key"}})) as down,
        Server(lambda body: GOOD) as up,
    ):
        models = {"down": model(down, "down"), "up": model(up, "up")}
        requests = rows(8, model="down") + rows(8, model="up")
        first = await ask(down, store, requests[:4] + requests[8:12], models=models)
        second = await ask(down, store, requests[4:8] + requests[12:], models=models, after=first)
    assert (len(down.bodies), len(up.bodies)) == (1, 8)
    both = first + second
    assert (both.tallies["up"].answered, both.tallies["down"].not_asked) == (8, 8)
    with pytest.raises(Stopped, match=r"auth: bad key\. 8 requests were not asked"):
        both.check()


async def test_a_server_that_is_not_there_counts_as_down_after_five_rows(store):
    async with Server(lambda body: GOOD) as server:
        gone = model(server, "gone")
    async with Server(lambda body: GOOD) as up:
        requests = rows(100, model="gone") + rows(100, model="up")
        outcome = await ask(up, store, requests, models={"gone": gone, "up": model(up, "up")})
    tally = outcome.tallies["gone"]
    assert (tally.failed["unreachable"], tally.not_asked, outcome.tallies["up"].answered) == (5, 95, 100)
    assert len(outcome.failed) == 100


async def test_one_hanging_request_does_not_hold_the_others(store):
    hangs = Reply(breaks="hang", body={})
    async with Server(lambda body: hangs if body["messages"][0]["content"] == "q7" else GOOD) as server:
        start = asyncio.get_running_loop().time()
        outcome = await ask(server, store, rows(100), models={"judge": model(server, timeout_s=0.2)})
        assert asyncio.get_running_loop().time() - start < 4 * 0.2 + 2
    assert (outcome.tallies["judge"].answered, outcome.tallies["judge"].failed["timeout"]) == (99, 1)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_reasoning_is_kept_under_one_name_and_never_scored(name, store):
    silent = Reply(body=completion(None, **{name: '{"overall_score": 1.0}'}))
    async with scripted([silent] * 4) as server:
        outcome = await ask(server, store, rows())
    (answer,) = store.get_many(judges.keys(rows(), {"judge": model(server)}))
    assert (answer.text, answer.reasoning, answer.usable) == ("", '{"overall_score": 1.0}', False)
    assert outcome.tallies["judge"].unusable == 1
    assert [f" {name}: the server's reasoning parser" in warning for warning in outcome.tallies["judge"].warnings] == [
        True
    ]


async def test_the_raw_reply_is_kept_byte_for_byte(store):
    raw = b'{"model":"m",  "odd": 1.50, "choices":[{"message":{"content":"4.5 \\ud800 \xc3\xa9","x":[]}}]}'
    async with Server(lambda body: Reply(body=raw)) as server:
        await ask(server, store, rows(), usable=judges.has_text)
    assert next(store.query("SELECT raw FROM replies"))[0].encode() == raw
    assert next(store.query("SELECT text FROM replies"))[0] == "4.5 ? é"


async def test_a_request_that_is_listed_twice_is_asked_once(store):
    async with Server(lambda body: GOOD) as server:
        outcome = await ask(server, store, rows(3) + rows(3))
    assert (len(server.bodies), outcome.tallies["judge"].requests) == (3, 3)


async def test_nothing_to_do_is_a_success_without_a_request(store):
    async with Server(lambda body: GOOD) as server:
        await ask(server, store, rows(3))
        outcome = await ask(server, store, rows(3))
        empty = await ask(server, store, [])
    assert (len(server.bodies), outcome.tallies["judge"].from_store, empty.tallies) == (3, 3, {})


async def test_a_better_parser_needs_no_new_request(store):
    async with Server(lambda body: Reply(body=completion("Overall: four"))) as server:
        first = await ask(server, store, rows(), max_attempts=1)
        second = await ask(server, store, rows(), usable=lambda answer: "four" in answer.text)
    assert (first.tallies["judge"].unusable, second.tallies["judge"].from_store, len(server.bodies)) == (1, 1, 1)


async def test_a_judge_without_verdicts_is_asked_eight_times_over_all_runs(store):
    async with Server(lambda body: Reply(body=completion("Nice."))) as server:
        for _ in range(6):
            outcome = await ask(server, store, rows())
    assert (len(server.bodies), outcome.tallies["judge"].unusable) == (8, 1)


async def test_every_repeat_has_a_seed_of_its_own_and_greedy_requests_have_none(store):
    async with Server(lambda body: GOOD) as server:
        await ask(server, store, rows(2, repeats=3, temperature=0.8) + rows(1, temperature=0.0))
        seeds = [body.get("seed") for body in server.bodies]
        await ask(server, store, rows(1, temperature=0.9), models={"judge": model(server, seeded=False)})
    assert len({seed for seed in seeds if seed is not None}) == 6
    assert seeds.count(None) == 1
    assert "seed" not in server.bodies[-1]


async def test_extra_fields_win_and_a_schema_goes_only_to_those_that_take_it(store):
    sampling = {"temperature": 0.0, "response_format": rubrics.response_format(rubrics.INSTRUCTION)}
    async with Server(lambda body: GOOD) as server:
        for fields in ({"extra": {"temperature": 0.7, "top_k": 5}}, {"json_schema": True}):
            await ask(server, store, rows(1, **sampling), models={"judge": model(server, **fields)})
    first, second = server.bodies
    assert (first["temperature"], first["top_k"], "response_format" in first) == (0.7, 5, False)
    assert second["response_format"]["json_schema"]["schema"]["required"][0] == "reasoning"


async def test_repeats_that_are_all_equal_are_a_warning(store):
    async with Server(
        lambda body: Reply(body=completion(f'{{"overall_score": {body.get("seed", 0) % 5 + 1}}}'))
    ) as server:
        varied = await ask(server, store, rows(3, repeats=4, temperature=1.0))
        equal = await ask(server, store, rows(3, repeats=4, temperature=0.0))
    assert not varied.tallies["judge"].warnings
    assert equal.tallies["judge"].warnings == {"all repeats of a request are word for word the same": 3}


async def test_the_request_budget_is_exact_and_the_next_run_goes_on(store):
    async with Server(lambda body: GOOD) as server:
        outcome = await ask(server, store, rows(50), budget=Budget(requests=20))
        assert (len(server.bodies), outcome.tallies["judge"].answered, outcome.tallies["judge"].not_asked) == (
            20,
            20,
            30,
        )
        with pytest.raises(Stopped, match=r"budget is spent \(20 of 20 requests\)\. 30 requests were not asked"):
            outcome.check()
        await ask(server, store, rows(50), budget=Budget(requests=30))
        assert len(server.bodies) == 50


async def test_the_money_budget_is_never_overrun_and_is_used_up(store):
    # 900 prompt and 120 completion tokens at 1 and 10 a million are 0.0021; 0.021 buys ten answers. The estimate of an
    # answer is its longest: 500 tokens at 10 a million, 0.005.
    async with Server(lambda body: GOOD) as server:
        models = {"judge": model(server, price_prompt=1.0, price_completion=10.0)}
        budget = Budget(money=0.021 + 0.003)
        outcome = await ask(server, store, rows(50, max_tokens=500), models=models, budget=budget)
    assert budget.spent == pytest.approx(outcome.tallies["judge"].cost)
    assert 0.024 - 0.005 < budget.spent <= 0.024
    assert "the budget is spent" in outcome.stopped


async def test_a_timeout_counts_as_spent_since_the_server_may_bill_it(store):
    async with Server(lambda body: Reply(breaks="hang", body={})) as server:
        models = {"judge": model(server, price_prompt=0.0, price_completion=10.0, timeout_s=0.05)}
        budget = Budget(money=1.0)
        await ask(server, store, rows(1, max_tokens=1000), models=models, budget=budget, max_attempts=2)
    assert budget.spent == pytest.approx(0.02)


async def test_a_money_budget_needs_prices_in_one_currency(store):
    async with Server(lambda body: GOOD) as server:
        priced = {"price_prompt": 1.0, "price_completion": 1.0}
        mixed = {"a": model(server, "a", **priced), "b": model(server, "b", **priced, currency="EUR")}
        with pytest.raises(ModelError, match="prices of 'judge'"):
            await ask(server, store, rows(), budget=Budget(money=1.0))
        with pytest.raises(ModelError, match="one currency, not EUR and USD"):
            await ask(server, store, rows(model="a") + rows(model="b"), models=mixed, budget=Budget(money=1.0))
    assert server.bodies == []


async def test_a_missing_key_is_an_error_before_anything_is_sent(store, monkeypatch):
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    async with Server(lambda body: GOOD) as server:
        models = {"free": model(server, "free"), "paid": model(server, "paid", key_env="JUDGE_KEY")}
        with pytest.raises(ModelError, match="model 'paid' needs the environment variable JUDGE_KEY, which is not set"):
            await ask(server, store, rows(model="free") + rows(model="paid"), models=models)
        with pytest.raises(ModelError, match="no model 'judge' among those given: free, paid"):
            await ask(server, store, rows(), models=models)
    assert server.bodies == []


async def test_what_is_stored_needs_no_key_no_price_and_no_installation(store, monkeypatch):
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    async with Server(lambda body: GOOD) as server:
        monkeypatch.setenv("JUDGE_KEY", "sk-0123456789")
        models = {"judge": model(server, key_env="JUDGE_KEY"), "small": Model(name="small", kind="local")}
        await ask(server, store, rows(), models=models)
        monkeypatch.delenv("JUDGE_KEY")
        outcome = await ask(server, store, rows(), models=models, budget=Budget(money=1.0))
        assert outcome.tallies["judge"].from_store == 1
        with pytest.raises(
            ModelError, match=r"the store lacks answers of small, and .* not installed; install it with"
        ):
            await ask(server, store, rows(model="small"), models=models)


async def test_twenty_rows_refused_one_after_the_other_stop_a_model(store):
    refusal = Reply(400, {"error": {"message": "temperature is not supported with this model", "code": 400}})
    async with Server(lambda body: refusal) as server:
        outcome = await ask(server, store, rows(100), concurrency=4)
    tally = outcome.tallies["judge"]
    assert 20 <= tally.failed["bad_request"] <= 23
    assert "rows failed one after the other, the last with bad_request: temperature is not supported" in tally.stopped


KEY = "sk-MARKER/key+42SECRET"
SPELLINGS = {
    "plain": KEY,
    "escaped slash": KEY.replace("/", r"\/"),
    "unicode escapes": "".join(f"\\u{ord(letter):04x}" for letter in KEY),
    "capital unicode escapes": "".join(f"\\u{ord(letter):04X}" for letter in KEY),
    "some escapes": KEY.replace("M", r"\u004d").replace("+", r"\u002B"),
    "nested": json.dumps(json.dumps(KEY.replace("s", r"\u0073").replace("/", r"\/"))).strip('"'),
    "quoted": quote(KEY, safe=""),
    "quoted twice": quote(quote(KEY, safe=""), safe=""),
    "entities": "".join(f"&#{ord(letter)};" for letter in KEY),
}


def readings(text: str) -> set[str]:
    """Everything that a text may mean to somebody who undoes its escapes, a few times over."""
    found = {text}
    for _ in range(4):
        for one in list(found):
            found |= {unquote(one), html.unescape(one), one.replace("\0", "")}
            found.add(re.sub(r"\\+(?:u([0-9a-fA-F]{4})|([^\w\s]))", lambda m: m[2] or chr(int(m[1], 16)), one))
    return found


def echoes(spelled: str) -> dict[str, Reply]:
    """A server that repeats the key wherever it can."""
    raw = b"<html>" + spelled.encode()
    fields = {"reasoning": "KEY", "refusal": "KEY", "finish_reason": "KEY", "model": "KEY"}
    answer = json.dumps(completion("your key is KEY", **fields)).replace("KEY", spelled).encode()
    parts = json.dumps(completion([{"type": "text", "text": KEY[:5]}, {"type": "text", "text": KEY[5:]}])).encode()
    error = json.dumps({"error": {"message": "x" * 280 + " KEY", "KEY": 1}}).replace("KEY", spelled).encode()
    return {
        "answer": Reply(200, answer),
        "answer in parts": Reply(200, parts),
        "no JSON": Reply(200, raw),
        "UTF-16": Reply(401, KEY.encode("utf-16-le")),
        **{str(status): Reply(status, error) for status in (400, 401, 429, 500)},
        "redirect": Reply(302, b"", {"Location": f"https://example.org/?key={spelled}"}),
        "no HTTP": Reply(200, b"", {f"no header {spelled}": "x"}),
        "cookie": Reply(401, b"{}", {"Set-Cookie": f"{spelled} {KEY}; {KEY}=@,"}),
    }


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("place", echoes(""))
async def test_a_key_goes_to_the_server_and_nowhere_else(place, spelled, store, monkeypatch, capfd, caplog):
    monkeypatch.setenv("JUDGE_KEY", f"{KEY}\n")
    async with Server(lambda body: echoes(spelled)[place]) as server:
        models = {"judge": model(server, key_env="JUDGE_KEY")}
        outcome = await ask(server, store, rows(3), models=models, usable=judges.has_text)
    assert f"Authorization: Bearer {KEY}" in server.headers[0]
    try:
        outcome.check()
    except Stopped as stopped:
        shown = str(stopped)
    else:
        shown = ""
    stored = list(store.query("SELECT * FROM replies"))
    assert stored
    texts = [text for row in stored for text in row if isinstance(text, str)]
    texts += [*outcome.failed.values(), *map(str, outcome.tallies.values()), outcome.table().to_csv(), shown]
    texts += [str(outcome), str(models), *capfd.readouterr(), caplog.text]
    if place not in ("answer in parts", "cookie"):
        assert any("***" in text for text in texts)
    if place == "answer in parts":  # beside its raw form, where the key is in pieces
        assert {row[0] for row in store.query("SELECT text FROM replies")} == {"***"}
    assert [text for text in texts if any(KEY in reading for reading in readings(text))] == []
    # Nor the beginning of one that was cut off.
    assert [text for text in texts if "sk-MARK" in text] == []


async def test_an_error_of_a_server_is_one_short_line(store):
    lines = Reply(400, {"error": {"message": "no\r\n\tsuch \x1b[31m\x00\u2028\u202emodel\n" + "x" * 5_000}})
    async with Server(lambda body: lines) as server:
        outcome = await ask(server, store, rows())
    (told,) = outcome.failed.values()
    assert told == f"bad_request: {'no such [31m model ' + 'x' * 280}…"
    assert next(store.query("SELECT error FROM replies")) == (told,)


async def test_limits_a_minute_space_the_requests_out(store):
    clock = FakeClock()
    async with Server(lambda body: GOOD) as server:
        models = {"judge": model(server, requests_per_minute=60)}
        await ask(server, store, rows(10), models=models, clock=clock)
    assert clock.time - START == pytest.approx(9.0)  # the first goes at once, the others a second apart


async def test_tokens_a_minute_space_the_requests_out(store):
    clock = FakeClock()
    async with Server(lambda body: GOOD) as server:
        models = {"judge": model(server, tokens_per_minute=6000)}
        await ask(server, store, rows(4, max_tokens=1000), models=models, clock=clock)
    assert clock.time - START == pytest.approx(30.0, abs=0.1)  # 1,000 tokens are ten seconds' worth


@pytest.mark.parametrize(("concurrency", "of_the_model", "most"), [(8, 64, 8), (64, 5, 5), (2, 64, 2), (64, 64, 64)])
async def test_the_lane_widens_to_the_limits_and_not_beyond(concurrency, of_the_model, most, store):
    seen = []

    def respond(body):
        seen.append(server.open + 1)
        return Reply(body=GOOD.body, delay=0.01)

    async with Server(respond) as server:
        models = {"judge": model(server, max_concurrency=of_the_model)}
        await ask(server, store, rows(200), models=models, concurrency=concurrency)
    assert max(seen) == most


async def test_a_busy_server_is_asked_less_at_once(store):
    seen = []

    def respond(body):
        seen.append(server.open + 1)
        crowded = len(seen) > 100 and server.open >= 10
        return (
            Reply(429, {"error": {"message": "busy"}}, delay=0.001) if crowded else Reply(body=GOOD.body, delay=0.001)
        )

    async with Server(respond) as server:
        outcome = await ask(server, store, rows(600), concurrency=64)
    assert outcome.tallies["judge"].answered == 600
    assert max(seen[:100]) > 30
    assert max(seen[-100:]) <= 20


async def test_cancelling_loses_nothing_that_was_answered(store):
    def respond(body):
        if len(server.bodies) == 25:
            asyncio.get_running_loop().call_later(0.1, task.cancel)
        return Reply(body=GOOD.body, delay=0.002 if len(server.bodies) < 20 else 9.0)

    async with Server(respond) as server:
        task = asyncio.create_task(ask(server, store, rows(100)))
        with pytest.raises(asyncio.CancelledError):
            await task
        models = {"judge": model(server)}
        kept = sum(answer is not None for answer in store.get_many(judges.keys(rows(100), models)))
        assert kept == 19
        sent, server.respond = len(server.bodies), lambda body: GOOD
        await ask(server, store, rows(100), models=models)
        assert len(server.bodies) == sent + 81


async def test_after_asking_every_answer_is_in_the_file_itself(store, tmp_path):
    async with Server(lambda body: GOOD) as server:
        outcome = await ask(server, store, rows(3))
    shutil.copy(store.path, tmp_path / "copy.sqlite")  # without -wal, as if the kernel were killed now
    with Store(tmp_path / "copy.sqlite") as copy:
        assert [answer.text for answer in copy.get_many(outcome.keys)] == ['{"overall_score": 4.0}'] * 3


async def test_a_mistake_in_the_callers_function_surfaces_as_itself(store):
    async with Server(lambda body: GOOD) as server:
        with pytest.raises(ZeroDivisionError):
            await ask(server, store, rows(10), usable=lambda answer: bool(1 / 0))


async def test_a_full_disk_stops_the_run_and_loses_nothing_that_was_stored(store):
    big = Reply(body=completion('{"overall_score": 4.0}' + " " * 20_000))
    async with Server(lambda body: big) as server:
        models = {"judge": model(server)}
        pages = next(store.query("PRAGMA page_count"))[0]
        list(store.query(f"PRAGMA max_page_count = {pages + 100}"))
        with pytest.raises(StoreError, match="disk is full"):
            await ask(server, store, rows(500), models=models)
        list(store.query("PRAGMA max_page_count = 1000000"))
        kept = sum(answer is not None for answer in store.get_many(judges.keys(rows(500), models)))
        sent = len(server.bodies)
        await ask(server, store, rows(500), models=models)
    assert 0 < kept < 500
    assert sent - kept <= 64
    assert len(server.bodies) == sent + 500 - kept


def test_one_store_and_budget_serve_several_loops(tmp_path):
    async def once(count):
        async with Server(lambda body: GOOD) as server:
            await ask(server, store, rows(count), budget=budget)
            return len(server.bodies)

    budget = Budget(requests=10)
    with Store(tmp_path / "answers.sqlite") as store:
        assert [asyncio.run(once(4)), asyncio.run(once(9))] == [4, 5]
    assert budget.sent == 9


async def test_progress_counts_every_row_once(store, capsys):
    long = Reply(400, {"error": {"message": "maximum context length is 10"}})
    async with Server(lambda body: long if body["messages"][0]["content"] == "q1" else GOOD) as server:
        await ask(server, store, rows(9)[3:5])
        with Progress(10, "Judging", interactive=False) as progress:
            await ask(server, store, [*rows(9), *rows(1)], progress=progress)
    assert (progress.done, progress.failed, progress.stored, progress.tokens) == (6, 1, 3, 6 * 1020)
    assert capsys.readouterr().out.startswith("Judging: 10 of 10, 1 failed, 3 stored or repeated, 6,120 tokens, in ")


async def test_built_in_judges_answer_through_the_same_store(store, monkeypatch):
    asked = []

    def reply(judge, messages):
        asked.append(judge)
        if messages[0]["content"] == "q2":
            raise ValueError("no such element: Zz")
        return '{"overall_score": 2.5}'

    rules = types.SimpleNamespace(reply=reply, fingerprint=lambda: "1")
    monkeypatch.setattr(helpers.judges, "rules", rules, raising=False)
    models = {name: Model(name=name, kind="rules") for name in ("surface", "process")}
    requests = rows(3, model="surface") + rows(3, model="process")
    for _ in range(2):
        outcome = await judges.ask(requests, models=models, store=store)
    assert asked.count("surface") == 3 + 1  # a failure is tried again
    assert scores(store, requests, models) == [2.5, None, 2.5] * 2
    assert list(outcome.failed.values()) == ["rule_error: ValueError: no such element: Zz"] * 2
    rules.fingerprint = lambda: "2"
    assert store.get_many(judges.keys(requests, models)) == [None] * 6


MOODS = {
    "good": (200, completion('{"overall_score": 4.0}')),
    "vague": (200, completion("Quite nice.")),
    "empty": (200, completion("")),
    "cut off": (200, completion("{", finish_reason="length")),
    "busy": (429, {"error": {"message": "busy"}}),
    "broken": (500, {"error": {"message": "internal"}}),
    "too long": (400, {"error": {"message": "maximum context length"}}),
    "no": (400, {"error": {"message": "no"}}),
    "garbage": (200, "<html>"),
}


@settings(max_examples=30, deadline=None)
@given(
    moods=st.lists(st.sampled_from(list(MOODS)), min_size=1, max_size=60),
    count=st.integers(0, 40),
    limit=st.integers(0, 50),
    width=st.integers(1, 64),
)
def test_whatever_a_server_does_every_row_is_counted_once_and_no_limit_is_passed(moods, count, limit, width):
    sent = []

    async def post(url, headers, data, timeout_s):
        sent.append(json.loads(data)["messages"][0]["content"])
        await asyncio.sleep(0)
        status, payload = MOODS[moods[len(sent) % len(moods)]]
        return Http(status, {}, json.dumps(payload).encode())

    models = {"judge": Model(name="judge", base_url="http://127.0.0.1:9/v1", model="m")}
    budget = Budget(requests=limit)
    with Store(":memory:") as store:
        options = {"models": models, "usable": has_verdict, "clock": FakeClock(), "post": post, "budget": budget}
        outcome = asyncio.run(judges.ask(rows(count), store=store, concurrency=width, **options))
        answers = store.get_many(outcome.keys)
    tally = outcome.tallies.get("judge", Tally())
    assert tally.requests == count
    assert tally.answered + tally.unusable + sum(tally.failed.values()) + tally.not_asked == count
    assert tally.answered == sum(answer is not None and answer.usable for answer in answers)
    assert len(outcome.failed) == sum(tally.failed.values()) + tally.not_asked
    assert len(sent) == tally.sent <= (limit or 4 * count)
    assert max(Counter(sent).values(), default=0) <= 4
    assert budget.reserved == 0.0
    assert (tally.not_asked > 0) == bool(outcome.stopped or tally.stopped)
