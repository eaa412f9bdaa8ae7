"""An OpenAI-compatible server on 127.0.0.1 that does what a script says: for the tests, and fast enough for the bench.

It speaks just enough HTTP/1.1, on bare sockets, to answer wrongly in every way that a real server does.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

SENTENCE = "The precursors are weighed in the right ratio, and the furnace reaches what the phase needs. "


@dataclass
class Reply:
    """What to send: a status and a body, or a way to break off (`reset`, `torn`, `hang`)."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks: str = ""
    delay: float = 0.0

    def data(self) -> bytes:
        data = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.compress(data)
        lines = {"Content-Type": "application/json", "Content-Length": str(len(data)), **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {self.status} Whatever\r\n{head}\r\n".encode() + data


def completion(
    text: str | None, *, finish_reason: str = "stop", model: str = "judge-1", **message: Any
) -> dict[str, Any]:
    """The body of an ordinary answer."""
    return {
        "id": "r1",
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 120},
    }


def verdict(number: int) -> str:
    """About 1.5 kB of a judge's answer; its overall score depends on the number."""
    scores = {"materials_score": 4.0, "procedure_score": 2.5, "overall_score": 1 + number % 9 / 2}
    return f"{number}. {SENTENCE * 15}\n\n```json\n{json.dumps(scores)}\n```"


class Server:
    """Serve `respond(body)`; keeps every request's body and headers, and counts those that are being answered."""

    def __init__(self, respond: Callable[[dict[str, Any]], Reply]) -> None:
        self.respond = respond
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.open = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._server.close_clients() if hasattr(self._server, "close_clients") else None
        await asyncio.sleep(0)


def scripted(replies: Iterable[Reply]) -> Server:
    """Serve these replies in order; one too many is an error that no client retries."""
    left = deque(replies)
    return Server(lambda body: left.popleft() if left else Reply(418, {"error": {"message": "the script is over"}}))


class _Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server, self.buffer = server, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.server.headers.append(head.decode("latin-1"))
            self.server.bodies.append(json.loads(rest[:length]))
            self._reply(self.server.respond(self.server.bodies[-1]))

    def _reply(self, reply: Reply) -> None:
        self.server.open += 1
        if reply.breaks == "hang":
            return
        if reply.delay:
            asyncio.get_running_loop().call_later(reply.delay, self._send, reply)
        else:
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        self.server.open -= 1
        data = reply.data()
        head = data.index(b"\r\n\r\n") + 4
        if reply.breaks:
            self.transport.write(data[: head if reply.breaks == "reset" else head + (len(data) - head) // 2])
            self.transport.abort() if reply.breaks == "reset" else self.transport.close()
        else:
            self.transport.write(data)


class _Fast(asyncio.Protocol):
    """For the bench: prepared answers in turn after a fixed time, and no look at the question."""

    def __init__(self, answers: Iterator[bytes], delay: float) -> None:
        self.answers, self.delay, self.buffer = answers, delay, b""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.later = transport, asyncio.get_running_loop().call_later

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            start = self.buffer.lower().find(b"content-length:") + 15
            length = int(self.buffer[start : self.buffer.find(b"\r\n", start)])
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            self.later(self.delay, self.transport.write, next(self.answers))


async def _serve_fast(delay: float) -> None:
    answers = itertools.cycle([Reply(body=completion(verdict(number))).data() for number in range(1_000)])
    server = await asyncio.get_running_loop().create_server(lambda: _Fast(answers, delay), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    asyncio.run(_serve_fast(float(sys.argv[1])))
