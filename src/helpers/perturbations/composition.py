"""Chemical formulas: where they stand in a text, and what they are made of.

A token is a formula only if it is read to its last character *and* looks like chemistry: public parsers read
PVC, PVP, TTIP, In, As and No as compositions and `Ce(NO3)3.6H2O` as 3.6 nitrates. What is not fully
understood stays text (`unread` lists it).
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

__all__ = [
    "ELEMENTS",
    "STATES",
    "Composition",
    "Token",
    "balanced",
    "find",
    "parse",
    "rows",
    "swap",
    "symbols",
    "unread",
]


@dataclass(frozen=True, slots=True)
class Composition:
    """What one formula unit is made of.

    `elements` counts every atom, those of the water of crystallisation included; `hydrate` is the number of
    those waters; `charge` is in units of e; `plain` is the formula in ASCII with `·` before the water.
    """

    elements: Mapping[str, float]
    hydrate: float
    charge: int
    plain: str


@dataclass(frozen=True, slots=True)
class Token:
    """A formula at `text[start:end]`; `composition` is None where it has variables or several phases."""

    start: int
    end: int
    text: str
    composition: Composition | None


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a table of the package's data, such as "elements"."""
    path = resources.files("helpers") / "data" / f"{name}.csv"
    return tuple(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


ELEMENTS = {row["symbol"]: row for row in rows("elements")}
STATES = {symbol: tuple(map(int, row["states"].split())) for symbol, row in ELEMENTS.items()}
_ANIONS = {row["formula"]: int(row["charge"]) for row in rows("ions") if row["formula"] in ELEMENTS}
_IONS = {row["formula"]: int(row["charge"]) for row in rows("ions")}
_KIND = {row["token"]: row["kind"] for row in rows("tokens")}
_GROUP = {row["token"]: row["formula"] for row in rows("tokens") if row["kind"] == "group"}

_DASH, _DOT = "-−–‐‑", "·•⋅∙∗×"
_NUMBER = r"(?:0\.\d+|[1-9]\d*(?:\.\d+)?)(?:/[1-9]\d*)?"
_SYMBOL = "|".join(sorted(ELEMENTS, key=lambda symbol: (-len(symbol), symbol)))
_ATOM = "|".join([*sorted(_GROUP, key=len, reverse=True), _SYMBOL])
_PIECE = re.compile(rf"(?P<open>\((?![IVX]+\)))|(?P<close>\))(?:{_NUMBER})?|(?P<atom>{_ATOM})(?:{_NUMBER})?")
_PLAIN: dict[int, int | str] = {ord("½"): "0.5"}
_PLAIN |= str.maketrans("₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻[]{}" + _DASH + _DOT, "01234567890123456789+-()()" + "-" * 5 + "·" * 6)
_ORGANIC = re.compile(rf".*C\d*H\d|.*(?:{'|'.join(_GROUP)})")
_WATER = re.compile(rf"(?P<salt>.+?)·(?P<count>{_NUMBER}|)\(?H2O\)?$")


def _value(number: str) -> float:
    above, _, below = number.partition("/")
    return float(above or 1) / float(below or 1)


def _tally(part: str) -> dict[str, float] | None:
    """Count the atoms of a formula without water and charge; None when a character is left over."""
    stack: list[dict[str, float]] = [{}]
    position = 0
    while position < len(part):
        piece = _PIECE.match(part, position)
        if piece is None or (piece["close"] and len(stack) == 1):
            return None
        position = piece.end()
        if piece["open"]:
            stack.append({})
            continue
        inner = stack.pop() if piece["close"] else _atoms(piece["atom"])
        if not inner:
            return None
        number = piece.group()[1 if piece["close"] else len(piece["atom"]) :]
        for symbol, count in inner.items():
            stack[-1][symbol] = stack[-1].get(symbol, 0.0) + count * _value(number)
    return stack[0] if len(stack) == 1 else None


@cache
def _atoms(atom: str) -> dict[str, float]:
    return (_tally(_GROUP[atom]) or {}) if atom in _GROUP else {atom: 1.0}


def _sum(parts: list[str]) -> dict[str, float] | None:
    """Add up phases joined by `·`, each with its leading number: 4MgCO3·Mg(OH)2."""
    total: dict[str, float] = {}
    for part in parts:
        times = re.match(_NUMBER, part) if len(parts) > 1 else None
        counts = _tally(part[times.end() :] if times else part)
        if not counts:
            return None
        for symbol, count in counts.items():
            total[symbol] = total.get(symbol, 0.0) + count * _value(times.group() if times else "")
    return total


def _plain(token: str) -> str:
    """Write a token in ASCII: counts as digits, `^` before a charge that is set apart, `·` before the water."""
    text = re.sub(r"^(?:n|s|t|tert|sec|iso)-(?=Bu)", "", token.strip())
    text = re.sub(r"([⁰¹²³⁴-⁹]*[⁺⁻]|(?<=\])\d*[+−-])$", r"^\1", text).translate(_PLAIN)
    return re.sub(r"(?:\s*[·*.]\s*|\s+x\s+|(?<=[\w)])\s)([\d./]*)\s*(\(?H2O\)?)$", r"·\1\2", text).replace(" ", "")


def _charged(plain: str) -> tuple[str, int] | None:
    """Split SO42-, SO4^2-, Fe3+ and NH4+ into formula and charge; None when that cannot be told."""
    found = re.fullmatch(r"(.+?)\^?(\d*)([+-])", plain)
    if found is None:
        return plain, 0
    body, digits, sign = found[1], found[2], 1 if found[3] == "+" else -1
    if "^" in plain or body in ELEMENTS:
        return body, sign * int(digits or 1)
    body, charge = (body + digits[:-1], int(digits[-1])) if len(digits) > 1 else (body + digits, 1)
    return (body, sign * charge) if _IONS.get(body) == sign * charge else None


def balanced(elements: Mapping[str, float], given: Mapping[str, int] | None = None) -> bool:
    """Say whether common oxidation states, or the `given` ones, add up to zero.

    >>> balanced({"Na": 1, "Cl": 1}), balanced({"P": 1, "V": 1, "C": 1}), balanced({"Fe": 2, "O": 3}, {"Fe": 2})
    (True, False, False)
    """
    options = []
    for symbol, count in elements.items():
        if given and symbol in given:
            options.append([given[symbol] * count])
            continue
        negative = (_ANIONS[symbol],) if symbol in _ANIONS else ()
        metal = ELEMENTS[symbol]["kind"] in ("metal", "metalloid")
        positive = STATES[symbol] if metal or symbol in ("H", "C") or "O" in elements else ()
        options.append([state * count for state in (*negative, *positive)])
    return any(abs(sum(choice)) < 0.05 for choice in itertools.product(*options))


def _plausible(plain: str, elements: Mapping[str, float]) -> bool:
    """Tell chemistry from acronyms, grades and labels that happen to consist of element symbols."""
    kind = _KIND.get(plain)
    if kind is not None or len(elements) == 1:
        return kind in ("element", "formula") or (kind in (None, "unit") and plain in ELEMENTS)
    letters = re.sub(r"[^A-Za-z]", "", plain)
    if plain in _IONS or (_ORGANIC.match(plain) and not (letters == plain and plain.isupper())):
        return True
    first = next(iter(elements))
    salt = ELEMENTS[first]["kind"] in ("metal", "metalloid")
    if letters.isupper():
        acid = first == "C" or bool({"O", "S", "F"} & elements.keys())
        return letters != plain and (salt or acid) and not plain.endswith("C") and balanced(elements)
    return letters != plain or (salt and balanced(elements))


@lru_cache(maxsize=8192)
def parse(token: str) -> Composition | None:
    """Read a formula strictly; None unless every character is understood.

    >>> parse("Ce(NO3)3.6H2O").hydrate
    6.0
    >>> sorted(parse("Pb(Mg1/3Nb2/3)O3").elements)
    ['Mg', 'Nb', 'O', 'Pb']
    >>> parse("SO₄²⁻").charge
    -2
    >>> [parse(token) for token in ("PVP", "No", "SUS304", "BaTi1-xZrxO3", "0.5V2O5-0.5Li2O")]
    [None, None, None, None, None]
    """
    split = _charged(_plain(token))
    if split is None or not split[0]:
        return None
    body, charge = split
    water = _WATER.match(body)
    salt, hydrate = (water["salt"], _value(water["count"])) if water else (body, 0.0)
    elements = _sum(salt.split("·"))
    if elements is None or hydrate > 24 or not (_plausible(salt, elements) or charge):
        return None
    for symbol, count in (("H", 2 * hydrate), ("O", hydrate)) if hydrate else ():
        elements[symbol] = elements.get(symbol, 0.0) + count
    dotted = f"{salt}·{water['count']}H2O" if water else body
    return Composition(elements, hydrate, charge, dotted)


# A formula in running text, from small to large: an amount (2, 0.5, 1/3, x, 1-x, 3-δ, (1+x)/2), an atom with
# its amount, brackets, what joins phases or water, a charge, dopants after a colon. Generic symbols (RE, Ln, M)
# are let in here and refused by `parse`; polytypes (2H-MoS2), grades ("(4N)", "(AR)") and Fe(III) are kept out.
_GAP = "[ \u00a0\u2009]"
_DIGIT = "[0-9₀-₉]"
_NUM = (
    rf"(?:(?:{_DIGIT}{{1,9}}(?:\.{_DIGIT}{{1,9}})?|\.{_DIGIT}{{1,9}})(?:/{_DIGIT}{{1,9}}(?!{_DIGIT}|\.\d|{_GAP}?%))?)"
)
_VAR = "(?:[xyzuvwnmabdtδαθεξ](?![a-zé]))"
_TERM = rf"(?:{_NUM}?{_VAR}(?:/{_NUM})?|{_NUM})"
_LESS = (
    rf"(?:[{_DASH}+±](?:{_NUM}?{_VAR}(?:/{_NUM})?|{_NUM}(?=[A-Z(\[]))"
    rf"|{_GAP}?[{_DASH}+±]{_GAP}?{_NUM}?[xyzdδθα](?![a-zé]))"
)
_INNER = rf"\({_GAP}?{_TERM}(?:{_GAP}?[{_DASH}+±]{_GAP}?{_TERM})+{_GAP}?\)(?:/{_NUM})?"
_AMOUNT = rf"(?:{_NUM}?{_INNER}|\({_VAR}\)|{_TERM}{_LESS}*)"
_UNIT = rf"(?:{_ATOM}|RE|Ln|TM|Me|[RMAXT]){_AMOUNT}?(?:{_GAP}(?=\([A-Z]\w*\)\d))?"
_OPEN = rf"[(\[{{](?!(?:[IVX,]+|\d+N|s|l|g|aq|AR|GR|CP)[)\]}}]){_GAP}?{_AMOUNT}?"
_CLOSE = rf"[)\]}}]{_AMOUNT}?"
_JOIN = (
    rf"(?:{_GAP}?[{_DOT}]{_GAP}?(?:{_AMOUNT}{_GAP})?|[{_DASH}+*]|{_GAP}[{_DASH}+]{_GAP}?(?=[xyz0]|\([\dxyz])"
    rf"|\.(?=\d*H2O)|(?:{_GAP}x)?{_GAP}(?=\d*H2O(?!\w)))(?:{_AMOUNT}(?:{_GAP}(?=H[2₂]O))?)?(?=[A-Z(\[])"
)
_CHARGE = r"\^?(?:[⁰¹²³⁴-⁹]*[⁺⁻]|[+-](?![\w+]))"
_DOPED = rf"(?:{_ATOM})(?:\d?[+⁺]|[¹²³⁴]⁺)?"
_DOPANT = rf":{_GAP}?{_AMOUNT}?{_GAP}?{_DOPED}(?:[,/]{_GAP}?{_AMOUNT}?{_DOPED})*"
_FIRST = rf"(?:n|s|t|tert|sec|iso)-(?=Bu)|{_INNER}{_GAP}?|{_NUM}[xyz]?|[xyz](?=[A-Z])"
_TEXT = re.compile(
    rf"(?<![A-Za-z0-9_₀-₉.])(?!\d+[HRTC]-)(?:{_FIRST})?(?:{_OPEN}|{_UNIT})(?:{_OPEN}|{_CLOSE}|{_UNIT}|{_JOIN})*"
    rf"(?:/C(?![\w/]))?{_CHARGE}?(?:{_DOPANT})*(?![\w$^<])"
)
_SYMBOLS = re.compile(_SYMBOL)
_ATOMS = re.compile(_ATOM)
_ALLOY = re.compile(rf"\d*(?:{_SYMBOL})(?:[{_DASH}]\d*(?:{_SYMBOL}))+")
_ON_CARBON = re.compile(rf"(?:{_SYMBOL})/C")
_ITEM = re.compile(r"(?m)^[ \t]*[-*•][ \t]+([A-Z][a-z]?)(?=\s*(?:,(?!\S)|\(|$))")
_FORMS = "|".join(row["token"] for row in rows("tokens") if row["kind"] == "form")
_STUFF = re.compile(rf"\s+(?:{_FORMS})s?\b")
_SPLIT = re.compile(rf"[A-Z][a-z]?[\d.]*[{_DASH}][xyzδ] $")  # the "La1-x " of "La1-x SrxMnO3"
_LONGEST = 300  # characters of a formula
_BROKEN = re.compile(r"[A-Z][a-z]?\d $|[)\]}]$")  # what stands before the O3 of "Al2 O3"


def _fault(text: str) -> int:
    """Return the index of the first bracket without a partner, or the length of the text."""
    opened: list[int] = []
    for index, char in enumerate(text):
        if char in "([{":
            opened.append(index)
        elif char in ")]}":
            if not opened:
                return index
            opened.pop()
    return opened[0] if opened else len(text)


def _trim(text: str) -> tuple[int, int]:
    """Cut a match down to what its brackets agree on: "(Fe2O3)" to Fe2O3, "TiO2(99" to TiO2."""
    start, end = 0, len(text)
    while start < end:
        body = text[start:end]
        fault = _fault(body)
        if fault == 0 or body[0] in _DOT + _DASH + " *+":
            start += 1
        elif fault < len(body):
            end = start + fault
        elif body[-1] in _DOT + _DASH + " *.+" and ":" not in body and parse(body) is None:
            end -= 1
        elif body[0] in "([{" and _fault(body[1:]) == len(body) - 2:
            start, end = start + 1, end - 1
        else:
            break
    return start, end


def _mixed(token: str) -> bool:
    """Say whether this is a formula with variables, dopants or several phases, or a metal on carbon."""
    host = token.partition(":")[0].removesuffix("/C")
    found = {atom for atom in _SYMBOLS.findall(host) if atom not in _GROUP}
    if _ON_CARBON.fullmatch(token):
        return True
    acronyms = any(_KIND.get(capitals) == "acronym" for capitals in re.findall("[A-Z]{2,}", host))
    if acronyms or _ALLOY.fullmatch(host) or len(found) < 2 or not re.search("[a-zδ]", host):
        return False
    phases = re.split(f"[{_DASH}+{_DOT}]", host)
    return bool(re.search(r"[\d₀-₉xyz]", host)) or all(parse(phase) for phase in phases)


def _token(text: str, start: int, end: int) -> Token | None:
    if end - start > _LONGEST:
        return None
    head, tail = _trim(text[start:end])
    start, end = start + head, start + tail
    token = text[start:end]
    number = re.match(_NUM, token)
    for skip in (0, number.end()) if number else (0,):
        composition = parse(token[skip:])
        if composition is not None and not (skip and len(composition.elements) < 2):
            return Token(start + skip, end, token[skip:], composition)
    return Token(start, end, token, None) if _mixed(token) else None


@lru_cache(maxsize=64)
def _search(text: str) -> tuple[tuple[Token, ...], tuple[str, ...]]:
    items = {match.start(1) for match in _ITEM.finditer(text)}
    found, refused = [], []
    for match in _TEXT.finditer(text):
        token = None if _SPLIT.search(text, max(0, match.start() - 12), match.start()) else _token(text, *match.span())
        if token is not None and _stands(text, token, match.start() in items):
            found.append(token)
        elif token is None and match.group() not in _KIND and re.search(r"[A-Z][a-z]?[\d₀-₉(]", match.group()):
            refused.append(match.group())
    return tuple(found), tuple(refused)


def _stands(text: str, token: Token, listed: bool) -> bool:
    """Say whether an element by itself is meant as a chemical: "- Cu, 1 mol", "Zn powder"; H2 but not Al2 O3."""
    kind = _KIND.get(token.text)
    if token.text in ELEMENTS:
        return kind != "word" and (listed or bool(_STUFF.match(text, token.end)))
    return kind != "element" or not _BROKEN.search(text, max(0, token.start - 4), token.start)


def find(text: str) -> tuple[Token, ...]:
    """Return the formulas of a text from left to right; they never overlap.

    >>> [token.text for token in find("As dried, As2O3 (No. 2 grade) and 5 g CuSO4 · 5H2O at 300 K in PVP.")]
    ['As2O3', 'CuSO4 · 5H2O']
    """
    return _search(text)[0]


def unread(text: str) -> tuple[str, ...]:
    """Return the pieces that look like formulas but are not understood, and so are left alone.

    >>> unread("SUS304 steel, MIL-101 and TiO2")
    ('SUS304',)
    """
    return _search(text)[1]


def symbols(token: str) -> frozenset[str]:
    """Return the element symbols in a formula, variables and dopants allowed.

    >>> sorted(symbols("La0.67Ba0.33(Mn1-xCox)O3"))
    ['Ba', 'Co', 'La', 'Mn', 'O']
    """
    composition = parse(token)
    return frozenset(composition.elements if composition else _SYMBOLS.findall(token))


def swap(formula: str, old: str, new: str) -> str:
    """Put one element's symbol in another's place, groups such as OAc aside.

    >>> swap("(1-x)K0.5Na0.5NbO3-xCuO", "K", "Rb"), swap("Co(OAc)2", "O", "S")
    ('(1-x)Rb0.5Na0.5NbO3-xCuO', 'Co(OAc)2')
    """
    return _ATOMS.sub(lambda atom: new if atom.group() == old else atom.group(), formula)
