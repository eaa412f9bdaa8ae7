"""The judge of the process: can each step be done like that, and do the steps follow one another?

It compares temperatures, times, speeds and amounts with what is usual for the operation, and reads the order
and the sense of the steps. A wrong value within the usual range escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from helpers.judges.rules_materials import elements
from helpers.judges.rules_text import NUMBER, Fault, Opinion, Step, is_solid_state, quote, recipe, rows, steps

__all__ = ["judge"]

_USUAL = {
    row["operation"]: {
        kind: (float(row[f"low_{kind}"]), float(row[f"high_{kind}"]))
        for kind in ("c", "h", "rpm")
        if row[f"low_{kind}"]
    }
    for row in rows("judge_steps")
}
_UNIT = r"\s*(?:{})\b(?![\w/·^⁻²³-])"
_UNITS = [
    (row["noun"], re.compile(NUMBER + _UNIT.format(row["words"])), float(row["low"]), float(row["high"]))
    for row in rows("judge_units")
]
_HOT = {"heat", "calcine", "sinter", "anneal", "melt", "hydrothermal", "reflux", "deposit"}
_MIXING = {"mix", "stir", "dissolve", "grind", "mill", "sonicate", "dilute", "coat", "deposit"}
_LIQUID = {"dissolve", "precipitate", "hydrothermal", "reflux", "wash", "age", "centrifuge", "filter", "stir", "mix"}
_FUGITIVE = frozenset(
    [
        "Li", "Na", "K", "Rb", "Cs", "Bi", "Pb", "Tl", "Cd", "Hg", "V", "Mo", "B", "P", "Te", "Se", "S", "Ag", "Cu",
        "Zn", "As", "Sb",
    ]
)  # fmt: skip
_SHAPED = re.compile(r"\binto (?:a |an |the )?(?:\w+ )?(?:pellet|disc|disk|tablet|bar)s?\b")
_SHAPING = {"press", "coat", "transfer", "melt", "separate"}
_MEANS = re.compile(
    r"\bby\b|magnet|centrifug|filt|funnel|decant|supernatant|solid|product|precipitate|phase|layer|crystal|ball|liquid|film"
)
_MORE, _LESS = re.compile(r"\b(?:rais|increas|heat|warm)\w* "), re.compile(r"\b(?:lower|decreas|cool|chill)\w* ")
_TWO_TEMPERATURES = re.compile(r"from (-?\d++(?:\.\d++)?) ?(?:°C)? to (-?\d++(?:\.\d++)?) ?°C")
_PRESSURE = re.compile(r"hydrothermal|solvothermal", re.I)


def judge(request: str, text: str) -> Opinion:
    """Judge a recipe by the conditions, the order and the sense of its steps."""
    read = recipe(text)
    done = [step for line in read.procedure for step in steps(line)]
    faults = [fault for line in read.procedure for fault in _line_faults(line)]
    faults += [*_order(done, request), *_ending(read.procedure)]
    if is_solid_state(request, text):
        faults += [*_firing(done, request), *_unmixed(done, len(read.materials))]
    price = sum(fault.price for fault in faults)
    stated = sum(bool(step.celsius or step.hours or step.rpm) for step in done)
    points = {
        "procedure_completeness": 2.5 + 0.5 * (len(done) > 3) + 0.5 * (stated > 1) + 0.5 * (stated > 3) - price / 2,
        "procedure_feasibility": 4.5 - price,
        "overall": 4.0 - price - 0.5 * (stated < 2) - 0.5 * (len(done) < 3),
    }
    hottest = max((value for step in done for value in step.celsius), default=None)
    remarks = (
        f"I read {len(done)} operations, {stated} of them with a temperature, a time or a speed.",
        f"The highest temperature is {hottest:g} °C." if hottest is not None else "No temperature is given at all.",
        "Whether the substances are the right ones is not for me to say.",
    )
    return Opinion(points, tuple(faults), remarks)


@lru_cache(maxsize=1 << 15)
def _line_faults(line: str) -> tuple[Fault, ...]:
    """Find what is wrong with one line, whatever stands around it."""
    found = [fault for step in steps(line) for fault in (*_conditions(step), *_sense(step))]
    if not steps(line) and line[:1].isupper():
        found.append(Fault(0.5, f"I do not know what is done in the step {quote(line)!r}."))
    for noun, unit, low, high in _UNITS:
        for number in unit.findall(line):
            found += _outside(abs(float(number.replace(",", ""))), low, high, f"as a {noun}")
    for first, second in _TWO_TEMPERATURES.findall(line):
        rising = float(second) > float(first)
        if (_MORE if not rising else _LESS).search(line.lower()):
            found.append(Fault(0.5, "A temperature goes the other way than the step says."))
    return tuple(found)


def _conditions(step: Step) -> Iterator[Fault]:
    usual = _USUAL[step.operation]
    for kind, noun, values in (("c", "°C", step.celsius), ("h", "h", step.hours), ("rpm", "rpm", step.rpm)):
        for value in values if kind in usual else ():
            yield from _outside(value, *usual[kind], f"{noun} for '{step.word}'")


def _outside(value: float, low: float, high: float, what: str) -> list[Fault]:
    """Price a value by how far it lies outside the usual range: half a point, or one beyond a factor of two."""
    if low <= value <= high:
        return []
    far = value > 2 * high or (value < low / 2 and low > 0)
    kind = "high" if value > high else "low"
    return [Fault(1.0 if far else 0.5, f"{value:g} {what} is too {kind}.")]


def _sense(step: Step) -> Iterator[Fault]:
    """Find operations that contradict their own conditions, and those that undo a synthesis."""
    text = step.text.lower()
    hot = max(step.celsius, default=0.0)
    if step.operation == "cool" and hot >= 150 and re.search(r"\bat -?\d", text) and step.hours:
        yield Fault(1.5, f"{step.word.capitalize()} and {hot:g} °C exclude each other.")
    if step.operation == "wet":
        dry = hot >= 40 or step.hours or "oven" in text or "vacuum" in text
        yield Fault(1.5 if dry else 0.5, f"To {step.word} the material at this point undoes the preparation.")
    if step.operation == "spoil":
        yield Fault(1.0, f"{step.word.capitalize()} is what a preparation has to avoid.")
    if step.operation == "separate" and step.word.startswith("separat") and not _MEANS.search(text):
        yield Fault(1.0, "Something is to be separated, but not what from what, nor how.")
    if _SHAPED.search(text) and step.operation not in _SHAPING:
        yield Fault(1.0, f"One does not {step.word} a powder into pellets.")
    if step.operation == "heat" and re.search(r"to (?:room|ambient) temperature", text) and hot < 50:
        yield Fault(1.0, "Heating does not lead to room temperature.")


def _order(done: Sequence[Step], request: str) -> Iterator[Fault]:
    kinds = [step.operation for step in done]
    heated = [n for n, kind in enumerate(kinds) if kind in _HOT]
    if "precipitate" in kinds and not _LIQUID & set(kinds[: kinds.index("precipitate")]):
        yield Fault(1.0, "Something is to precipitate before there is a solution.")
    if "open" in kinds and heated and kinds.index("open") < heated[0]:
        yield Fault(1.0, "The vessel is opened before it is heated.")
    if _PRESSURE.search(request) and not any(60 <= value <= 350 for step in done for value in step.celsius):
        yield Fault(1.0, "No step has a temperature at which a closed vessel is kept.")


def _ending(lines: Sequence[str]) -> Iterator[Fault]:
    last = steps(lines[-1]) if lines else ()
    if last and last[-1].operation == "heat" and not any(step.celsius for step in last):
        yield Fault(1.0, "The procedure ends by heating to a temperature that it does not give.")


def _unmixed(done: Sequence[Step], n_materials: int) -> Iterator[Fault]:
    hot = [(max(step.celsius, default=0.0), n) for n, step in enumerate(done) if step.operation in _HOT]
    before = {step.operation for step in done[: max(hot)[1]]} if hot else _MIXING
    if n_materials > 1 and not _MIXING & before:
        yield Fault(1.0, "The powders are fired without having been mixed.")


def _firing(done: Sequence[Step], request: str) -> Iterator[Fault]:
    """Compare the hottest step with what powders need to react, and what the compound stands."""
    peak = max((value for step in done if step.operation in _HOT for value in step.celsius), default=None)
    low, high = (450, 1350) if elements(request) & _FUGITIVE else (800, 1750)
    if peak is None:
        yield Fault(0.5, "Powders are to react, but no firing temperature is given.")
    elif peak < low:
        yield Fault(1.5 if peak < low / 1.5 else 1.0, f"{peak:g} °C is too cold for these powders to react.")
    elif peak > high:
        yield Fault(1.0 if peak > 1.2 * high else 0.5, f"{peak:g} °C is more than this compound stands.")
