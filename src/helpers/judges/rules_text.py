"""How the rule judges of recipes read a text: sections, steps, equipment; and what an opinion is.

Everything is read line by line and kept, since most versions of a recipe share most of their lines. What a
judge knows stands in tables: `judge_elements`, `judge_steps`, `judge_units`, `judge_equipment`.
"""

from __future__ import annotations

import csv
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "CACHE",
    "NUMBER",
    "WORD",
    "Fault",
    "Item",
    "Opinion",
    "Recipe",
    "Step",
    "is_solid_state",
    "items",
    "pattern",
    "quote",
    "recipe",
    "rows",
    "steps",
]  # fmt: skip

KELVIN = 273.15
CACHE = 1 << 15


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of one of the judges' tables, such as "judge_units"."""
    path = Path(__file__).parents[1] / "data" / f"{name}.csv"
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


class Fault(NamedTuple):
    """Something that is wrong, and its price in points of the score."""

    price: float
    text: str


class Opinion(NamedTuple):
    """What a judge thinks: points by aspect before rounding (3 where it has no view), what it found, what it did."""

    points: dict[str, float]
    faults: tuple[Fault, ...]
    remarks: tuple[str, ...]


class Recipe(NamedTuple):
    """The lines of a recipe by section, without their list signs; `headed` says whether it has headings."""

    materials: tuple[str, ...]
    equipment: tuple[str, ...]
    procedure: tuple[str, ...]
    characterization: tuple[str, ...]
    headed: bool


class Step(NamedTuple):
    """What is done once: an operation, and the conditions up to the next one."""

    operation: str
    word: str
    text: str
    celsius: tuple[float, ...]
    hours: tuple[float, ...]
    rpm: tuple[float, ...]


class Item(NamedTuple):
    """A piece of equipment: what it can do and the temperature in °C that it stands."""

    label: str
    abilities: frozenset[str]
    highest: float


def pattern(words: str) -> str:
    """Write the words of a table as a regular expression; < and > stand for the borders of a word."""
    return words.replace("<", r"\b").replace(">", r"\b")


_SECTIONS = {
    "materials": re.compile(r"material|precursor|reagent|chemical|ingredient", re.I),
    "equipment": re.compile(r"equipment|apparatus|instrument|tool", re.I),
    "characterization": re.compile(r"characteri|analys|measurement", re.I),
    "procedure": re.compile(r"procedure|synthesis|method|step|preparation|protocol", re.I),
}
_HEADING = re.compile(r"\s*+(?:#{1,6}\s++|\*\*(?=[A-Z]))(.{1,80}?)(?:\*\*)?:?\s*+$")
_BULLET = re.compile(r"^\s*+(?:[-*•]|\d{1,2}[.)])\s++")
WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_AGENT = re.compile(r"(?<!filt)(?<!sint)(?<!transf)(?<!low)(?<!recov)(?:er|or)s?$", re.I)  # a mixer is not an operation
_STEP = re.compile("|".join(f"(?P<{row['operation']}>{pattern(row['words'])})" for row in rows("judge_steps")), re.I)
_ITEM_ROWS = [
    (re.compile(rf"(?:{row['words']})(?:s|es)?"), frozenset(row["abilities"].split()), float(row["max_c"]))
    for row in rows("judge_equipment")
]
_ITEM = re.compile(rf"\b(?:{'|'.join(row['words'] for row in rows('judge_equipment'))})(?:s|es)?\b")

_VALUE = r"(-?\d++(?:,\d{3})*+(?:\.\d++)?)"
NUMBER = rf"(?<![\w.*+])(?<!\d,){_VALUE}"
_RANGE = rf"{NUMBER}(?:\s*(?:-|–|to|and)\s*{_VALUE})?\s*"
_CELSIUS = re.compile(_RANGE + r"(°\s?C|º\s?C|℃|K)\b(?!\s*(?:/|per|min|·\s*min|h\b))")
_HOURS = re.compile(_RANGE + r"(h|hours?|hrs?|min|minutes?|s|sec|seconds?|d|days?|weeks?)\b(?!\s*[-⁻])")
_RPM = re.compile(_RANGE + r"(rpm|r/min|rev/min)")
_IN_HOURS = {"h": 1.0, "m": 1 / 60, "s": 1 / 3600, "d": 24.0, "w": 168.0}
_SOLID_STATE = re.compile(r"solid[- ]state|ceramic (?:route|method)|mechanochemical", re.I)
_LIQUID = re.compile(
    r"hydrothermal|solvothermal|sol[- ]gel|precipitat|solution|combustion|electro|deposit|injection", re.I
)


