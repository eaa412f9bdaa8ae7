"""Seventeen ways to perturb a recipe: nine inject an error, eight keep the meaning.

Each kind of edit has a module (`formulas`, `quantities`, `equipment`, `actions`, `names`) whose `propose`
returns every edit of its kind, drawn from (seed, sample_id) and from nothing else. A condition takes all of
one kind, or, graded, a prefix of one seeded order of several kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from helpers import keyed

from . import actions, equipment, formulas, names, quantities
from .edits import Edit, Perturbation, apply, revert
from .learning import relearned
from .rates import tokens, vanished

__all__ = ["CONDITIONS", "KINDS", "Condition", "Edit", "Perturbation", "canonical", "edit", "perturb", "revert"]


class Condition(NamedTuple):
    """A way to perturb: the method's name for it, "error" or "represent", and the share of the text."""

    type: str
    category: str
    rate: float


_RATES = (1, 2, 5, 10, 15)
_ERRORS = ("element_substitution", "numerical_perturbation", "equipment_substitution", "action_antonym")
_NAMINGS = ("to_formula", "to_name", "to_iupac")
KINDS = _ERRORS + _NAMINGS
CONDITIONS: dict[str, Condition] = {
    **{f"all_error_perturbation_{n}pct": Condition("all_error", "error", n / 100) for n in _RATES},
    **{f"{kind}_100pct": Condition(kind, "error", 1.0) for kind in _ERRORS},
    **{
        f"llm_representational_perturbation_{n}pct": Condition("llm_representational", "represent", n / 100)
        for n in _RATES
    },
    **{f"llm_{kind}_100pct": Condition(f"llm_{kind}", "represent", 1.0) for kind in _NAMINGS},
}
_ALIASES = {
    **{f"all_error_injection_{n}pct": f"all_error_perturbation_{n}pct" for n in _RATES},
    **{f"all_equivalence_rewriting_{n}pct": f"llm_representational_perturbation_{n}pct" for n in _RATES},
}


def canonical(name: str) -> str:
    """Return our name of a condition; the published aliases are understood.

    >>> canonical("all_error_injection_5pct")
    'all_error_perturbation_5pct'
    """
    name = _ALIASES.get(name, name)
    if name not in CONDITIONS and name != "original":
        raise ValueError(f"{name!r} is no condition; use one of original, {', '.join(CONDITIONS)}")
    return name


def perturb(text: str, condition: str, *, seed: int, sample_id: str, target: str = "") -> Perturbation:
    """Return a recipe under a condition; `original` returns it as it is.

    `target` is the material to make, whose elements are no error. Nothing to edit gives the text itself with
    `applicable` False and no changes.

    >>> perturb("Stir for 2 h.", "action_antonym_100pct", seed=42, sample_id="a").text
    'Settle for 2 h.'
    """
    name = canonical(condition)
    if name == "original":
        return Perturbation(text, (), 0.0, 0.0, 0, True)
    _, category, rate = CONDITIONS[name]
    if rate == 1.0:
        kind = name.removeprefix("llm_").removesuffix("_100pct")
        return edit(text, kind, seed=seed, sample_id=sample_id, target=target)
    steps, gone = _ladder(text, category, seed, str(sample_id), target)
    budget = _budget(tokens(text), rate)
    enough = next((n for n, count in enumerate(gone, 1) if count >= budget), len(steps))
    return _result(text, [change for step in steps[:enough] for change in step], rate, budget)


def edit(text: str, kind: str, *, seed: int, sample_id: str, target: str = "") -> Perturbation:
    """Return a text with every edit of one kind made; its budget is all of its distinct tokens.

    >>> edit("Boil water.", "numerical_perturbation", seed=42, sample_id="a").applicable
    False
    """
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of edit; use one of {', '.join(KINDS)}")
    return _result(text, _proposals(text, kind, seed, str(sample_id), target), 1.0, len(tokens(text)))


