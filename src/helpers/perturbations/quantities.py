"""Quantities: where they stand in a text, and each at another value that is possible but wrong there.

A number counts only with a unit of the closed list `data/units.csv`, as a ratio, a pH or the x of a solid
solution, so that hydrate counts, locants, sizes, grades, meshes, 2θ ranges and list numbers are no
quantities. A value, a range or a list that shares one unit is one span and moves as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from helpers import keyed

from . import formulas, names
from .articles import fits
from .edits import Edit
from .numerals import BLANK, NUMBER, VALUE, read, write
from .units import END, FACTORS, SCALABLE, UNIT, UNITS, Unit, unit

__all__ = ["Quantity", "find", "propose"]

KIND = "numerical_perturbation"
_WORDS = {
    Decimal("0.1"): "a tenth of",
    Decimal("0.5"): "half",
    Decimal("1.5"): "one and a half times",
    Decimal(2): "twice",
    Decimal(3): "three times",
    Decimal(5): "five times",
    Decimal(10): "ten times",
    Decimal(100): "a hundred times",
}


class Quantity(NamedTuple):
    """`text[start:end]` is `head`, `numbers` and `tail` ("x = ", "0.1 and 0.2", ""; "", "60–80", " °C").

    The numbers of a `mixture`, with those that are tied to it, add up to 100.
    """

    start: int
    end: int
    head: str
    numbers: str
    tail: str
    unit: Unit
    mixture: bool = False


_Tied = tuple[Quantity, ...]

_DASH = rf"{BLANK}?[-–—−~∼]{BLANK}?"
_TO = rf"(?:{_DASH}|{BLANK}to{BLANK})"
_NUMBERS = (
    rf"{NUMBER}(?:(?:,{BLANK}{NUMBER}){{0,20}},?{BLANK}(?:and|or){BLANK}{NUMBER}"
    rf"|(?:{_TO}|{BLANK}?(?:±|\+/[-−]){BLANK}?|/){NUMBER})?"
)
# Where a number may start: not inside a word, a formula, a locant, a fraction or another number.
_FREE = r"(?<![\w^@#$€£.])(?<!\d[.,:×·*'’–—~∼])(?<![\w)\]][-−])(?<!\d- to )"
_GAP = rf"(?:{BLANK}?|-)"
_QUANTITY = re.compile(
    rf"{_FREE}(?P<numbers>{_NUMBERS})(?P<tail>{_GAP}{UNIT})"
    rf"(?:(?P<to>{_TO}|{BLANK}and{BLANK})(?P<numbers2>{NUMBER})(?P<tail2>{_GAP}{UNIT}))?{END}"
)
_TERM = r"\d{1,9}(?:\.\d{1,9})?"
_RATIO = re.compile(
    rf"(?<![\w:.∶/])(?P<numbers>{_TERM}(?:{BLANK}?[:∶]{BLANK}?{_TERM}){{1,5}}|{_TERM}/{_TERM}"
    rf"(?={BLANK}?\(?(?:v/v|w/w|vol|wt|mol)))(?![\w:∶/]|\.\d)"
)
_SHARES = r"v/v|w/w|\bvol|\bwt|\bmol|ratio|stoichiometr|proportion|\bby (?:volume|weight|mass|moles)|mixture"
_BEFORE = re.compile(rf"{_SHARES}|[\w+⁺)] ?[/:] ?[\w+⁺]+ ?[=(]? ?$")
_AFTER = re.compile(rf"{_SHARES}|^{BLANK}?\(?\w+[/:][A-Za-z]")
_PERCENT = re.compile(rf"{BLANK}?(?:\w+\.?{BLANK}?)?%")
_PARTS = re.compile(
    r"[.;:\n]|\b(?:is|was|are|were|be|been|has|have|had|then|pure|purity|yields?|humidity|at|for|after|before|until|from"
    r"|washed|rinsed|dissolved|diluted|mixed|added|heated|dried|treated)\b"
)
_CLOCK = re.compile(r"\b(?:at|from|until|till) \d?\d:\d\d(?!\d)|:\d+ ?(?:h|hr|hours?|am|pm|a\.m|p\.m)\b")
_ACID = re.compile(
    rf"\bpH(?!{BLANK}(?:meter|electrode|probe|paper))"
    rf"(?:{BLANK}?|[^.;,\d\n]{{0,60}}?(?:\b(?:of|to|at|is|was|between|from|around|about|ca\.?|value)|[=~≈∼≥≤><]){BLANK}?)"
    rf"(?P<numbers>{_NUMBERS})(?!\d|{BLANK}?{UNIT}{END}|\w|[-−]\w)"
)
_PART = rf"(?:0?\.\d+|0|1(?:\.0+)?)(?![\w.]*\d)(?!{BLANK}?{UNIT}{END})"
_CONTENT = re.compile(
    rf"(?<![\w-])(?P<head>[xyz]{BLANK}?={BLANK}?)"
    rf"(?P<numbers>{_PART}(?:(?:,{BLANK}?|,?{BLANK}(?:and|or|to){BLANK}|{_DASH}){_PART})*)(?![\w%/])"
)
_SPUN = re.compile(r"centrifug\w*\s+(?:[^\W\d]+\s+){0,3}at\s+$", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:\b(?:nos?|nr|figs?|figures?|tables?|refs?|eqs?|steps?|samples?|schemes?|sections?|entry|grade|type"
    r"|batch|runs?|card)\.?|#)\s*$|K[αa][₁₂12]?[\s,]*(?:radiation[\s,]*)?\(?(?:λ\s*[=~≈]\s*)?$",
    re.IGNORECASE,
)


def find(text: str) -> tuple[_Tied, ...]:
    """Return the quantities of a text in order; those of one inner tuple must change together.

    >>> [[q.numbers + q.tail for q in tied] for tied in find("5% H2/95% Ar at 500-600 °C for 8,000 s")]
    [['5%', '95%'], ['500-600 °C'], ['8,000 s']]
    """
    return tuple(tied for tied, _ in _choices(text))


def propose(text: str, *, seed: int, sample_id: str, target: str = "") -> list[Edit]:
    """Return an edit for every quantity that can be wrong inside its bounds.

    >>> [e.new for e in propose("x = 0.8", seed=0, sample_id="a")][0] in ("x = 0.4", "x = 0.08")
    True
    """
    edits: list[Edit] = []
    last: dict[str, Decimal] = {}
    for index, (tied, options) in enumerate(_choices(text)):
        kind = tied[0].unit.kind
        # Amounts that all grow by one factor are a larger batch, not an error.
        free = [o for o in options if kind not in SCALABLE or o[0] != last.get(kind)] or options
        factor, news = free[keyed.word(seed, sample_id, KIND, index) % len(free)]
        last[kind] = factor
        entity = f"quantity {index}" if len(tied) > 1 else ""
        why = _why(text, tied, factor, news)
        edits += [
            Edit(q.start, q.end, text[q.start : q.end], new, KIND, entity, why)
            for q, new in zip(tied, news, strict=True)
            if new != text[q.start : q.end]
        ]
    return edits


_Option = tuple[Decimal, tuple[str, ...]]


@lru_cache(maxsize=64)
def _choices(text: str) -> tuple[tuple[_Tied, tuple[_Option, ...]], ...]:
    """Return every group of tied quantities that has a possible wrong value, with all of those."""
    taken = [*formulas.spans(text), *names.spans(text)]
    found: list[tuple[_Tied, tuple[_Option, ...]]] = []
    for tied in _couple(text, sorted(_scan(text), key=lambda tied: tied[0].start)):
        if any(start < q.end and q.start < end for start, end in taken for q in tied):
            continue
        options = tuple(
            (factor, news)
            for factor in FACTORS[tied[0].unit.kind]
            if (news := _changed(tied, factor))
            and all(fits(text, q.start, new) for q, new in zip(tied, news, strict=True))
        )
        if options and (not found or found[-1][0][-1].end <= tied[0].start):
            found.append((tied, options))
    return tuple(found)


def _scan(text: str) -> Iterator[_Tied]:
    for match in _QUANTITY.finditer(text):
        yield from _measured(match)
    for match in _RATIO.finditer(text):
        yield from _proportion(match)
    for name, pattern in (("pH", _ACID), ("x", _CONTENT)):
        for match in pattern.finditer(text):
            start, end = match.span("numbers")
            head = match["head"] if name == "x" else ""
            yield (Quantity(start - len(head), end, head, match["numbers"], "", UNITS[name]),)


def _proportion(match: re.Match[str]) -> Iterator[_Tied]:
    """Yield a ratio; one whose terms add up to 100 is a mixture in percent."""
    numbers = match["numbers"]
    total = _sum(numbers)
    percent = _PERCENT.match(match.string, match.end()) is not None
    if (total == 100 or not percent) and (percent or _is_ratio(match.string, *match.span())):
        yield (Quantity(*match.span(), "", numbers, "", UNITS["%" if total == 100 else "ratio"], total == 100),)


def _is_ratio(text: str, start: int, end: int) -> bool:
    """Tell a ratio from a time of day by the words around it."""
    before = re.split(r"[.;\n]", text[max(0, start - 80) : start])[-1]
    after = re.split(r"[.;\n]", text[end : end + 30])[0]
    return not _CLOCK.search(before + text[start:end] + after) and bool(_BEFORE.search(before) or _AFTER.search(after))


def _measured(match: re.Match[str]) -> Iterator[_Tied]:
    """Yield the quantities of one match: "2 h", or both ends of "25 °C to 800 °C" tied together."""
    if _LABEL.search(match.string, max(0, match.start() - 24), match.start()):
        return
    parts = [_quantity(match, "numbers", "tail")]
    if match["to"]:
        parts.append(_quantity(match, "numbers2", "tail2"))
    known = [part for part in parts if part]
    start = match.start()
    between = (match["to"] or "").strip() != "and" or match.string.endswith("between ", max(0, start - 8), start)
    if len(known) == 2 and between and known[0].unit.kind == known[1].unit.kind:
        yield tuple(known)
    else:
        yield from ((part,) for part in known)


def _quantity(match: re.Match[str], numbers: str, tail: str) -> Quantity | None:
    measure = unit(match[tail].lstrip("-").strip())
    if measure is None or (measure.unless and measure.unless.match(match.string, match.end(tail))):
        return None
    if measure is UNITS["g"] and _SPUN.search(match.string, max(0, match.start() - 60), match.start()):
        measure = UNITS["×g"]
    # "1/2 h" is a fraction, "5/95 %" a mixture.
    if (measure.spaced and not match[tail][0].isspace()) or ("/" in match[numbers] and _sum(match[numbers]) != 100):
        return None
    return Quantity(
        match.start(numbers), match.end(tail), "", match[numbers], match[tail], measure, "/" in match[numbers]
    )


def _couple(text: str, groups: list[_Tied]) -> Iterator[_Tied]:
    """Tie neighbouring percentages of one phrase that add up to exactly 100, as in "5% H2/95% Ar"."""
    waiting: list[Quantity] = []
    for group in groups:
        shares = len(group) == 1 and group[0].unit.kind == "percentage"
        near = waiting and _one_phrase(text[waiting[-1].end : group[0].start], waiting[-1], group[0])
        if waiting and not (shares and near):
            yield from ((quantity,) for quantity in waiting)
            waiting = []
        if not shares:
            yield group
            continue
        waiting.append(group[0])
        for first in range(max(0, len(waiting) - 4), len(waiting) - 1):
            if sum(_sum(quantity.numbers) for quantity in waiting[first:]) == 100:
                yield from ((quantity,) for quantity in waiting[:first])
                yield tuple(quantity._replace(mixture=True) for quantity in waiting[first:])
                waiting = []
                break
    yield from ((quantity,) for quantity in waiting)


def _one_phrase(between: str, one: Quantity, two: Quantity) -> bool:
    """Say whether two shares are of one mixture: "30 % A with 70 % B", but not "99 % pure, in 1 % HCl"."""
    bracketed = between.count("(") == between.count(")")
    return len(between) <= 40 and one.unit == two.unit and bracketed and not _PARTS.search(between)


def _sum(numbers: str) -> Decimal:
    return sum((read(match) for match in VALUE.finditer(numbers)), Decimal(0))


def _changed(tied: _Tied, factor: Decimal) -> tuple[str, ...] | None:
    """Return the new texts of tied quantities; None where the factor leaves the bounds or changes nothing."""
    matches = [(q, match) for q in tied for match in VALUE.finditer(q.numbers)]
    old = [read(match) for _, match in matches]
    new = _targets(tied, old, factor)
    moved = max(abs(a - b) for a, b in zip(old, new, strict=True))
    if (
        moved == 0
        or moved < tied[0].unit.least
        or _falls(tied, old)
        or not all(map(_possible, (q.unit for q, _ in matches), old, new))
    ):
        return None
    shift = factor.adjusted() if factor == Decimal(1).scaleb(factor.adjusted()) else 0
    written = [write(match, value, shift=shift) for (_, match), value in zip(matches, new, strict=True)]
    if None in written:
        return None
    queue = iter(written)
    return tuple(q.head + VALUE.sub(lambda _: next(queue) or "", q.numbers) + q.tail for q in tied)


def _possible(unit: Unit, old: Decimal, new: Decimal) -> bool:
    return unit.low <= old <= unit.high and unit.low <= new <= unit.high and (old == 0) == (new == 0)


def _falls(tied: _Tied, values: list[Decimal]) -> bool:
    """Tell a range whose ends fall, as "10-3 mbar" seems to: it is a power of ten that lost its style."""
    return len(tied) == 1 and values != sorted(values) and re.search(rf"\d{_DASH}", tied[0].numbers) is not None


def _targets(tied: _Tied, old: list[Decimal], factor: Decimal) -> list[Decimal]:
    kind = tied[0].unit.kind
    if kind == "ratio":
        return [*old[:-1], old[-1] * factor]
    if tied[0].mixture:
        small, large = old.index(min(old)), len(old) - 1 - old[::-1].index(max(old))
        moved = old[small] * (1 - factor)
        return [v - moved if i == small else v + moved if i == large else v for i, v in enumerate(old)]
    return [value * factor for value in old]


def _why(text: str, tied: _Tied, factor: Decimal, news: tuple[str, ...]) -> str:
    measure = tied[0].unit
    prefix = "pH " if measure.kind == "pH" else ""
    new, old = " and ".join(news), " and ".join(text[q.start : q.end] for q in tied)
    if measure.kind == "ratio":
        return f"{new} is not the proportion of this step ({old})"
    if tied[0].mixture:
        return f"a mixture of {new} is not the one that this step needs ({old})"
    return f"{prefix}{new} is {_WORDS[factor]} the {measure.noun} that this step needs ({prefix}{old})"
