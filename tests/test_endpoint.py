"""What is sent, how replies are read, and how models are described."""

import html
import json
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import judges
from helpers.answers import Request
from helpers.judges import Model, ModelError, endpoint, reading, scrubbing
from helpers.judges.lanes import Lane, Row
from helpers.judges.reading import Exchange, Http
from helpers.params import ParameterError
from tests.server import completion

NOW = 1_800_000_000.0
ADDRESS = {"base_url": "http://127.0.0.1:8000/v1", "model": "M"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "content",
                    "error",
                    "code",
                    "type",
                    "usage",
                    "prompt_tokens",
                    "model",
                    "finish_reason",
                ]
            ),
            inner,
        )
    ),
)


def read(payload, status=200, **headers):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return reading.read(Http(status, {name.replace("_", "-"): text for name, text in headers.items()}, data), now=NOW)


@given(status=st.integers(0, 999), data=st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_reply_can_be_read(status, data):
    exchange = read(data, status)
    assert exchange.kind
    assert len(scrubbing.finished(exchange).message) <= 300
    exchange.text.encode()


@given(JSON)
def test_only_a_message_under_status_200_is_an_answer(message):
    payload = {"choices": [{"message": {"content": message}}]}
    assert (read(payload).kind == "answer") == bool(read(payload).text.strip())
    assert read(payload, 500).kind == "server_error"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry_After": "3"}, 3.0),
        ({"Retry_After": "1.5"}, 1.5),
        ({"Retry_After": "0"}, 0.1),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after_ms": "250", "Retry_After": "9"}, 0.25),
        ({"retry_after_ms": "x", "Retry_After": "9"}, 9.0),
        ({"Retry_After": formatdate(NOW + 7, usegmt=True)}, 7.0),
        ({"Retry_After": formatdate(NOW - 7, usegmt=True)}, None),
        ({"Retry_After": "-5"}, None),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "inf"}, None),
        ({"Retry_After": "nan"}, None),
        ({"Retry_After": "Wed, 99 Foo 2026 00:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read_in_all_its_forms(headers, wait):
    assert read({"error": {"message": "busy"}}, 429, **headers).wait == wait


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, {"message": "INSUFFICIENT QUOTA"}, "rate_limited"),
        (429, {"message": "slow", "code": "insufficient_quota"}, "quota"),
        (429, {"message": "slow", "type": "insufficient_quota"}, "quota"),
        (400, {"message": "no such model", "code": "model_not_found"}, "model_not_found"),
        (408, {"message": "late"}, "server_error"),
        (400, {"message": "Prompt is too long: 99 tokens"}, "context_too_long"),
        (
            400,
            {"message": "request (5031 tokens) exceeds the available context size (4096 tokens)"},
            "context_too_long",
        ),
        (400, {"message": "Use 'max_completion_tokens' instead.", "param": "max_tokens"}, "token_field"),
        (400, {"message": "temperature must be 1", "param": "temperature"}, "bad_request"),
        (413, {"message": "too large"}, "bad_request"),
        (200, {"message": "busy", "code": 503}, "server_error"),
        (200, {"message": "busy", "code": "429"}, "rate_limited"),
        (200, {"message": "bad", "code": 401}, "auth"),
        (200, {"message": "what?"}, "malformed"),
        (200, {"message": "what?", "code": "9" * 5000}, "malformed"),
        (204, {}, "malformed"),
        (403, {"message": "flagged", "metadata": 1}, "auth"),
        (200, "what?", "malformed"),
    ],
)
def test_errors_are_sorted_by_their_codes(status, error, kind):
    assert read({"error": error}, status).kind == kind


def test_missing_and_odd_usage_is_not_a_number():
    assert read(completion("4") | {"usage": None}).prompt_tokens is None
    assert read(completion("4") | {"usage": {"prompt_tokens": True, "completion_tokens": "7"}})[6:8] == (None, None)


def test_a_body_holds_what_was_given_and_nothing_else():
    request = Request("m", [{"role": "user", "content": "?"}], {"temperature": 0.5, "max_tokens": 9, "stop": None})
    assert endpoint.body(Model(name="m", **ADDRESS), request, token_field="max_completion_tokens", seed=3) == {
        "model": "M",
        "messages": [{"role": "user", "content": "?"}],
        "seed": 3,
        "temperature": 0.5,
        "max_completion_tokens": 9,
    }


def test_a_placeholder_for_a_key_is_not_cut_out_of_replies():
    exchange = Exchange("answer", text="a test of the test", raw="a test of the test")
    assert endpoint.Server("http://127.0.0.1/v1", "test").finished(exchange) == exchange


@given(st.text('ab/+\\"%&u0 ', min_size=8, max_size=12), st.data())
def test_a_key_is_found_however_each_of_its_letters_is_spelled(secret, data):
    ways = (
        str,
        lambda letter: f"\\u{ord(letter):04X}",
        lambda letter: f"\\\\x{ord(letter):02x}",
        lambda letter: f"%{ord(letter):02x}",
        lambda letter: f"&#x{ord(letter):X};",
        lambda letter: json.dumps(letter)[1:-1],
        html.escape,
    )
    spelled = "".join(data.draw(st.sampled_from(ways))(letter) for letter in secret)
    assert scrubbing.spellings(secret).search(spelled)