@lru_cache(maxsize=256)
def recipe(text: str) -> Recipe:
    """Split a recipe into its sections; without headings every line may be anything.

    >>> recipe("## Materials\\n- ZnO, 2 g\\n\\n## Procedure\\n1. Grind it.").procedure
    ('Grind it.',)
    """
    found: dict[str, list[str]] = {name: [] for name in _SECTIONS}
    current, headed = "", False
    for line in text.splitlines():
        section, bare = _line(line)
        if section is not None:
            current, headed = section, headed or bool(section)
        elif bare:
            for name in [current] if current else [] if headed else found:
                found[name].append(bare)
    return Recipe(headed=headed, **{name: tuple(lines) for name, lines in found.items()})


@lru_cache(maxsize=CACHE)
def _line(line: str) -> tuple[str | None, str]:
    """Return the section that a heading opens ("" if none of ours) and nothing, or None and the bare line."""
    if heading := _HEADING.match(line):
        return next((name for name, words in _SECTIONS.items() if words.search(heading[1])), ""), ""
    return None, _BULLET.sub("", line, count=1).strip()


@lru_cache(maxsize=CACHE)
def steps(line: str) -> tuple[Step, ...]:
    """Cut a line of the procedure at its verbs.

    >>> [(step.operation, step.celsius, step.hours) for step in steps("Dry at 80 °C, then calcine for 4 h.")]
    [('dry', (80.0,), ()), ('calcine', (), (4.0,))]
    """
    marks = [mark for mark in WORD.finditer(line) if _operation(mark[0])]
    ends = [*(mark.start() for mark in marks), len(line)][1:]
    return tuple(_step(mark[0], line[mark.start() : end]) for mark, end in zip(marks, ends, strict=True))


@lru_cache(maxsize=CACHE)
def _operation(word: str) -> str:
    found = None if _AGENT.search(word) else _STEP.search(word)
    return str(found.lastgroup) if found else ""


def _step(word: str, text: str) -> Step:
    celsius = [value - (KELVIN if unit == "K" else 0.0) for value, unit in _values(_CELSIUS, text)]
    hours = [value * _IN_HOURS[unit[0]] for value, unit in _values(_HOURS, text)]
    rpm = [value for value, _ in _values(_RPM, text)]
    return Step(_operation(word), word.lower(), text, tuple(celsius), tuple(hours), tuple(rpm))


def _values(pattern: re.Pattern[str], text: str) -> list[tuple[float, str]]:
    found = pattern.findall(text)
    return [(float(number.replace(",", "")), unit) for low, high, unit in found for number in (low, high) if number]


@lru_cache(maxsize=CACHE)
def items(text: str) -> tuple[Item, ...]:
    """Return the equipment that a text mentions.

    >>> [(item.label, item.highest) for item in items("a beaker in a muffle furnace")]
    [('beaker', 450.0), ('muffle', 2400.0), ('furnace', 2400.0)]
    """
    return tuple(map(_item, _ITEM.findall(text.lower())))


@lru_cache(maxsize=1024)
def _item(label: str) -> Item:
    return next(Item(label, abilities, highest) for words, abilities, highest in _ITEM_ROWS if words.fullmatch(label))


@lru_cache(maxsize=256)
def is_solid_state(request: str, text: str) -> bool:
    """Say whether powders react as such: the request says so, or powders are fired and nothing is wet."""
    if _SOLID_STATE.search(request) or _LIQUID.search(request):
        return _SOLID_STATE.search(request) is not None
    kinds = {step.operation for line in recipe(text).procedure for step in steps(line)}
    return bool(kinds & {"sinter", "calcine"}) and not kinds & {"dissolve", "precipitate", "hydrothermal", "reflux"}


def quote(text: str) -> str:
    """Return a few words of a judged text that a reply can hold without becoming ambiguous."""
    return re.sub(r"[{}<>\[\]`｛｝◁\n]", "", text)[:48].strip()
