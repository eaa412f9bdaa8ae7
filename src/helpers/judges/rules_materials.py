"""How the judge of stoichiometry reads substances: by formula, by name, with their amounts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from helpers.judges.rules_text import CACHE, NUMBER, WORD, pattern, quote, rows
from helpers.perturbations import nomenclature
from helpers.perturbations.composition import Token, find, parse, symbols

__all__ = ["Material", "elements", "in_formulas", "materials", "tokens"]

_ELEMENT_WORDS = [
    (row["symbol"], re.compile("|".join(map(pattern, row["words"].split())))) for row in rows("judge_elements")
]
_SYMBOLS = frozenset(symbol for symbol, _ in _ELEMENT_WORDS)
_ANY_ELEMENT = re.compile("|".join(words.pattern for _, words in _ELEMENT_WORDS))
_MOLES = re.compile(NUMBER + r"\s*(mmol|mol|µmol|μmol)\b(?!/)( per mol)?")
_GRAMS = re.compile(NUMBER + r"\s*(kg|mg|g)\b(?!/)")
_MOLAR = re.compile(rf"{NUMBER}\s*(mM|M)\b.{{0,60}}?{NUMBER}\s*(mL|L)\b")
_SCALE = {"mmol": 1e-3, "µmol": 1e-6, "μmol": 1e-6, "kg": 1e3, "mg": 1e-3, "mM": 1e-3, "mL": 1e-3}
_PURE = re.compile(r"([A-Za-z]+)(?: (?:powder|metal|shot|granules|pieces|wire|foil|ingot|lumps?|turnings))?\)?")
_PER_PRODUCT = re.compile(r"mol per mol")
_ENDLESS = re.compile(r"\S{150}")
_ENTRY = re.compile(r";(?![^()]{0,80}\))")
_CHUNK = re.compile(r",\s|;\s|\s\(")


class Material(NamedTuple):
    """One entry of a list of materials. Amounts are None where the text gives none that is a number."""

    label: str
    text: str
    elements: frozenset[str]
    counts: Mapping[str, float]  # atoms in a formula unit; empty if the entry is not read to the end
    moles: float | None
    grams: float | None
    per_product: bool
    named: frozenset[str]  # elements that its words name


@lru_cache(maxsize=CACHE)
def elements(text: str) -> frozenset[str]:
    """Return the elements that the formulas and the names in a text speak of, O, H and C of names left aside.

    >>> sorted(elements("titanium(IV) isopropoxide and BaCO3"))
    ['Ba', 'C', 'O', 'Ti']
    """
    return in_formulas(text) | _named(text)


@lru_cache(maxsize=CACHE)
def in_formulas(text: str) -> frozenset[str]:
    """Return the elements of the formulas in a text."""
    return frozenset().union(*(symbols(token.text) for token in tokens(text)))


def tokens(text: str) -> tuple[Token, ...]:
    """Return the formulas of a text, none if it holds a run of signs that no chemist wrote."""
    return () if _ENDLESS.search(text) else find(text)


def _named(text: str) -> frozenset[str]:
    return frozenset().union(*map(_word_elements, WORD.findall(text)))


@lru_cache(maxsize=CACHE)
def _word_elements(word: str) -> frozenset[str]:
    lower = word.lower()
    if not _ANY_ELEMENT.search(lower):
        return frozenset()
    return frozenset(symbol for symbol, words in _ELEMENT_WORDS if words.search(lower))


@lru_cache(maxsize=CACHE)
def materials(line: str) -> tuple[Material, ...]:
    """Read a line of the list of materials; a semicolon separates entries.

    >>> [(m.counts, m.grams) for m in materials("Barium carbonate, 1.97 g (10 mmol)")]
    [({'Ba': 1.0, 'C': 1.0, 'O': 3.0}, 1.97)]
    """
    return tuple(_material(entry.strip()) for entry in _ENTRY.split(line) if entry.strip())


def _material(entry: str) -> Material:
    chunks = [chunk.strip() for chunk in _CHUNK.split(entry) if chunk.strip()]
    counts = next(filter(None, map(_counts, chunks[:2])), {})  # what follows are purity, solvent and purpose
    return Material(
        quote(chunks[0]),
        entry,
        frozenset(counts) | elements(entry),
        counts,
        _moles(entry),
        _scaled(_GRAMS.search(entry)),
        _PER_PRODUCT.search(entry) is not None,
        _named(entry),
    )


@lru_cache(maxsize=CACHE)
def _counts(words: str) -> Mapping[str, float]:
    """Return the atoms of a formula, a name, or an element such as "Fe" or "iron powder"."""
    read = [token.composition for token in tokens(words) if token.composition is not None]
    composition = read[0] if read else parse(nomenclature.read(words) or "")
    if composition:
        return composition.elements
    element = _PURE.fullmatch(words)
    named = (frozenset([element[1]]) & _SYMBOLS or _named(element[1])) if element else frozenset()
    return dict.fromkeys(named, 1.0) if len(named) == 1 else {}


def _moles(entry: str) -> float | None:
    if molar := _MOLAR.search(entry):
        return _value(molar[1], molar[2]) * _value(molar[3], molar[4])
    return _scaled(_MOLES.search(entry))


def _scaled(found: re.Match[str] | None) -> float | None:
    return _value(found[1], found[2]) if found else None


def _value(number: str, unit: str) -> float:
    return abs(float(number.replace(",", ""))) * _SCALE.get(unit, 1.0)
