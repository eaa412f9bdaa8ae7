"""Requests to models, and the keys that their content gives them in the answer store."""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Request", "keys"]


class Request(NamedTuple):
    """One question to one model: `model` is a name in the models file, `repeat` numbers equal questions.

    Let the requests of one prompt share one `messages` object, and those of one model one `sampling` object: then
    `keys` hashes them once.
    """

    model: str
    messages: Sequence[Mapping[str, Any]]
    sampling: Mapping[str, Any] = types.MappingProxyType({})
    repeat: int = 0


def keys(requests: Iterable[Request], identities: Mapping[str, str] | None = None) -> list[bytes]:
    """Return the SHA-256 of each request's content, 32 bytes each, over length-prefixed fields.

    `identities` says for a model's name what else decides its answers: model id, extra fields, version of the rules.

    >>> prompt = [{"role": "user", "content": "2 + 2?"}]
    >>> first, again, warmer = keys([Request("m", prompt), Request("m", prompt), Request("m", prompt, {"t": 1.0})])
    >>> first == again, first == warmer, len(first)
    (True, False, 32)
    """
    identities = identities or {}
    prompts: dict[int, tuple[Any, Any]] = {}
    tails: dict[tuple[str, int, int], tuple[Any, bytes]] = {}
    digests = []
    for model, messages, sampling, repeat in requests:
        # An id stands for the object only while it lives, so the object is kept beside what was made of it.
        prompt = prompts.get(id(messages))
        if prompt is None:
            prompt = prompts[id(messages)] = (messages, hashlib.sha256(_framed(_fields(messages))))
        tail = tails.get((model, id(sampling), repeat))
        if tail is None:
            fields = (model, identities.get(model, ""), _canonical(sampling), str(repeat))
            tail = tails[model, id(sampling), repeat] = (sampling, _framed(fields))
        state = prompt[1].copy()
        state.update(tail[1])
        digests.append(state.digest())
    return digests


def _fields(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    fields = []
    for message in messages:
        fields.append(str(len(message)))
        for name in sorted(message):
            value = message[name]
            fields += (name, "text", value) if isinstance(value, str) else (name, "json", _canonical(value))
    return fields


def _framed(fields: Sequence[str]) -> bytes:
    """Join texts so that no two lists of them look alike: their lengths, then their characters."""
    lengths = " ".join(map(str, map(len, fields)))
    return f"{lengths}:{''.join(fields)}".encode("utf-8", "surrogatepass")


def _canonical(value: Any) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
