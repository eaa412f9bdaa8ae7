"""Asking many questions of several models: once each, as fast as the servers bear, never over the budget.

A reply is on the disk before its row counts as done and before its place in the lane is free again: what a kill can
lose is what was in flight.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import aiohttp

from helpers.answers import ANSWERED, FAILED, UNUSABLE, Answer, Reply, Request, Store, uncollected
from helpers.judges import endpoint, local
from helpers.judges.accounts import Budget, Outcome
from helpers.judges.endpoint import Exchange, Post
from helpers.judges.lanes import ASK_LIMIT, FIRST_BACKOFF_S, Lane, Row
from helpers.judges.models import Model, ModelError, keys
from helpers.progress import Progress

__all__ = ["Clock", "ask", "equal_repeats", "has_text", "prompt_tokens"]

UNREADABLE_REPLIES = 2  # in one run: an equal question tends to get an equal answer
COMMIT_SECONDS = 0.002
HEARTBEAT_SECONDS = 1.0
RULES_A_CHUNK = 1_000
REPLIES_A_LOOK = 10_000
REPEATS_LOOKED_AT = 100
CHARACTERS_PER_TOKEN = 4
UNSET_COMPLETION_TOKENS = 1024  # reserved in the budget where a request sets no max_tokens
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


class Server(NamedTuple):
    """Where a lane posts to, and what must never be written down."""

    url: str
    headers: Mapping[str, str]
    secret: str


def has_text(answer: Answer) -> bool:
    """Accept any reply that says something: the default of `ask`."""
    return bool(answer.text.strip() or answer.refusal)


def prompt_tokens(request: Request) -> int:
    """Estimate the tokens of a prompt as a quarter of its characters.

    >>> prompt_tokens(Request("m", [{"role": "user", "content": "x" * 400}]))
    100
    """
    return sum(len(str(message.get("content", ""))) for message in request.messages) // CHARACTERS_PER_TOKEN


async def ask(
    requests: Iterable[Request],
    *,
    models: Mapping[str, Model],
    store: Store,
    usable: Callable[[Answer], bool] = has_text,
    budget: Budget | None = None,
    concurrency: int = 64,
    max_attempts: int = 4,
    max_wait_s: float = 60.0,
    progress: Progress | None = None,
    clock: Clock | None = None,
    post: Post | None = None,
) -> Outcome:
    """Answer the requests that the store has no answer to, and say what became of them; read the answers there.

    `usable` decides whether a reply is an answer (a verdict can be read from it). One that is not is stored and asked
    for again, now and on the next run. A model that cannot be used stops alone: `Outcome.check` raises afterwards.
    Raises ModelError before anything is sent when a model is unknown, lacks its key or, under a budget, its price;
    StoreError when the disk is full. Whatever has arrived is stored, also when the call is cancelled.
    """
    requests = list(requests)
    budget, ledger = budget or Budget(), _Ledger(store)
    secrets = _check(requests, models, budget)
    flow = _Flow(ledger, usable, budget, max_attempts, max_wait_s, progress, clock or Clock())
    with uncollected():
        flow.plan(requests, models, concurrency)
    try:
        await flow.run(secrets, post)
    except BaseExceptionGroup as group:
        raise _first(group) from None
    finally:
        flow.close()
    if ledger.broken is not None:
        raise ledger.broken
    for name, count in equal_repeats(requests, models, store).items():
        flow.outcome.tallies[name].warnings["all repeats of a request are word for word the same"] = count
    return flow.outcome


def _check(requests: Sequence[Request], models: Mapping[str, Model], budget: Budget) -> dict[str, str]:
    names = dict.fromkeys(request.model for request in requests)
    for name in names:
        if name not in models:
            raise ModelError(f"there is no model {name!r} among those given: {', '.join(models)}")
    used = [models[name] for name in names]
    if budget.money:
        unpriced = [model.name for model in used if model.cost(0, 0) is None]
        if unpriced:
            raise ModelError(f"a budget in money needs the prices of {unpriced[0]!r}: add them (0 for your own server)")
        currencies = {model.currency for model in used if model.price_prompt or model.price_completion}
        if len(currencies) > 1:
            raise ModelError(f"a budget in money needs one currency, not {' and '.join(sorted(currencies))}")
    return {model.name: model.secret() for model in used}


class _Ledger:
    """Commit the replies that arrive within two milliseconds together; each sender waits for its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.broken: Exception | None = None
        self._arrived: list[Reply] = []
        self._committed: asyncio.Event | None = None

    async def put(self, *replies: Reply) -> bool:
        """Return whether the replies are on the disk."""
        self._arrived += replies
        if self._committed is None:
            self._committed = asyncio.Event()
            asyncio.get_running_loop().call_later(COMMIT_SECONDS, self.flush)
        await self._committed.wait()
        return self.broken is None

    def flush(self) -> None:
        """Commit what has arrived; what cannot be written is kept for another try."""
        committed, self._committed = self._committed, None
        try:
            if self._arrived:
                self.store.put(self._arrived)
                self._arrived = []
        except Exception as error:  # for `ask` to raise, once the replies in flight have come in
            self.broken = error
        if committed is not None:
            committed.set()


