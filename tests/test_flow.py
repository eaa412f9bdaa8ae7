"""The flow of requests against a scripted server, on a fake clock."""

import asyncio
import json
import statistics
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from helpers import judges, verdicts
from helpers.answers import Answer, Request, Store
from helpers.judges import Budget, Clock, Model, ModelError, Outcome, Stopped
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
    headers = {name: value.replace("<HTTP date 4 s in the future>", formatdate(START + 4, usegmt=True))
               for name, value in entry.get("headers", {}).items()}
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
        assert sum(tally.failed.values()) == 1 and not tally.stopped
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