def test_a_lane_halves_once_for_what_was_in_flight_together_and_then_widens_slowly():
    lane = Lane(Model(name="m", **ADDRESS), ceiling=256)
    assert lane.width == 1.0
    lane.answered()
    assert lane.width == 64.0
    for _ in range(64):
        lane.answered()
    assert lane.width == 256.0
    epoch = lane.epoch
    for _ in range(256):
        lane.slowed(epoch)
    assert lane.width == 128.0
    lane.answered()
    assert lane.width == 128.0 + 1 / 128


def test_backoff_grows_and_differs_from_row_to_row():
    waits = [Row(b"k", Request("m", []), attempts=attempts).backoff() for attempts in range(1, 9)]
    assert all(0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(waits[:5]))
    assert max(waits) <= 30.0
    assert Row(b"other", Request("m", []), attempts=1).backoff() != waits[0]


MODELS = """
plain:
  base_url: http://127.0.0.1:8000/v1
  model: M
full:
  kind: endpoint
  base_url: https://example.org/v1
  model: no            # YAML 1.2: this is text
  key_env: SOME_KEY
  price_prompt: 1e-1
  price_completion: 2
  currency: EUR
  max_concurrency: 8
  requests_per_minute: 60
  tokens_per_minute: 1000
  timeout_s: 5
  extra: {top_p: 0.9, flag: true, nested: {a: [1, x]}}
  json_schema: true
  context: 4096
small:
  kind: local
"""


def load(tmp_path, text, *names):
    (tmp_path / "models.yaml").write_text(text)
    return judges.load(tmp_path / "models.yaml", names or None)


def test_models_are_loaded_by_name_and_built_in_judges_need_no_entry(tmp_path):
    models = load(tmp_path, MODELS, "full", "surface", "small")
    assert list(models) == ["full", "surface", "small"]
    full = models["full"]
    assert (full.model, full.price_prompt, full.extra["nested"]) == ("no", 0.1, {"a": [1, "x"]})
    assert (models["surface"].kind, models["small"].cost(10, 10)) == ("rules", 0.0)
    assert {"plain", "full", "small", "surface"} < set(load(tmp_path, MODELS))


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (MODELS, "ful", r"has no model 'ful'; did you mean 'full'\?"),
        (MODELS, "zzz", "has no model 'zzz'; known are: plain, full, small, stoichiometry"),
        ("m: {base_url: 127.0.0.1, model: M}", "m", "'m': 'base_url' must be an address"),
        ("m: {base_url: 'http://u:p@h/v1', model: M}", "m", "must hold no user, password or query"),
        ("m: {base_url: 'http://h/v1?key=k', model: M}", "m", "must hold no user, password or query"),
        ("m: {base_url: http://h/v1}", "m", "'model' must be the id"),
        ("m: {base_url: http://h/v1, model: M, prise: 1}", "m", "'prise': is not a field; known are: name, kind"),
        ("m: {base_url: http://h/v1, model: M, price_prompt: 1}", "m", "give both 'price_prompt' and"),
        ("m: {base_url: http://h/v1, model: M, max_concurrency: 8.5}", "m", "'max_concurrency': Input should be"),
        ("m: {base_url: http://h/v1, model: M, kind: openai}", "m", "'kind': Input should be 'rules'"),
        ("m: http://h/v1", "m", "'m' must hold fields"),
        ("surface: {kind: local}", "surface", "'surface' is the name of a built-in judge"),
        ("m: {kind: local}\nm: {kind: local}", "m", "'m' is given twice"),
        ("m: {kind: local, kind: local}", "m", "a name inside the mapping is given twice"),
        ("[m]", "m", "must hold 'name: value' lines"),
        ("{", "m", "is not YAML"),
    ],
)
def test_a_wrong_entry_is_an_error_that_names_it(tmp_path, text, name, words):
    with pytest.raises(ParameterError, match=rf"models\.yaml(, line \d)?: .*{words}"):
        load(tmp_path, text, name)


def test_a_key_in_the_models_file_is_refused_and_not_repeated(tmp_path):
    with pytest.raises(ModelError, match="must be the NAME of an environment variable") as caught:
        load(tmp_path, "m: {base_url: http://h/v1, model: M, key_env: sk-0123456789}", "m")
    assert "sk-0123456789" not in str(caught.value)


@pytest.mark.parametrize(("value", "words"), [(None, "is not set"), ("  ", "is not set"), ("schlüssel", "characters")])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(monkeypatch, value, words):
    monkeypatch.delenv("SOME_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(ModelError, match=f"SOME_KEY, which .*{words}") as caught:
        Model(name="m", **ADDRESS, key_env="SOME_KEY").secret()
    assert "schl" not in str(caught.value)


def test_the_address_of_a_model_may_move_and_its_settings_may_not():
    request = [Request("m", [{"role": "user", "content": "?"}])]
    here = judges.keys(request, {"m": Model(name="m", base_url="http://a/v1", model="M")})
    there = judges.keys(
        request, {"m": Model(name="m", base_url="http://b/v1", model="M", price_prompt=1, price_completion=1)}
    )
    other = judges.keys(request, {"m": Model(name="m", base_url="http://a/v1", model="N")})
    warm = judges.keys(request, {"m": Model(name="m", base_url="http://a/v1", model="M", extra={"temperature": 1.0})})
    assert here == there
    assert len({*here, *other, *warm}) == 3


def test_the_models_that_ship_can_be_loaded_and_hold_the_published_panel():
    models = judges.load("params/models.yaml")
    assert {"Qwen3-8B", "Qwen3-32B", "Llama-3.1-8B-Instruct", "gemini-2.5-flash"} < set(models)
    assert {"smollm2-greedy", "smollm2-cool", "smollm2-warm", "smollm2-hot", "smollm2-wide"} < set(models)
