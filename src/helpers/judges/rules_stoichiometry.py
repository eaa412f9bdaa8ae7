"""The judge of stoichiometry: do the materials hold the target's elements, no others, and in fitting amounts?

Harsh, and blind to everything that is not an element or an amount. A compound is the same to it as a formula
and as a name, as far as it can read the name. Targets with variables are checked for their elements only.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from helpers.judges.rules_materials import Material, elements, in_formulas, materials, tokens
from helpers.judges.rules_text import Fault, Opinion, Recipe, is_solid_state, quote, recipe, rows
from helpers.perturbations.composition import symbols

__all__ = ["judge"]

_MASS = {row["symbol"]: float(row["mass"]) for row in rows("judge_elements")} | {"H": 1.008, "C": 12.011, "O": 15.999}
_HEAVY = 100.0  # for the few elements, such as krypton, that nobody weighs out
_IGNORED = frozenset(["H", "C", "N", "O"])  # come and go with water, air and organic matter
_BURNT_OFF = frozenset(["H", "C", "N", "O", "Cl", "Ar", "He"])
_WASHED_OFF = frozenset(["H", "C", "N", "O", "F", "Cl", "Br", "I", "S", "Na", "K", "Li", "Ar", "He"])
_COUNTED = frozenset(_MASS) - _WASHED_OFF - frozenset(["P", "B"])
_RADIOACTIVE = frozenset(["Tc", "Pm", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Pa"])
_REST = re.compile(r"\b(?:from|by|using|via|with|on|onto|for|as|through|after|in)\b")
_ROLE = re.compile(
    r"flux|catalys|substrate|glass|foil|wafer|foam|seed|template|surfactant|reduc|electrode|etch|minerali|wash|adjust"
    r"|ligand|drying|\bball|purge|carrier|atmosphere|support|steel|buffer|optional|crucible|transport", re.I,
)  # fmt: skip
_RARE_GAS = re.compile(r"\b(?:krypton|xenon|neon|radon|Kr|Xe|Ne|Rn)\b")


class _Target(NamedTuple):
    """What is to be made: the elements it must get from its materials, and its formula unit if that can be read."""

    label: str
    essential: frozenset[str]
    counts: Mapping[str, float]


@lru_cache(maxsize=4096)
def _target(request: str) -> _Target:
    found = [token for token in tokens(request) if len(symbols(token.text)) > 1]
    rest = _REST.search(request, found[0].end if found else 12)
    head = request[: rest.start()] if rest else request
    within = [token for token in found if token.start < len(head)]
    wanted = frozenset[str]().union(*(symbols(token.text) for token in within)) if within else elements(head)
    composition = within[0].composition if len(within) == 1 else None
    label = quote(within[0].text if within else head.removeprefix("Synthesis of "))
    return _Target(label, wanted - _IGNORED, composition.elements if composition else {})


def judge(request: str, text: str) -> Opinion:
    """Judge a recipe by the elements and amounts of its materials."""
    target, read = _target(request), recipe(text)
    entries = [entry for line in read.materials for entry in materials(line)]
    solid = is_solid_state(request, text)
    faults = (
        *_missing(target, entries), *_foreign(target, entries, request, solid), *_unequal(entries),
        *_disproportion(target, entries), *_strange(read, entries, request),
    )  # fmt: skip
    price = sum(fault.price for fault in faults)
    weighed = [entry for entry in entries if entry.moles or entry.grams]
    points = {
        "materials_appropriateness": 4.5 - price,
        "procedure_completeness": 3.0 if weighed else 2.5,
        "overall": (3.5 if target.essential and weighed else 3.0) - price,
    }
    wanted = ", ".join(sorted(target.essential))
    remarks = (
        f"{target.label} needs {wanted} from its materials." if wanted else "I cannot read the target's elements.",
        f"Of {len(entries)} materials, {len(weighed)} come with an amount that can be weighed or counted.",
        "Temperatures, equipment and the order of the steps I leave to others.",
    )
    return Opinion(points, faults, remarks)


def _missing(target: _Target, entries: list[Material]) -> Iterator[Fault]:
    there = frozenset[str]().union(*(entry.elements for entry in entries))
    for symbol in sorted(target.essential - there):
        yield Fault(1.5, f"No material supplies {symbol}, which {target.label} needs.")
    for symbol in sorted((there & _RADIOACTIVE) - target.essential):
        yield Fault(1.5, f"{symbol} has no stable isotope and no place here.")


def _foreign(target: _Target, entries: list[Material], request: str, solid: bool) -> Iterator[Fault]:
    welcome = target.essential | elements(request) | (_BURNT_OFF if solid else _WASHED_OFF)
    for entry in entries:
        foreign = entry.elements - welcome
        if target.essential and foreign and not _ROLE.search(entry.text):
            yield Fault(1.0, f"{entry.label} brings in {', '.join(sorted(foreign))}, foreign to {target.label}.")
        if entry.counts and entry.named & _COUNTED - entry.counts.keys():
            yield Fault(1.0, f"Name and formula of {entry.label} are not those of one substance.")


def _unequal(entries: list[Material]) -> Iterator[Fault]:
    for entry in entries:
        if entry.moles and entry.grams and entry.counts:
            ratio = entry.grams / (entry.moles * _molar_mass(entry.counts))
            if not 0.75 < ratio < 1.4:  # a solution or an impure substance weighs somewhat more
                yield Fault(1.0, f"Mass and moles of {entry.label} differ by a factor of {_factor(ratio)}.")


def _disproportion(target: _Target, entries: list[Material]) -> Iterator[Fault]:
    supply = _supply(target, entries)
    per_product = any(entry.per_product for entry in entries)
    middle = 1.0 if per_product else statistics.median(supply.values()) if len(supply) > 1 else 0.0
    for symbol, share in supply.items():
        factor = _factor(share / middle) if middle else 1.0
        if factor >= 1.5:
            kind = "too little" if share < middle else "too much"
            price = 1.5 if factor > 2.5 else 1.0
            yield Fault(price, f"There is {kind} {symbol} for {target.label}, by a factor of {factor}.")


def _supply(target: _Target, entries: list[Material]) -> dict[str, float]:
    """Return moles over count in the target for each essential metal whose every source has an amount."""
    supply = {}
    for symbol in sorted(target.essential & _COUNTED & target.counts.keys()):
        sources = [entry for entry in entries if symbol in entry.elements and not _ROLE.search(entry.text)]
        amounts = [_atoms(entry, symbol) for entry in sources]
        if amounts and None not in amounts:
            supply[symbol] = sum(amount for amount in amounts if amount) / target.counts[symbol]
    return supply


def _atoms(entry: Material, symbol: str) -> float | None:
    if symbol not in entry.counts or not (entry.moles or entry.grams):
        return None
    moles = entry.moles or (entry.grams or 0.0) / _molar_mass(entry.counts)
    return moles * entry.counts[symbol]


def _molar_mass(counts: Mapping[str, float]) -> float:
    return sum(_MASS.get(symbol, _HEAVY) * count for symbol, count in counts.items())


def _factor(ratio: float) -> float:
    return round(max(ratio, 1 / ratio), 1)


def _strange(read: Recipe, entries: list[Material], request: str) -> Iterator[Fault]:
    """Find formulas in the procedure that no material explains, and a gas that nobody uses."""
    listed = elements(request).union(*(entry.elements for entry in entries), *map(in_formulas, read.equipment))
    used = frozenset[str]().union(*(in_formulas(line) for line in read.procedure))
    for symbol in sorted((used & _COUNTED) - listed)[:3]:
        yield Fault(0.5, f"The procedure works with {symbol}, which is not among the materials.")
    if any(_RARE_GAS.search(line) for line in (*read.procedure, *read.materials)):
        yield Fault(0.5, "The gas is one that no laboratory spends on this.")
