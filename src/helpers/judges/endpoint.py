"""One question to an OpenAI-compatible server over aiohttp."""

from __future__ import annotations

import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from helpers.answers import Reply, Request
from helpers.answers.store import FAILED
from helpers.judges.models import Model
from helpers.judges.reading import Exchange, Http
from helpers.judges.scrubbing import finished, spellings

__all__ = ["Post", "Server", "as_reply", "body", "broken", "post", "session"]

# aiohttp would obey the proxy variables by reading them again for every request.
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Server:
    """Where requests go; the only holder of a key, which it neither shows nor lets back in.

    >>> Server("http://h/v1", "sk-12345678").finished(Exchange("auth", "bad key sk-12345678")).message
    'bad key ***'
    """

    def __init__(self, base_url: str, secret: str = "") -> None:
        self.url = f"{base_url.rstrip('/')}/chat/completions"
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
        self._secret = spellings(secret)

    def finished(self, exchange: Exchange) -> Exchange:
        """Blank out the key in all that an exchange says, before anything else sees it, and put its error on a line."""
        return finished(exchange, self._secret)


Post = Callable[[str, Mapping[str, str], bytes, float], Awaitable[Http]]


def body(model: Model, request: Request, *, token_field: str = "max_tokens", seed: int | None = None) -> dict[str, Any]:
    """Return the JSON object that asks a model, also as the body of a batch line; a field that is None is left out.

    Where there is a temperature the request gets a seed of its own, since servers that all start from the same one
    answer every repeat alike.

    >>> body(Model(kind="local", name="m", model="M"), Request("m", [{"role": "user", "content": "?"}]), seed=7)
    {'model': 'M', 'messages': [{'role': 'user', 'content': '?'}], 'seed': 7}
    """
    fields: dict[str, Any] = {**request.sampling, **model.extra}
    if model.seeded and fields.get("temperature") != 0:
        fields.setdefault("seed", seed)
    if not model.json_schema:
        fields.pop("response_format", None)
    if "max_tokens" in fields:
        fields[token_field] = fields.pop("max_tokens")
    given = {name: value for name, value in fields.items() if value is not None}
    return {"model": model.model, "messages": list(request.messages), **given}


def session() -> aiohttp.ClientSession:
    """Open a client for the running loop; it belongs to no other."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300), cookie_jar=aiohttp.DummyCookieJar()
    )


def post(client: aiohttp.ClientSession) -> Post:
    """Return the function that posts through this client and neither follows redirects nor raises on a status."""
    proxies = urllib.request.getproxies()
    timeouts: dict[float, aiohttp.ClientTimeout] = {}

    async def send(url: str, headers: Mapping[str, str], data: bytes, timeout_s: float) -> Http:
        if timeout_s not in timeouts:
            timeouts[timeout_s] = aiohttp.ClientTimeout(total=timeout_s)
        options: dict[str, Any] = {"timeout": timeouts[timeout_s], "proxy": _proxy(url, proxies) if proxies else None}
        async with client.post(url, headers=headers, data=data, allow_redirects=False, **options) as response:
            return Http(response.status, response.headers, await response.read())

    return send


def _proxy(url: str, proxies: Mapping[str, str]) -> str | None:
    host = urlsplit(url).hostname or ""
    if host in LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    return proxies.get(urlsplit(url).scheme)


def broken(error: Exception) -> Exchange:
    """Describe a transport that failed: before, while or after the server heard of it.

    >>> broken(TimeoutError()).kind
    'timeout'
    """
    kind = "timeout" if isinstance(error, TimeoutError) else "broken"
    kind = "unreachable" if isinstance(error, aiohttp.ClientConnectorError) else kind
    return Exchange(kind, f"{type(error).__name__}: {error}")


def as_reply(
    model: Model, key: bytes, exchange: Exchange, state: int, started: float, seconds: float = 0.0, attempts: int = 1
) -> Reply:
    """Return an exchange as what the store keeps."""
    error = f"{exchange.kind}: {exchange.message}" if state == FAILED else None
    cost = model.cost(exchange.prompt_tokens, exchange.completion_tokens)
    origin, told = (model.name, model.model), (cost, attempts, started, seconds, error)
    return Reply._make((key, state, *origin, *told, *exchange[4:]))
