"""Asking one request until it has an answer, or there is no sense in asking again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp

from helpers.answers import Answer, Reply
from helpers.answers.store import ANSWERED, FAILED, UNUSABLE
from helpers.judges import endpoint
from helpers.judges.accounts import Budget, Outcome, estimate
from helpers.judges.endpoint import Post, Server
from helpers.judges.lanes import ASK_LIMIT, FIRST_BACKOFF_S, Lane, Row
from helpers.judges.ledger import Ledger
from helpers.judges.models import Model
from helpers.judges.reading import Exchange, read
from helpers.progress import Progress

__all__ = ["Asking", "Clock"]

UNREADABLE_REPLIES = 2  # in one run: an equal question tends to get an equal answer
RETRIED = frozenset({"rate_limited", "server_error", "timeout", "unreachable", "broken", "malformed"})
PERHAPS_BILLED = frozenset({"timeout", "broken", "malformed"})
STOPPING = frozenset({"quota", "auth", "model_not_found", "redirect"})
ABOUT_THE_ROW = frozenset({"context_too_long", "moderated"})


class Clock:
    """The time, and waiting for it; a test brings its own."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass
class Asking:
    """What the rows of all lanes share: where replies go, what may be spent, and what is counted.

    A reply is on the disk before its row counts as done and before its place in the lane is free again: what a kill can
    lose is what was in flight.
    """

    ledger: Ledger
    usable: Callable[[Answer], bool]
    budget: Budget
    max_attempts: int
    max_wait_s: float
    progress: Progress | None
    clock: Clock
    outcome: Outcome = field(default_factory=Outcome)
    in_flight: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def show(self, done: int = 0, failed: int = 0, stored: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """Move the progress along, if somebody looks."""
        if self.progress is not None:
            self.progress.add(done, failed, stored, tokens, cost)

    def is_over(self, lane: Lane) -> bool:
        """Say whether nothing more may be sent to this model."""
        return bool(lane.tally.stopped or self.outcome.stopped or self.ledger.broken)

    async def answer(self, lane: Lane, post: Post, server: Server, row: Row) -> None:
        """Ask until there is an answer or no sense in asking again; a row that may not be asked goes back."""
        while (reserved := await self._may_go(lane, row)) is not None:
            epoch, asked_with, started = lane.epoch, lane.token_field, self.clock.now()
            exchange = await self._exchange(lane, post, server, row, reserved)
            if exchange.kind == "token_field" and lane.switches_token_field(asked_with):
                continue
            row.attempts += 1
            row.started, row.seconds = started, self.clock.now() - started
            if exchange.kind in ("answer", "empty"):
                again = await self._keep(lane, row, exchange)
            elif exchange.kind in RETRIED:
                again = await self._back_off(lane, row, exchange, epoch)
            else:
                again = await self._fail(lane, row, exchange)
            if not again:
                return
        lane.todo.append(row)

    async def _may_go(self, lane: Lane, row: Row) -> float | None:
        """Wait for the lane and the budget; return the cost that is reserved, or None when the row cannot be asked."""
        counts = lane.model.tokens_per_minute or self.budget.money
        tokens = estimate(lane.model, row.request) if counts else (0, 0)
        start = lane.pace(max(self.clock.now(), lane.cool_until, row.ready_at), sum(tokens))
        while (wait := max(start, lane.cool_until) - self.clock.now()) > 0:
            await self.clock.sleep(wait)
        reserved = lane.model.cost(*tokens) or 0.0
        while not self.is_over(lane):
            if self.budget.reserve(reserved):
                return reserved
            if not self.in_flight:
                self.outcome.stopped = f"the budget is spent ({self.budget.told()})"
                break
            self.settled.clear()
            await self.settled.wait()
        return None

    async def _exchange(self, lane: Lane, post: Post, server: Server, row: Row, reserved: float) -> Exchange:
        asked = endpoint.body(lane.model, row.request, token_field=lane.token_field, seed=row.seed)
        cost: float | None = None
        self.in_flight += 1
        lane.tally.sent += 1
        try:
            http = await post(server.url, server.headers, json.dumps(asked).encode(), lane.model.timeout_s)
            exchange = read(http, now=self.clock.now(), logprobs=bool(asked.get("logprobs")))
            cost = _charged(lane.model, exchange)
        except (aiohttp.ClientError, OSError) as error:
            exchange = endpoint.broken(error)
            cost = _charged(lane.model, exchange)
        finally:
            self.in_flight -= 1
            self.budget.settle(reserved, reserved if cost is None else cost)
            self.settled.set()
        return server.finished(exchange)

    async def _keep(self, lane: Lane, row: Row, exchange: Exchange) -> bool:
        """Store a reply, count it, and say whether to ask again."""
        answer = Answer(row.key, True, exchange.text, exchange.reasoning, exchange.refusal, exchange.finish_reason)
        declined = bool(exchange.refusal or exchange.finish_reason == "content_filter")
        good = exchange.kind == "answer" and (declined or self.usable(answer))
        reply = _reply(lane, row, exchange, ANSWERED if good else UNUSABLE)
        if not await self.ledger.put(reply):
            return False
        lane.answered()
        lane.tally.count(reply, exchange.warnings)
        row.replies += 1
        row.asked += not good
        tries = self.max_attempts if exchange.kind == "empty" else UNREADABLE_REPLIES
        cut_off = reply.finish_reason == "length"  # and would be again
        again = not (good or cut_off or row.replies >= tries or row.asked >= ASK_LIMIT)
        again = again and row.attempts < self.max_attempts
        lane.tally.answered += good
        lane.tally.unusable += not (good or again)
        spent = (reply.prompt_tokens or 0) + (reply.completion_tokens or 0)
        self.show(done=good, failed=not (good or again), tokens=spent, cost=reply.cost or 0.0)
        return again

    async def _back_off(self, lane: Lane, row: Row, exchange: Exchange, epoch: int) -> bool:
        """Slow the lane down and queue the row again, or give it up; the server's number wins in both directions."""
        lane.slowed(epoch)
        wait = row.backoff() if exchange.wait is None else exchange.wait
        pause = wait if exchange.wait is not None or exchange.kind == "rate_limited" else FIRST_BACKOFF_S
        lane.cool_until = max(lane.cool_until, self.clock.now() + min(pause, self.max_wait_s))
        too_long = row.waited + wait > self.max_wait_s
        if row.attempts >= self.max_attempts or too_long:
            told = f"gave up after {row.attempts} of {self.max_attempts} attempts"
            told += f", the next one only in {wait:g} s (at most {self.max_wait_s:g} s in all)" if too_long else ""
            return await self._fail(lane, row, exchange._replace(message=f"{told}: {exchange.message}"))
        row.waited, row.ready_at = row.waited + wait, self.clock.now() + wait
        lane.todo.append(row)  # at the end, so that it does not keep a place in the narrower lane
        return False

    async def _fail(self, lane: Lane, row: Row, exchange: Exchange) -> bool:
        """Record a failure; one that every row would meet stops the model, and the row stays to be asked."""
        told = f"{exchange.kind}: {exchange.message}"
        await self.ledger.put(_reply(lane, row, exchange, FAILED))
        if exchange.kind in STOPPING:
            lane.tally.stopped = lane.tally.stopped or told
            lane.todo.append(row)
            return False
        lane.tally.failed[exchange.kind] += 1
        self.outcome.failed[row.key] = told
        self.show(failed=1)
        if exchange.kind in ABOUT_THE_ROW:
            lane.answered()
        else:
            lane.failed(exchange.kind, told)
        return False


def _charged(model: Model, exchange: Exchange) -> float | None:
    """Return what an exchange costs; None where nobody says, and its estimate has to stand for it."""
    if exchange.kind in ("answer", "empty"):
        return model.cost(exchange.prompt_tokens, exchange.completion_tokens)
    return None if exchange.kind in PERHAPS_BILLED else 0.0


def _reply(lane: Lane, row: Row, exchange: Exchange, state: int) -> Reply:
    when = (row.started, row.seconds, row.attempts)
    return endpoint.as_reply(lane.model, row.key, exchange, state, *when)
