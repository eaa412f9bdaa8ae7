"""Batch files out, results in: any order, any part, any shape."""

import json
import types
from pathlib import Path

import pytest

from helpers import answers, judges
from helpers.answers import Request, Store
from helpers.judges import Model, batch, local
from helpers.judges.planning import plan, together
from tests.server import Reply, Server, completion

MODELS = {
    name: Model(
        name=name, base_url="http://127.0.0.1:9/v1", model=name.upper(), price_prompt=1.0, price_completion=10.0
    )
    for name in ("a", "b/c")
} | {"surface": Model(name="surface", kind="rules")}

KEYS = ("MY_KEY", "WRONG_KEY")


def rows(count, model="a", **sampling):
    return [Request(model, [{"role": "user", "content": f"q{number}"}], sampling) for number in range(count)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(judges, "rules", types.SimpleNamespace(fingerprint=lambda: "1"), raising=False)
    with Store(tmp_path / "answers.sqlite") as store:
        yield store


def lines(frame):
    return [json.loads(line) for file in frame["file"] for line in Path(file).read_text().splitlines()]


def result(line, text="4", status=200, **fields):
    response = {"status_code": status, "request_id": "r", "body": completion(text)}
    return json.dumps(
        {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None} | fields
    )


def texts(store, requests):
    return [answer and answer.text for answer in store.get_many(judges.keys(requests, MODELS))]


def test_a_request_line_has_the_agreed_shape(tmp_path, store):
    (line,) = lines(batch.write(rows(1, temperature=0.0, max_tokens=200), tmp_path / "out", models=MODELS, store=store))
    body = {"model": "A", "messages": [{"role": "user", "content": "q0"}], "temperature": 0.0, "max_tokens": 200}
    assert line == {"custom_id": line["custom_id"], "method": "POST", "url": "/v1/chat/completions", "body": body}
    assert len(line["custom_id"]) <= 64


def test_files_hold_one_model_and_keep_to_the_limits(tmp_path, store):
    requests = rows(10) + rows(3, "b/c") + rows(5, "surface") + rows(10)
    files = batch.write(requests, tmp_path / "out", models=MODELS, store=store, most_lines=4)
    assert files["requests"].tolist() == [4, 4, 2, 3]
    assert [file.rsplit("/", 1)[1] for file in files["file"]] == [
        "a-001.jsonl",
        "a-002.jsonl",
        "a-003.jsonl",
        "b_c-001.jsonl",
    ]
    assert [line["body"]["model"] for line in lines(files)] == ["A"] * 10 + ["B/C"] * 3
    small = batch.write(rows(10), tmp_path / "small", models=MODELS, store=store, most_bytes=500)
    assert small["requests"].sum() == 10
    assert (small["megabytes"] <= 0.0005).all()


def test_what_is_answered_is_not_written_again(tmp_path, store):
    first = batch.write(rows(4), tmp_path / "out", models=MODELS, store=store)
    (tmp_path / "results.jsonl").write_text("\n".join(result(line) for line in lines(first)[1:]))
    batch.read([tmp_path / "results.jsonl"], models=MODELS, store=store)
    store.accept(judges.keys(rows(4), MODELS))
    again = batch.write(rows(4), tmp_path / "again", models=MODELS, store=store)
    assert [line["custom_id"] for line in lines(again)] == [lines(first)[0]["custom_id"]]
    nothing = batch.write([], tmp_path / "nothing", models=MODELS, store=store)
    assert len(nothing) == 0


async def test_results_in_any_order_part_and_shape_are_joined_and_the_run_goes_on(tmp_path, store):
    requests = rows(10)
    asked = lines(batch.write(requests, tmp_path / "out", models=MODELS, store=store))
    failed_in_body = {"response": {"status_code": 400, "body": {"error": {"message": "too long", "code": 400}}}}
    failed_beside = {
        "response": {"status_code": 400, "request_id": "vllm-1", "body": None},
        "error": "maximum context length",
    }
    expired = {"response": None, "error": {"code": "batch_expired", "message": "not in time"}}
    empty = {"response": {"status_code": 0, "request_id": "", "body": {}}, "error": None}
    stranger = {"custom_id": "ab" * 32}
    torn = result(asked[7])[:-40]
    (tmp_path / "results.jsonl").write_text(
        "\n".join([
            result(asked[5], "5"),
            result(asked[2], "2"),
            result(asked[2], "2"),
            result(asked[0], **failed_in_body),
            result(asked[1], **failed_beside),
            "",
            result(asked[9], **stranger),
            result(asked[9], custom_id=7),
            "[]",
            torn,
        ])
    )  # fmt: skip
    (tmp_path / "errors.jsonl").write_text("\n".join([result(asked[3], **expired), result(asked[4], **empty)]))
    files = [tmp_path / "errors.jsonl", tmp_path / "results.jsonl"]
    counts = batch.read(files, models=MODELS, store=store)
    assert counts == {"answers": 2, "known": 1, "failed": 4, "unknown": 1, "unreadable": 3}
    assert texts(store, requests) == [None, None, "2", None, None, "5", None, None, None, None]
    assert batch.read(files, models=MODELS, store=store) == counts | {"answers": 0, "known": 3}
    assert next(store.query("SELECT count(*) FROM replies"))[0] == 2 + 4
    reasons = [error for (error,) in store.query("SELECT error FROM replies WHERE state = -1 ORDER BY error")]
    assert reasons[:2] == ["bad_request: too long", "context_too_long: maximum context length"]

    (tmp_path / "rest.jsonl").write_text(result(asked[7], "7"))
    assert batch.read([tmp_path / "rest.jsonl"], models=MODELS, store=store)["answers"] == 1
    async with Server(lambda body: Reply(body=completion(body["messages"][0]["content"]))) as server:
        models = {"a": MODELS["a"].model_copy(update={"base_url": server.url})}
        outcome = await judges.ask(requests, models=models, store=store)
    assert (len(server.bodies), outcome.tallies["a"].from_store) == (7, 3)
    assert texts(store, requests) == ["q0", "q1", "2", "q3", "q4", "5", "q6", "7", "q8", "q9"]


def test_tokens_cost_and_names_come_along(tmp_path, store):
    asked = lines(batch.write(rows(1), tmp_path / "out", models=MODELS, store=store))
    (tmp_path / "results.jsonl").write_text(result(asked[0]))
    batch.read([tmp_path / "results.jsonl"], models=MODELS, store=store)
    (answer,) = store.get_many(judges.keys(rows(1), MODELS))
    assert (answer.requested_model, answer.served_model, answer.prompt_tokens) == ("A", "judge-1", 900)
    assert answer.cost == pytest.approx((900 * 1 + 120 * 10) / 1e6)


def test_the_plan_counts_what_is_stored_and_what_the_rest_may_cost(tmp_path, store):
    requests = rows(4, max_tokens=100) + rows(2, "surface")
    asked = lines(batch.write(requests, tmp_path / "out", models=MODELS, store=store))
    (tmp_path / "results.jsonl").write_text(result(asked[0]))
    batch.read([tmp_path / "results.jsonl"], models=MODELS, store=store)
    store.accept(judges.keys(requests, MODELS))
    models = MODELS | {"a": MODELS["a"].model_copy(update={"requests_per_minute": 6, "context": 90})}
    frame = plan([*requests, *requests], models=models, store=store).set_index("model")
    row = frame.loc["a"]
    assert row[["requests", "in_store", "to_ask", "completion_tokens", "too_long"]].tolist() == [4, 1, 3, 300, 3]
    assert row["counted_by"] == "a quarter of the characters"
    # The stored reply has 120 tokens, and none may be longer than 100.
    assert (row["cost_low"], row["cost_high"]) == (pytest.approx(300 * 10 / 1e6), pytest.approx(300 * 10 / 1e6))
    assert row["minutes"] == pytest.approx(3 / 6)
    assert frame.loc["surface", ["to_ask", "cost_high", "minutes"]].tolist() == [2, 0.0, 0.0]


def test_the_plan_assumes_replies_like_the_stored_ones_and_else_typical_ones(store):
    models = MODELS | {"free": Model(name="free", base_url="http://127.0.0.1:9/v1", model="F", max_concurrency=1)}
    store.put(
        [
            answers.Reply(b"1" * 32, 1, "a", seconds=2.0, completion_tokens=100),
            answers.Reply(b"2" * 32, 0, "a", seconds=4.0, completion_tokens=200),
            answers.Reply(b"3" * 32, 0, "a", seconds=0.0),  # of a batch file that counts no tokens
            answers.Reply(b"4" * 32, -1, "a", seconds=60.0),
        ]
    )
    requests = [row for name in ("a", "b/c", "free") for row in rows(60, name, max_tokens=8192)]
    frame = plan(requests, models=models, store=store, concurrency=1).set_index("model")
    # Prompts have 2 characters, so no tokens. Stored: 150 tokens in 3 s; typical: 400 tokens in 4 s.
    assert frame["cost_low"].tolist()[:2] == [pytest.approx(60 * 150 * 10 / 1e6), pytest.approx(60 * 400 * 10 / 1e6)]
    assert frame["cost_high"].tolist()[:2] == [pytest.approx(60 * 8192 * 10 / 1e6)] * 2
    assert frame["minutes"].tolist() == [3.0, 4.0, 4.0]
    assert frame[["cost_low", "cost_high"]].loc["free"].isna().all()
    short = plan(rows(60, "b/c", max_tokens=50), models=models, store=store, concurrency=1).loc[0]
    assert (short["cost_low"], short["minutes"]) == (short["cost_high"], pytest.approx(0.5))


def test_plans_of_parts_add_up_to_the_plan_of_the_whole(store):
    models = MODELS | {"free": Model(name="free", base_url="http://127.0.0.1:9/v1", model="F", max_concurrency=1)}
    requests = [row for name in ("a", "free", "surface") for row in rows(6, name, max_tokens=100)]
    whole = plan(requests, models=models, store=store, concurrency=1).set_index("model")
    parts = [plan(requests[start::2], models=models, store=store, concurrency=1) for start in (0, 1)]
    found = together([*parts, plan([], models=models, store=store)]).set_index("model").loc[whole.index]
    assert found["cost_high"].tolist() == pytest.approx(whole["cost_high"].tolist(), nan_ok=True)
    assert found["minutes"].tolist() == pytest.approx(whole["minutes"].tolist())
    same = ["kind", "requests", "in_store", "to_ask", "prompt_tokens", "counted_by", "completion_tokens", "ready"]
    assert found[same].values.tolist() == whole[same].values.tolist()


def test_the_plan_says_what_is_missing(store, monkeypatch):
    monkeypatch.setenv("WRONG_KEY", "schl\u00fcssel")
    monkeypatch.delenv("MY_KEY", raising=False)
    monkeypatch.setattr(local, "installed", lambda: False)
    models = MODELS | {name: MODELS["a"].model_copy(update={"name": name, "key_env": name}) for name in KEYS}
    models |= {"small": Model(name="small", kind="local")}
    names = ["a", *KEYS, "small", "surface"]
    frame = plan([row for name in names for row in rows(1, name)], models=models, store=store)
    assert frame["ready"].tolist() == [
        "not contacted",
        "MY_KEY is not set",
        "WRONG_KEY holds characters that no key has",
        "not installed",
        "yes",
    ]
    store.put([answers.Reply(key, 1, "MY_KEY") for key in judges.keys(rows(1, "MY_KEY"), models)])
    assert plan(rows(1, "MY_KEY"), models=models, store=store)["ready"].tolist() == ["yes"]  # nothing to ask
