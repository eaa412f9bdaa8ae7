"""Asking many questions of several models: once each, as fast as the servers bear, never over the budget."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from helpers.answers import Answer, Reply, Request, Store
from helpers.answers.store import ANSWERED, FAILED, uncollected
from helpers.judges import endpoint, local
from helpers.judges.accounts import Budget, Outcome
from helpers.judges.asking import Asking, Clock
from helpers.judges.endpoint import Post, Server
from helpers.judges.lanes import Lane, Row
from helpers.judges.ledger import Ledger
from helpers.judges.models import Model, ModelError, keys
from helpers.judges.scrubbing import one_line
from helpers.progress import Progress

__all__ = ["ask", "equal_repeats", "has_text"]

HEARTBEAT_SECONDS = 1.0
RULES_A_CHUNK = 1_000
REPLIES_A_LOOK = 10_000
REPEATS_LOOKED_AT = 100
NEW_OBJECTS = 20_000  # between two looks for garbage, of which a run makes little
MODEL, REPEAT = attrgetter("model"), attrgetter("repeat")


def has_text(answer: Answer) -> bool:
    """Accept any reply that says something: the default of `ask`."""
    return bool(answer.text.strip() or answer.refusal)


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
    after: Outcome | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
    post: Post | None = None,
) -> Outcome:
    """Answer the requests that the store has no answer to, and say what became of them; read the answers there.

    `usable` decides whether a reply is an answer (a verdict can be read from it). One that is not is stored and asked
    for again, now and on the next run. A model that cannot be used stops alone: `Outcome.check` raises afterwards. What
    had stopped in an earlier call, whose outcome is `after`, is not tried again.
    Raises ModelError before anything is sent when a model that has to be asked is unknown, not installed, lacks its key
    or, under a budget, its price; StoreError when the disk is full. Whatever has arrived is stored, also when the call
    is cancelled.
    """
    requests = list(requests)
    asking = Asking(Ledger(store), usable, budget or Budget(), max_attempts, max_wait_s, progress, clock or Clock())
    flow = _Flow(asking)
    with uncollected():
        flow.plan(requests, models, concurrency)
    flow.stop_like(after or Outcome())
    flow.check()
    try:
        with uncollected(but_every=NEW_OBJECTS):
            await flow.run(post)
    except BaseExceptionGroup as group:
        raise _first(group) from None
    finally:
        flow.close()
    if asking.ledger.broken is not None:
        raise asking.ledger.broken
    for name, count in equal_repeats(requests, models, store).items():
        asking.outcome.tallies[name].warnings["all repeats of a request are word for word the same"] = count
    return asking.outcome


@dataclass
class _Flow:
    """The lanes of one call of `ask`, one for each model."""

    asking: Asking
    lanes: dict[str, Lane] = field(default_factory=dict)

    def plan(self, requests: Sequence[Request], models: Mapping[str, Model], concurrency: int) -> None:
        """Put what the store has no answer to into the lanes."""
        for name in dict.fromkeys(map(MODEL, requests)):
            if name not in models:
                raise ModelError(f"there is no model {name!r} among those given: {', '.join(models)}")
            self.lanes[name] = Lane(models[name], min(concurrency, models[name].max_concurrency))
        outcome, store = self.asking.outcome, self.asking.ledger.store
        outcome.keys = keys(requests, models)
        outcome.tallies = {name: lane.tally for name, lane in self.lanes.items()}
        distinct = dict(zip(outcome.keys, requests, strict=True))
        answered, asked = store.known(outcome.keys)
        answered |= self._reread(list(asked))
        for name, count in Counter(map(MODEL, distinct.values())).items():
            outcome.tallies[name].requests = outcome.tallies[name].from_store = count
        for key, request in distinct.items():
            if key not in answered:
                self.lanes[request.model].place(Row(key, request, asked.get(key, 0)))
        self.asking.show(stored=len(requests) - sum(len(lane.todo) for lane in self.lanes.values()))

    def stop_like(self, earlier: Outcome) -> None:
        """Send nothing to what has stopped before."""
        self.asking.outcome.stopped = earlier.stopped
        for name, lane in self.lanes.items():
            lane.tally.stopped = earlier.tallies[name].stopped if name in earlier.tallies else ""

    def _reread(self, asked: list[bytes]) -> set[bytes]:
        """Find the replies that a better parser, or a batch file, has made answers."""
        store, found = self.asking.ledger.store, set[bytes]()
        for start in range(0, len(asked), REPLIES_A_LOOK):
            replies = store.get_many(asked[start : start + REPLIES_A_LOOK])
            found |= {reply.key for reply in replies if reply and self.asking.usable(reply)}
        store.accept(found)
        return found

    def busy(self, kind: str = "") -> list[Lane]:
        """Return the lanes that have something to ask, of one kind or of all."""
        return [lane for lane in self.lanes.values() if lane.todo and kind in ("", lane.model.kind)]

    def check(self) -> None:
        """Raise ModelError while nothing has been sent yet; what comes from the store needs no key and no price."""
        for lane in self.busy():
            lane.model.secret()
        if self.busy("local") and not local.installed():
            names = ", ".join(lane.model.name for lane in self.busy("local"))
            raise ModelError(f"the store lacks answers of {names}, and {local.MISSING}")
        if not self.asking.budget.money:
            return
        for lane in self.busy():
            if lane.model.cost(0, 0) is None:
                raise ModelError(
                    f"a budget in money needs the prices of {lane.model.name!r}: "
                    "give price_prompt and price_completion (0 for a server of your own)"
                )
        currencies = sorted({lane.model.currency for lane in self.busy("endpoint")})
        if len(currencies) > 1:
            raise ModelError(f"a budget in money needs one currency, not {' and '.join(currencies)}")

    async def run(self, post: Post | None) -> None:
        """Drive the lanes to their ends: servers side by side, models on this machine one after the other."""
        if not self.busy():
            return
        async with endpoint.session() as client:
            post = post or endpoint.post(client)
            beat = asyncio.create_task(self._beat())
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._rules(self.busy("rules")))
                    group.create_task(self._local(self.busy("local"), post))
                    for lane in self.busy("endpoint"):
                        group.create_task(self._drive(lane, post, Server(lane.model.base_url, lane.model.secret())))
            finally:
                beat.cancel()

    def close(self) -> None:
        """Store what has arrived, also in the file itself, and name what was not asked."""
        self.asking.ledger.flush()
        self.asking.ledger.store.checkpoint()
        outcome = self.asking.outcome
        for lane in self.lanes.values():
            lane.tally.not_asked = len(lane.todo)
            why = lane.tally.stopped or outcome.stopped or "the run was cancelled"
            outcome.failed.update((row.key, f"not_asked: {why}") for row in lane.todo)

    async def _beat(self) -> None:
        while self.asking.progress is not None:
            self.asking.progress.tick()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _rules(self, lanes: Iterable[Lane]) -> None:
        for lane in lanes:
            while lane.todo and not self.asking.ledger.broken:
                rows = [lane.todo.popleft() for _ in range(min(RULES_A_CHUNK, len(lane.todo)))]
                replies = await asyncio.to_thread(_rule_replies, lane.model, rows, self.asking.clock.now())
                if await self.asking.ledger.put(*replies):
                    failed = {reply.key: reply.error for reply in replies if reply.error}
                    self.asking.outcome.failed |= failed
                    lane.tally.answered += len(rows) - len(failed)
                    lane.tally.failed.update(["rule_error"] * len(failed))
                    self.asking.show(done=len(rows) - len(failed), failed=len(failed))

    async def _local(self, lanes: Iterable[Lane], post: Post) -> None:
        for lane in lanes:
            lane.ceiling = 1
            lane.todo = deque(sorted(lane.todo, key=_prompt_text))  # equal beginnings one after the other
            await self._drive(lane, post, Server(local.address()))

    async def _drive(self, lane: Lane, post: Post, server: Server) -> None:
        async with asyncio.TaskGroup() as group:

            def widen() -> None:
                for _ in range(min(int(lane.width) - lane.running, len(lane.todo))):
                    lane.running += 1
                    group.create_task(work())

            async def work() -> None:
                while lane.todo and lane.running <= max(1, int(lane.width)) and not self.asking.is_over(lane):
                    await self.asking.answer(lane, post, server, lane.todo.popleft())
                    widen()
                lane.running -= 1

            widen()


def _prompt_text(row: Row) -> str:
    return "\0".join(str(message.get("content")) for message in row.request.messages)


def _rule_replies(model: Model, rows: Iterable[Row], now: float) -> list[Reply]:
    from helpers.judges import rules

    version, replies = model.identity, []
    for row in rows:
        reply = Reply(row.key, ANSWERED, model.name, version, 0.0, started=now, served_model=version)
        try:
            text = rules.reply(model.name, row.request.messages)
            replies.append(reply._replace(text=text, finish_reason="stop"))
        except Exception as error:  # about one text; the others are judged all the same
            replies.append(
                reply._replace(state=FAILED, error=f"rule_error: {one_line(f'{type(error).__name__}: {error}')}")
            )
    return replies


def equal_repeats(requests: Sequence[Request], models: Mapping[str, Model], store: Store) -> dict[str, int]:
    """Count, for each model whose repeats are always word for word the same, the requests that say so.

    The first hundred are looked at. Built-in judges repeat themselves by nature and are left out.
    """
    groups: dict[tuple[str, int, int], list[Request]] = defaultdict(list)
    for request in requests if any(map(REPEAT, requests)) else ():
        groups[request.model, id(request.messages), id(request.sampling)].append(request)
    counts = {}
    for name in dict.fromkeys(model for model, _, _ in groups if models[model].kind != "rules"):
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
