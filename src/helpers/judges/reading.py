"""What the reply of an OpenAI-compatible server says.

Servers agree on the outline of `/chat/completions` and on little else, so a reply is read by its structure (status,
codes, fields) and kept raw. Words decide only where servers give no code for a request that is too long.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

__all__ = ["Exchange", "Http", "read"]

RETRIED_STATUS = frozenset({408, 409, 425, 429})
TOO_LONG = re.compile(
    r"context length|context window|context size|(prompt|input) is too long|input token count"
    r"|max_\w*tokens\W{1,3}must be at least 1",
    re.IGNORECASE,
)
SHORTEST_WAIT_S = 0.1


class Http(NamedTuple):
    """What came back over the wire."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class Exchange(NamedTuple):
    """One reply, read. `kind` is `answer`, `empty`, or what went wrong; `wait` is what the server asks for, in s.

    Its texts are the server's own until they went through `scrubbing.finished`.
    The fields from `served_model` on are the last ones of `answers.Reply`.
    """

    kind: str
    message: str = ""
    wait: float | None = None
    warnings: tuple[str, ...] = ()
    served_model: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    text: str = ""
    reasoning: str | None = None
    refusal: str | None = None
    raw: str | None = None


def read(http: Http, *, now: float, logprobs: bool = False) -> Exchange:
    """Read a reply by its structure; total, whatever the bytes are. `now` is in seconds since 1970.

    >>> read(Http(429, {"Retry-After": "3"}, b'{"error": {"message": "slow down"}}'), now=0.0)[:3]
    ('rate_limited', 'slow down', 3.0)
    """
    raw = http.data.decode("utf-8", "replace")
    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        payload = None
    choice = _first_choice(payload)
    if http.status == 200 and isinstance(choice.get("message"), dict) and not choice.get("error"):
        return _answer(payload, choice, raw, logprobs)
    return _failure(http, payload, choice, raw, now)


def _first_choice(payload: Any) -> dict[str, Any]:
    choices = payload.get("choices") if isinstance(payload, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _answer(payload: dict[str, Any], choice: dict[str, Any], raw: str, logprobs: bool) -> Exchange:
    message = choice["message"]
    text = _text(message.get("content"))
    # Older vLLM and others say reasoning_content, newer ones reasoning.
    field = "reasoning_content" if message.get("reasoning_content") else "reasoning"
    reasoning, refusal = _text(message.get(field)) or None, _text(message.get("refusal")) or None
    finish_reason = _text(choice.get("finish_reason")) or None
    has_answer = bool(text.strip() or refusal or finish_reason == "content_filter")
    warnings = []
    if logprobs and not choice.get("logprobs"):
        warnings.append("logprobs were asked for and none came back")
    if reasoning and not text.strip():
        warnings.append(f"content is empty and the text is in {field}: the server's reasoning parser looks wrong")
    usage = payload["usage"] if isinstance(payload.get("usage"), dict) else {}
    return Exchange(
        "answer" if has_answer else "empty",
        text=text,
        reasoning=reasoning,
        refusal=refusal,
        finish_reason=finish_reason,
        served_model=_text(payload.get("model")) or None,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        raw=raw,
        warnings=tuple(warnings),
    )


def _text(value: Any) -> str:
    if isinstance(value, list):  # some servers answer in parts
        value = "".join(part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))
    if not isinstance(value, str):
        return ""
    # Half of a surrogate pair is valid JSON, but no file can hold it.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _failure(http: Http, payload: Any, choice: dict[str, Any], raw: str, now: float) -> Exchange:
    outer = payload if isinstance(payload, dict) else {}
    error = choice.get("error") or outer.get("error") or payload
    fields = error if isinstance(error, dict) else {}
    message = _text(fields.get("message")) or _text(outer.get("message")) or _text(error) or raw
    codes = {str(fields.get(name)) for name in ("code", "type", "status")}
    status = http.status
    if 200 <= status < 300:  # the status is inside, as text or number, or this is no reply at all
        status = next((int(code) for code in sorted(codes) if re.fullmatch("[0-9]{3}", code)), 0)
    kind = _kind(status, codes, str(fields.get("param")), message)
    if kind == "redirect":
        message = f"the server points to {http.headers.get('Location')}; set base_url to where it really is"
    metadata = fields.get("metadata")
    if kind == "auth" and isinstance(metadata, dict) and "reasons" in metadata:
        kind = "moderated"  # a router's 403 about this one text
    return Exchange(kind, message, _wait(http.headers, now), raw=raw)


def _kind(status: int, codes: set[str], param: str, message: str) -> str:
    if "insufficient_quota" in codes or status == 402:
        return "quota"
    if "model_not_found" in codes:
        return "model_not_found"
    if status < 300:
        return "malformed"
    if status >= 500 or status in RETRIED_STATUS:
        return "rate_limited" if status == 429 else "server_error"
    if 300 <= status < 400:
        return "redirect"
    if status in (401, 403):
        return "auth"
    if status in (404, 405):
        return "model_not_found"
    if "context_length_exceeded" in codes or TOO_LONG.search(message):
        return "context_too_long"
    if "max_tokens" in (param, *re.findall(r"'(max_tokens)' is not supported", message)):
        return "token_field"
    return "bad_request"


def _wait(headers: Mapping[str, str], now: float) -> float | None:
    for name, unit in (("retry-after-ms", 1e-3), ("Retry-After", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value, now)
        if math.isfinite(seconds) and seconds >= 0:
            return max(seconds, SHORTEST_WAIT_S)
    return None


def _until(date: str, now: float) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return -1.0