@dataclass
class _Flow:
    """One call of `ask`: its lanes, its ledger and its counts."""

    ledger: _Ledger
    usable: Callable[[Answer], bool]
    budget: Budget
    max_attempts: int
    max_wait_s: float
    progress: Progress | None
    clock: Clock
    outcome: Outcome = field(default_factory=Outcome)
    lanes: dict[str, Lane] = field(default_factory=dict)
    in_flight: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def plan(self, requests: Sequence[Request], models: Mapping[str, Model], concurrency: int) -> None:
        """Put what the store has no answer to into the lanes, one for each model."""
        digests = self.outcome.keys = keys(requests, models)
        distinct = dict(zip(digests, requests, strict=True))
        answered, asked = self.ledger.store.known(digests)
        answered |= self._reread(list(asked))
        for name, count in Counter(request.model for request in distinct.values()).items():
            ceiling = 1 if models[name].kind == "local" else min(concurrency, models[name].max_concurrency)
            self.lanes[name] = Lane(models[name], ceiling)
            self.outcome.tallies[name] = self.lanes[name].tally
            self.lanes[name].tally.requests = self.lanes[name].tally.from_store = count
        for key, request in distinct.items():
            if key not in answered:
                self.lanes[request.model].place(Row(key, request, asked.get(key, 0)))
        self._show(stored=len(requests) - sum(len(lane.todo) for lane in self.lanes.values()))

    def _reread(self, asked: list[bytes]) -> set[bytes]:
        """Find the replies that a better parser, or a batch file, has made answers."""
        store, found = self.ledger.store, set[bytes]()
        for start in range(0, len(asked), REPLIES_A_LOOK):
            replies = store.get_many(asked[start : start + REPLIES_A_LOOK])
            found |= {reply.key for reply in replies if reply and self.usable(reply)}
        store.accept(found)
        return found

    async def run(self, secrets: Mapping[str, str], post: Post | None) -> None:
        """Drive the lanes to their ends: servers side by side, models on this machine one after the other."""
        busy = [lane for lane in self.lanes.values() if lane.todo]
        if not busy:
            return
        async with endpoint.session() as client:
            self.post = post or endpoint.post(client)
            beat = asyncio.create_task(self._beat())
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._rules([lane for lane in busy if lane.model.kind == "rules"]))
                    group.create_task(self._local([lane for lane in busy if lane.model.kind == "local"]))
                    for lane in busy:
                        if lane.model.kind == "endpoint":
                            group.create_task(self._drive(lane, lane.model.base_url, secrets[lane.model.name]))
            finally:
                beat.cancel()

    def close(self) -> None:
        """Store what has arrived, and name what was not asked."""
        self.ledger.flush()
        for lane in self.lanes.values():
            lane.tally.not_asked = len(lane.todo)
            why = lane.tally.stopped or self.outcome.stopped or "the run was cancelled"
            self.outcome.failed.update((row.key, f"not_asked: {why}") for row in lane.todo)

    def _show(self, done: int = 0, failed: int = 0, stored: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        if self.progress is not None:
            self.progress.add(done, failed, stored, tokens, cost)

    async def _beat(self) -> None:
        while self.progress is not None:
            self.progress.tick()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _rules(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            while lane.todo and self.ledger.broken is None:
                rows = [lane.todo.popleft() for _ in range(min(RULES_A_CHUNK, len(lane.todo)))]
                replies = await asyncio.to_thread(_rule_replies, lane.model, rows, self.clock.now())
                if await self.ledger.put(*replies):
                    failed = sum(reply.state == FAILED for reply in replies)
                    lane.tally.answered += len(rows) - failed
                    lane.tally.failed.update({"rule_error": failed} if failed else {})
                    self.outcome.failed.update((reply.key, str(reply.error)) for reply in replies if reply.error)
                    self._show(done=len(rows) - failed, failed=failed)

    async def _local(self, lanes: Sequence[Lane]) -> None:
        if lanes:
            address = local.address()
            for lane in lanes:
                lane.todo = deque(sorted(lane.todo, key=_prompt_text))  # equal beginnings one after the other
                await self._drive(lane, address, "")

    async def _drive(self, lane: Lane, base_url: str, secret: str) -> None:
        server = Server(f"{base_url.rstrip('/')}/chat/completions", endpoint.headers(secret), secret)
        async with asyncio.TaskGroup() as group:
            self._widen(lane, server, group)

    def _widen(self, lane: Lane, server: Server, group: asyncio.TaskGroup) -> None:
        for _ in range(min(int(lane.width) - lane.running, len(lane.todo))):
            lane.running += 1
            group.create_task(self._work(lane, server, group))

    async def _work(self, lane: Lane, server: Server, group: asyncio.TaskGroup) -> None:
        while lane.todo and lane.running <= max(1, int(lane.width)) and not self._is_over(lane):
            await self._answer(lane, server, lane.todo.popleft())
            self._widen(lane, server, group)
        lane.running -= 1

    def _is_over(self, lane: Lane) -> bool:
        return bool(lane.tally.stopped or self.outcome.stopped or self.ledger.broken)

    async def _answer(self, lane: Lane, server: Server, row: Row) -> None:
        """Ask until there is an answer or no sense in asking again; a row that may not be asked goes back."""
        while (estimate := await self._may_go(lane, row)) is not None:
            epoch, asked_with, started = lane.epoch, lane.token_field, self.clock.now()
            exchange = await self._exchange(lane, server, row, estimate)
            spent = self.clock.now() - started
            reply = endpoint.as_reply(lane.model, row.key, exchange, row.attempts + 1, started, spent)
            if exchange.kind == "token_field" and lane.switches_token_field(asked_with):
                continue
            row.attempts += 1
            if exchange.kind in ("answer", "empty"):
                again = await self._keep(lane, row, exchange, reply)
            elif exchange.kind in RETRIED:
                again = await self._back_off(lane, row, exchange, reply, epoch)
            else:
                again = await self._fail(lane, row, exchange, reply)
            if not again:
                return
        lane.todo.append(row)

    async def _may_go(self, lane: Lane, row: Row) -> float | None:
        """Wait for the lane and the budget; return the cost that is reserved, or None when the row cannot be asked."""
        tokens, completion = _estimate(row.request) if lane.model.tokens_per_minute or self.budget.money else (0, 0)
        start = lane.pace(max(self.clock.now(), lane.cool_until, row.ready_at), tokens + completion)
        while (wait := max(start, lane.cool_until) - self.clock.now()) > 0:
            await self.clock.sleep(wait)
        estimate = lane.model.cost(tokens, completion) or 0.0
        while not self._is_over(lane):
            if self.budget.reserve(estimate):
                return estimate
            if not self.in_flight:
                self.outcome.stopped = f"the budget is spent ({self.budget.told()})"
                break
            self.settled.clear()
            await self.settled.wait()
        return None

    async def _exchange(self, lane: Lane, server: Server, row: Row, estimate: float) -> Exchange:
        asked = endpoint.body(lane.model, row.request, token_field=lane.token_field, seed=row.seed)
        cost: float | None = None
        self.in_flight += 1
        lane.tally.sent += 1
        try:
            http = await self.post(server.url, server.headers, json.dumps(asked).encode(), lane.model.timeout_s)
            exchange = endpoint.read(
                endpoint.scrubbed(http, server.secret), now=self.clock.now(), logprobs=bool(asked.get("logprobs"))
            )
            cost = _charged(lane.model, exchange)
        except (aiohttp.ClientError, OSError) as error:
            exchange = endpoint.broken(error)
            cost = _charged(lane.model, exchange)
        finally:
            self.in_flight -= 1
            self.budget.settle(estimate, estimate if cost is None else cost)
            self.settled.set()
        return exchange

    async def _keep(self, lane: Lane, row: Row, exchange: Exchange, reply: Reply) -> bool:
        """Store a reply, count it, and say whether to ask again."""
        declined = bool(reply.refusal or reply.finish_reason == "content_filter")
        good = exchange.kind == "answer" and (declined or self.usable(_as_answer(reply)))
        if not await self.ledger.put(reply._replace(state=ANSWERED if good else UNUSABLE)):
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
        self._show(done=good, failed=not (good or again), tokens=spent, cost=reply.cost or 0.0)
        return again

    async def _back_off(self, lane: Lane, row: Row, exchange: Exchange, reply: Reply, epoch: int) -> bool:
        """Slow the lane down and queue the row again, or give it up; the server's number wins in both directions."""
        lane.slowed(epoch)
        wait = row.backoff() if exchange.wait is None else exchange.wait
        pause = wait if exchange.wait is not None or exchange.kind == "rate_limited" else FIRST_BACKOFF_S
        lane.cool_until = max(lane.cool_until, self.clock.now() + min(pause, self.max_wait_s))
        too_long = row.waited + wait > self.max_wait_s
        if row.attempts >= self.max_attempts or too_long:
            told = f"gave up after {row.attempts} of {self.max_attempts} attempts"
            told += f", the next one only in {wait:g} s (at most {self.max_wait_s:g} s in all)" if too_long else ""
            return await self._fail(lane, row, exchange._replace(message=f"{told}: {exchange.message}"), reply)
        row.waited, row.ready_at = row.waited + wait, self.clock.now() + wait
        lane.todo.append(row)  # at the end, so that it does not keep a place in the narrower lane
        return False

    async def _fail(self, lane: Lane, row: Row, exchange: Exchange, reply: Reply) -> bool:
        """Record a failure; one that every row would meet stops the model, and the row stays to be asked."""
        told = f"{exchange.kind}: {exchange.message}"
        await self.ledger.put(reply._replace(state=FAILED, error=told))
        if exchange.kind in STOPPING:
            lane.tally.stopped = lane.tally.stopped or told
            lane.todo.append(row)
            return False
        lane.tally.failed[exchange.kind] += 1
        self.outcome.failed[row.key] = told
        self._show(failed=1)
        if exchange.kind in ABOUT_THE_ROW:
            lane.answered()
        else:
            lane.failed(told)
        return False


def _estimate(request: Request) -> tuple[int, int]:
    sampling = request.sampling
    return prompt_tokens(request), int(sampling.get("max_tokens") or UNSET_COMPLETION_TOKENS)


def _charged(model: Model, exchange: Exchange) -> float | None:
    """Return what an exchange costs; None where nobody says, and its estimate has to stand for it."""
    if exchange.kind in ("answer", "empty"):
        return model.cost(exchange.prompt_tokens, exchange.completion_tokens)
    return None if exchange.kind in PERHAPS_BILLED else 0.0


def _as_answer(reply: Reply) -> Answer:
    return Answer(reply.key, True, reply.text, reply.reasoning, reply.refusal, reply.finish_reason)


def _prompt_text(row: Row) -> str:
    return "\0".join(str(message.get("content")) for message in row.request.messages)


def _rule_replies(model: Model, rows: Sequence[Row], now: float) -> list[Reply]:
    from helpers.judges import rules

    replies = []
    for row in rows:
        reply = Reply(row.key, ANSWERED, model.name, model.identity, model.identity, "stop", cost=0.0, started=now)
        try:
            replies.append(reply._replace(text=rules.reply(model.name, row.request.messages)))
        except Exception as error:  # of one text; the others are judged all the same
            replies.append(reply._replace(state=FAILED, error=f"rule_error: {type(error).__name__}: {error}"))
    return replies


def equal_repeats(requests: Sequence[Request], models: Mapping[str, Model], store: Store) -> dict[str, int]:
    """Count, for each model whose repeats are always word for word the same, the requests that say so.

    The first hundred are looked at. Built-in judges repeat themselves by nature and are left out.
    """
    groups: dict[tuple[str, int, int], list[Request]] = defaultdict(list)
    for request in requests if any(request.repeat for request in requests) else ():
        groups[request.model, id(request.messages), id(request.sampling)].append(request)
    counts = {}
    for name in {model: None for model, _, _ in groups if models[model].kind != "rules"}:
        repeated = [group for (model, _, _), group in groups.items() if model == name and len(group) > 1]
        digests = [keys(group, models) for group in repeated[:REPEATS_LOOKED_AT]]
        texts = [{answer.text for answer in store.get_many(group) if answer} for group in digests]
        if texts and all(len(different) == 1 for different in texts):
            counts[name] = len(texts)
    return counts


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
