"""Names learned while a process runs, for formulas that `nomenclature` has none for.

They stand here and not in `nomenclature`, whose text is part of the key of every rule judge's answer: the judges read
names, and what is learned changes how a formula is written, not how a name is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from . import nomenclature
from .composition import parse
from .nomenclature import NAMES, WATER_WORD, Compound

__all__ = ["accept", "learn", "learned", "relearned"]


class _Cached(Protocol):
    def cache_clear(self) -> None: ...


_C = TypeVar("_C", bound=_Cached)
_CLEARED: list[Callable[[], None]] = [nomenclature.compound.cache_clear]
_HAVE_ISOMERS = ("solvent", "organic", "gas")  # roles in the table of compounds
_STATE = re.compile(r"\([ivx]+\)")


def relearned(cached: _C) -> _C:
    """Mark a cached function whose results rest on the names of formulas, so that `learn` clears it."""
    _CLEARED.append(cached.cache_clear)
    return cached


def accept(formula: str, proposed: str) -> str | None:
    """Return the name, in lower case, if it reads back as the formula and leaves nothing open that a formula says.

    Declined beside what `nomenclature.accept` declines: names of compounds with isomers, which a composition does not
    tell apart, and names for several phases that are written as one formula (Na2O·SiO2).

    >>> accept("La2O2S", "Dilanthanum dioxide sulfide"), accept("CH3OCH3", "ethanol"), accept("Fe2O3", "iron(II) oxide")
    ('dilanthanum dioxide sulfide', None, None)
    """
    name = nomenclature.accept(formula, proposed)
    if name is None or "·" in nomenclature.dry(formula):
        return None
    name = name.lower()
    listed = NAMES.get(name) or NAMES.get(WATER_WORD.sub("", name))
    if listed and listed.role in _HAVE_ISOMERS:
        return None
    return _STATE.sub(lambda state: state[0].upper(), name)


def learn(proposed: Mapping[str, str]) -> None:
    """Use these names, formula to IUPAC name, for formulas that have none; for the whole process, until it ends.

    Every name is checked by `accept` again, and nothing is learned unless all pass: ValueError names the first that
    does not. A formula that has a name keeps it, so that learning twice changes nothing.

    >>> learn({"Fe2O3": "iron(II) oxide"})
    Traceback (most recent call last):
    ValueError: 'iron(II) oxide' does not read back as Fe2O3
    """
    new = {}
    for formula, proposal in proposed.items():
        name, composition = accept(formula, proposal), parse(formula)
        if name is None or composition is None:
            raise ValueError(f"{proposal!r} does not read back as {formula}")
        if nomenclature.compound(formula) is None:
            new[composition.plain] = Compound(composition.plain, name, name)
    _use(nomenclature._TABLE | new)


@contextmanager
def learned(proposed: Mapping[str, str]) -> Iterator[None]:
    """Use these names as `learn` does, but only inside a `with` block: what was known before it is known after it.

    >>> with learned({"La2O2S": "dilanthanum dioxide sulfide"}):
    ...     nomenclature.compound("La2O2S").name
    'dilanthanum dioxide sulfide'
    >>> nomenclature.compound("La2O2S") is None
    True
    """
    before = nomenclature._TABLE
    learn(proposed)
    try:
        yield
    finally:
        _use(before)


def _use(table: dict[str, Compound]) -> None:
    nomenclature._TABLE = table
    for clear in _CLEARED:
        clear()