def _result(text: str, changes: Iterable[Edit], rate: float, budget: int) -> Perturbation:
    made = tuple(sorted(changes, key=lambda change: change.start))
    after = apply(text, made)
    before = tokens(text)
    share = len(before - tokens(after)) / len(before) if made else 0.0
    return Perturbation(after, made, rate, share, budget, bool(made))


@relearned
@lru_cache(maxsize=64)
def _proposals(text: str, kind: str, seed: int, sample_id: str, target: str) -> tuple[Edit, ...]:
    if kind in _NAMINGS:
        to = kind.removeprefix("to_")
        return tuple(names.propose(text, to=to, seed=seed, sample_id=sample_id, target=target))
    module = dict(zip(_ERRORS, (formulas, quantities, equipment, actions), strict=True))[kind]
    return tuple(module.propose(text, seed=seed, sample_id=sample_id, target=target))


_Step = tuple[Edit, ...]


@relearned
@lru_cache(maxsize=16)
def _ladder(
    text: str, category: str, seed: int, sample_id: str, target: str
) -> tuple[tuple[_Step, ...], tuple[int, ...]]:
    """Return the steps of the graded conditions in order, and how many tokens are gone after each.

    Every rate takes a prefix, so a higher rate contains the lower one. A step is all edits of one entity; none
    is needed after the highest rate's budget is met.
    """
    key = (seed, sample_id, category)
    pooled = {kind: _steps(_proposals(text, kind, seed, sample_id, target)) for kind in _kinds(category)}
    if category == "represent":
        pooled = _one_naming(pooled, key)
    steps = _apart(_round_robin(pooled, key), len(text))
    most = _budget(tokens(text), max(_RATES) / 100)
    gone: list[int] = []
    for count in vanished(text, steps):
        gone.append(count)
        if count >= most:
            break
    return tuple(steps[: len(gone)]), tuple(gone)


def _apart(steps: Iterable[_Step], length: int) -> list[_Step]:
    """Keep the steps, in order, that overlap none before them."""
    taken = bytearray(length)
    kept = []
    for step in steps:
        if not any(any(taken[change.start : change.end]) for change in step):
            kept.append(step)
            for change in step:
                taken[change.start : change.end] = b"\1" * (change.end - change.start)
    return kept


def _budget(words: frozenset[str], rate: float) -> int:
    return max(1, round(len(words) * rate))


def _kinds(category: str) -> tuple[str, ...]:
    return _ERRORS if category == "error" else _NAMINGS


def _steps(edits: Iterable[Edit]) -> list[_Step]:
    groups: dict[str, list[Edit]] = {}
    for change in edits:
        groups.setdefault(change.entity or f"at {change.start}", []).append(change)
    return [tuple(group) for group in groups.values()]


def _one_naming(pooled: dict[str, list[_Step]], key: tuple[int, str, str]) -> dict[str, list[_Step]]:
    """Keep one conversion of every entity: to a formula, a name or an IUPAC name."""
    offers: dict[str, list[tuple[str, _Step]]] = {}
    for kind, steps in pooled.items():
        for step in steps:
            offers.setdefault(step[0].entity or f"at {step[0].start}", []).append((kind, step))
    chosen: dict[str, list[_Step]] = {kind: [] for kind in pooled}
    for entity, choices in offers.items():
        kind, step = choices[keyed.word(*key, "naming", entity) % len(choices)]
        chosen[kind].append(step)
    return chosen


def _round_robin(pooled: dict[str, list[_Step]], key: tuple[int, str, str]) -> list[_Step]:
    """Return the steps in one seeded order that takes the kinds in turn."""
    kinds = sorted(pooled, key=lambda kind: keyed.word(*key, "kind", kind))
    ranked = []
    for turn, kind in enumerate(kinds):
        steps = sorted(pooled[kind], key=lambda step: keyed.word(*key, kind, step[0].start))
        ranked += [(n, turn, step) for n, step in enumerate(steps)]
    return [step for _, _, step in sorted(ranked, key=lambda item: item[:2])]
