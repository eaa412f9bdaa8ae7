"""Laboratory units: a closed list, how each is spelled, and what bounds its values.

Units are case-sensitive (M is molar, m no unit by itself, K kelvin) and composed: "mL min−1", "mL/min" and
"mL·min⁻¹" are one unit of `data/units.csv`, "g/mol" another, and what is not in the list is none.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from .alternation import either
from .composition import rows
from .numerals import BLANK, power

__all__ = ["END", "FACTORS", "SCALABLE", "UNIT", "UNITS", "Unit", "unit"]


class Unit(NamedTuple):
    """A unit's kind and noun, the bounds of its values, and where the spelling means something else.

    A change by less than `least` is no error (4 °C or 8 °C in the refrigerator); `spaced` units need a blank
    before them (O 1s and 3d are orbitals); `unless` may not follow them.
    """

    kind: str
    noun: str
    low: Decimal
    high: Decimal
    least: Decimal
    spaced: bool
    unless: re.Pattern[str] | None


FACTORS = {row["kind"]: tuple(map(Decimal, row["multipliers"].split())) for row in rows("quantity_kinds")}
SCALABLE = frozenset(row["kind"] for row in rows("quantity_kinds") if row["extensive"] == "yes")
UNITS = {
    row["unit"]: Unit(
        kind=row["kind"],
        noun=row["noun"],
        low=Decimal(row["low"]),
        high=Decimal(row["high"] or "Infinity"),
        least=Decimal(row["least"] or 0),
        spaced=row["spaced"] == "yes",
        unless=re.compile(rf"\s*(?:{row['unless']})") if row["unless"] else None,
    )
    for row in rows("units")
    if row["kind"]
}
_SPELLED = {name: row["unit"] for row in rows("units") for name in row["spellings"].split("|") if name}


_LETTER = r"[^\W\d_⁰¹²³⁴⁵⁶⁷⁸⁹]"
_BASE = rf"{either(name for name in _SPELLED if not name.endswith('%'))}(?!{_LETTER})"
_SHARE = either(name for name in _SPELLED if name.endswith("%"))
_BELOW = r"(?:\^\{?[-−–]\d\}?|⁻[¹²³]|[-−–][123](?!\d))"
_RAISED = rf"(?:{_BELOW}|\^\{{?\+?\d\}}?|⁺?[¹²³]|[23](?!\d))"
_PER = rf"(?:{BLANK}?/{BLANK}?|{BLANK}per{BLANK})"
_DOT = rf"(?:{BLANK}?[·⋅•∙*.]{BLANK}?|{BLANK})"
UNIT = rf"(?:{_SHARE}|{_BASE}{_RAISED}?(?:{_PER}{_BASE}{_RAISED}?|{_DOT}{_BASE}{_BELOW})*)"
END = r"(?:(?<=%)|(?![\w⁻⁺]|[-−·⋅•]\w))"
_TOKEN = re.compile(rf"(?P<per>{_PER})?(?P<base>{_BASE})(?P<raised>{_RAISED})?")


@lru_cache(maxsize=512)
def unit(spelling: str) -> Unit | None:
    """Return the unit that a match of `UNIT` stands for; None when it is not in the list.

    >>> unit("mL min−1").noun, unit("mL/min") == unit("mL·min⁻¹"), unit("g K")
    ('flow rate', True, None)
    """
    if spelling in _SPELLED:
        return UNITS.get(_SPELLED[spelling])
    parts, end = [], 0
    for token in _TOKEN.finditer(spelling):
        raised = (power(token["raised"]) if token["raised"] else 1) * (-1 if token["per"] else 1)
        parts.append(_SPELLED[token["base"]] + (f"^{raised}" if raised != 1 else ""))
        end = token.end()
    return UNITS.get("·".join(parts)) if end == len(spelling) else None
