"""The judge of equipment: is there something for each step, and can it do the step?

Lenient, and with a narrow view: it knows what pieces of equipment are able to do and how hot they may get, not
whether a step makes sense. A tool that it does not know passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from helpers.judges.rules_text import Fault, Item, Opinion, Step, items, recipe, rows, steps

__all__ = ["judge"]

_NEEDS = {row["operation"]: row["needs"] for row in rows("judge_steps")}
_PRICES = {"heat": 2.0, "pressure": 1.5, "warm": 0.5, "mill": 0.5, "centrifuge": 0.5, "coat": 0.5}
_SMALL = 0.25  # for a missing thing that any laboratory has at hand
_FURNACE_C = 350.0
_STANDINGS = {"hold", "handle", "shelter", "measure", "weigh", "cool", "add", "seal"}
_FIRE = {"heat", "warm", "hold", "press"}
_ABLE = {
    "grind": {"grind", "mill"}, "mill": {"mill"}, "mix": {"mix", "stir", "grind", "mill", "hold", "add", "sonicate"},
    "stir": {"stir", "mix", "hold", "warm"}, "dissolve": {"hold", "stir", "mix", "sonicate", "warm"},
    "dry": {"dry", "warm", "heat", "hold"}, "press": {"press"}, "filter": {"filter"}, "centrifuge": {"centrifuge"},
    "sonicate": {"sonicate", "hold"}, "seal": {"seal", "pressure", "heat"},
    "heat": _FIRE, "calcine": _FIRE, "sinter": _FIRE, "anneal": _FIRE,
}  # fmt: skip
_USED = re.compile(r"\b(?:in|inside|into|with|using|by|on|through|under|via)\b")
_PRESSURE = re.compile(r"hydrothermal|solvothermal|autoclave", re.I)


def judge(request: str, text: str) -> Opinion:
    """Judge a recipe by what its equipment can do."""
    read = recipe(text)
    done = [step for line in read.procedure for step in steps(line)]
    listed = [item for line in read.equipment for item in items(line)]
    used = [item for step in done for item in _named(step)]
    faults = (
        *_missing(_needs(done, request), listed if read.headed else [], used), *_useless(listed, done),
        *(fault for step in done for fault in _misused(step)),
    )  # fmt: skip
    price = sum(fault.price for fault in faults)
    points = {
        "equipment_appropriateness": 5.0 - price,
        "characterization_appropriateness": 3.5 if read.characterization else 2.0,
        "overall": 5.0 - price - 0.5 * (not listed) - 2.0 * (not done),
    }
    names = ", ".join(dict.fromkeys(item.label for item in listed[:4]))
    remarks = (
        f"The list of equipment names {names}." if names else "I find no list of equipment that I know.",
        f"I went through {len(done)} operations and asked each what it needs.",
        "The chemistry I take as given.",
    )
    return Opinion(points, faults, remarks)


def _needs(done: Sequence[Step], request: str) -> list[str]:
    """Return the abilities that the operations call for, each once, in their order."""
    needs = {_need(step): None for step in done} | ({"pressure": None} if _PRESSURE.search(request) else {})
    return [need for need in needs if need]


def _need(step: Step) -> str:
    need = _NEEDS[step.operation]
    if need == "heat":
        return (
            "heat" if max(step.celsius, default=0.0) > _FURNACE_C or step.operation in ("calcine", "sinter") else "warm"
        )
    return need


def _missing(needs: Sequence[str], listed: Sequence[Item], used: Sequence[Item]) -> Iterator[Fault]:
    able = frozenset[str]().union(*(item.abilities for item in (*listed, *used)))
    small = [
        need for need in needs if need not in able and need not in _PRICES and not (need == "grind" and "mill" in able)
    ]
    for need in needs:
        if need in _PRICES and need not in able:
            yield Fault(_PRICES[need], f"Nothing here can {_SAID.get(need, need)}, which the procedure calls for.")
    if small:
        yield Fault(min(_SMALL * len(small), 0.5), f"Not listed: something to {', '.join(small)}.")


def _named(step: Step) -> tuple[Item, ...]:
    """Return the equipment that a step names; its verb is none, though "press" and "filter" are tools too."""
    return items(step.text[len(step.word) :])


_SAID = {
    "heat": "reach the furnace temperature",
    "pressure": "hold the pressure of a closed vessel",
    "warm": "warm anything",
}


def _useless(listed: Sequence[Item], done: Sequence[Step]) -> Iterator[Fault]:
    """Find listed equipment that no step has any use for."""
    wanted = (
        {_need(step) for step in done} | _STANDINGS | {step.operation for step in done} | {"electro", "coat", "dry"}
    )
    wanted |= {"stir", "mix", "grind", "mill"} if wanted & {"mix", "stir", "grind", "mill", "dissolve"} else set()
    idle = dict.fromkeys(item.label for item in listed if not item.abilities & wanted)
    for label in list(idle)[:2]:
        yield Fault(0.5, f"No step has any use for the {label}.")


@lru_cache(maxsize=1 << 15)
def _misused(step: Step) -> tuple[Fault, ...]:
    """Find equipment that cannot do the step it is named in, or does not stand its temperature."""
    named = _named(step)
    hottest = max(step.celsius, default=0.0)
    exposed = [item for item in named if item.abilities & {"hold", "warm", "cool", "dry"} and step.operation != "cool"]
    weakest = min(exposed, key=lambda item: item.highest, default=None)
    faults = []
    if weakest and hottest > 1.05 * weakest.highest:
        faults.append(Fault(1.5, f"The {weakest.label} does not stand {hottest:g} °C."))
    able = _ABLE.get(step.operation)
    tools = [item for item in named if not item.abilities & {"shelter", "handle"}]
    if able and tools and _USED.search(step.text) and not any(item.abilities & able for item in tools):
        faults.append(Fault(1.0, f"A {tools[0].label} is not made to {step.word}."))
    return tuple(faults)
