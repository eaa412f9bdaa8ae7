"""Names of compounds: formula to common and IUPAC name, and name to formula.

First the checked table (`data/compounds.csv`), then a compositional namer for salts, oxides, hydroxides and
mixed oxides with their hydrates. Convention of the IUPAC names: Stock numbers, left out where a metal has one
state only (groups 1, 2, Al, Zn, Cd); multiplying prefixes for mixed valence and for mixed oxides; the common
names of metals with several states say the state too (cupric, cobaltous). A name is offered only if reading
it gives back the same composition and the same water.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

from .composition import ELEMENTS, STATES, Composition, parse, rows

__all__ = [
    "ABBREVIATIONS", "ANION_NAMES", "CATION_NAMES", "NAMES", "WATER_WORD", "Compound", "Salt", "accept", "compound",
    "dry", "formula_of", "is_anion", "is_ion", "leaves_state_open", "library", "read", "salt", "salt_end", "same",
    "starts_salt", "symbols_named",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compound:
    """A compound's formula as it is written, its common and its IUPAC name, and what it is used as."""

    formula: str
    name: str
    iupac: str
    role: str = "precursor"


@dataclass(frozen=True, slots=True)
class Salt:
    """A cation (an element or an ion such as NH4) with its charge, and the ion that balances it."""

    cation: str
    state: int
    anion: str


_IONS = {row["formula"]: row for row in rows("ions")}
_CHARGE = {formula: int(row["charge"]) for formula, row in _IONS.items()}
_MOLECULES = {row["token"] for row in rows("tokens") if row["kind"] in ("element", "formula")}
_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII")
_TIMES = (
    "", "", "di", "tri", "tetra", "penta", "hexa", "hepta", "octa", "nona", "deca", "undeca", "dodeca", "trideca",
    "tetradeca", "pentadeca", "hexadeca", "heptadeca", "octadeca", "nonadeca", "icosa",
)  # fmt: skip
_MULTIPLE = {"mono": 1, "mon": 1} | {word: n for n, word in enumerate(_TIMES) if n > 1}
_MULTIPLE |= {word[:-1]: n for word, n in _MULTIPLE.items() if n > 3}
_WATERS = {"1": "mono", "0.5": "hemi", "1/2": "hemi", "1.5": "sesqui", "2.5": "hemipenta", "x": ""}
_WATERS |= {str(n): word for n, word in enumerate(_TIMES) if n > 1}


def _atoms(formula: str) -> dict[str, float]:
    composition = parse(formula)
    return dict(composition.elements) if composition else {formula: 1.0}  # I is a word to `parse`


_ION_ATOMS = {formula: _atoms(formula) for formula in _IONS}


def _split(formula: str) -> tuple[str, str]:
    """Split off the water of crystallisation: "ZrO(NO3)2·xH2O" gives ("ZrO(NO3)2", "x")."""
    found = re.fullmatch(r"(.+?)\s?[·•⋅∙∗×*]\s?\(?([xn]|)\)?\s?H[2₂]O", formula)
    if found and found[2]:
        return found[1], "x"
    composition = parse(formula)
    plain = composition.plain if composition else formula
    salt, dot, water = plain.rpartition("·")
    return (salt, water.removesuffix("H2O") or "1") if dot and water.endswith("H2O") else (plain, "")


def dry(formula: str) -> str:
    """Return a formula without its water of crystallisation.

    >>> dry("Fe(NO3)3·9H2O")
    'Fe(NO3)3'
    """
    return _split(formula)[0]


def same(one: str, other: str) -> bool:
    """Say whether two formulas have the same composition and the same water.

    >>> same("(CH3COO)2Mn·4H2O", "Mn(CH3COO)2·4H2O"), same("MgSO4·7H2O", "MgSO4")
    (True, False)
    """
    parts = [(parse(salt), water) for salt, water in (_split(one), _split(other))]
    (first, water), (second, other_water) = parts
    return first is not None and second is not None and water == other_water and _key(first) == _key(second)


def _key(composition: Composition) -> tuple[tuple[tuple[str, float], ...], int]:
    counts = ((symbol, round(count, 4)) for symbol, count in composition.elements.items())
    return tuple(sorted(counts)), composition.charge


# --- the table ---------------------------------------------------------------------------------------------


def _formula_key(formula: str) -> str:
    composition = parse(formula)
    return composition.plain if composition else formula


_TABLE: dict[str, Compound] = {}
_BY_ATOMS: dict[object, Compound] = {}
NAMES: dict[str, Compound] = {}
ABBREVIATIONS: dict[str, Compound] = {}
for _row in rows("compounds"):
    _entry = Compound(_row["formula"], _row["name"], _row["iupac"], _row["role"])
    _aliases = [alias for alias in _row["synonyms"].split(";") if alias]
    for _alias in (_row["formula"], *_aliases):
        if parse(_alias):
            _TABLE[_formula_key(_alias)] = _entry
    _composition = parse(_row["formula"])
    if _composition and _row["role"] not in ("solvent", "organic", "gas"):  # those have isomers
        _BY_ATOMS[_key(_composition)] = _entry
    NAMES |= {name.lower(): _entry for name in (_row["name"], _row["iupac"], *_aliases) if not parse(name)}
    ABBREVIATIONS |= {name: _entry for name in _row["abbreviations"].split(";") if name}


# --- formula to name ---------------------------------------------------------------------------------------


def _cations(composition: Composition) -> list[tuple[str, float]]:
    """List what could be the cation, with its amount: a metal, NH4, or an ion such as ZrO if it is written out."""
    counts, plain = composition.elements, composition.plain
    found = [(symbol, count) for symbol, count in counts.items() if ELEMENTS[symbol]["kind"][:5] == "metal"]
    for ion in (ion for ion in _IONS if _CHARGE[ion] > 0 and (ion in plain if ion == "NH4" else plain.startswith(ion))):
        amount = min(counts.get(symbol, 0) / count for symbol, count in _ION_ATOMS[ion].items())
        found += [(ion, amount)] if amount >= 1 and amount == int(amount) else []
    return found


@lru_cache(maxsize=4096)
def salt(formula: str) -> Salt | None:
    """Read a formula without water as cation and anion, by composition; None if charges do not balance.

    >>> salt("(CH3COO)2Mn")
    Salt(cation='Mn', state=2, anion='CH3COO')
    """
    composition = parse(formula)
    if composition is None or composition.charge or len(composition.elements) < 2:
        return None
    for cation, amount in _cations(composition):
        rest = dict(composition.elements)
        for symbol, count in _ION_ATOMS.get(cation, {cation: 1.0}).items():
            rest[symbol] -= amount * count
        found = _balance(cation, amount, {symbol: count for symbol, count in rest.items() if abs(count) > 1e-6})
        if found:
            return found
    return None


def _balance(cation: str, amount: float, rest: Mapping[str, float]) -> Salt | None:
    allowed = (_CHARGE[cation],) if cation in _IONS else STATES[cation]
    for anion, charge in _CHARGE.items():
        atoms = _ION_ATOMS[anion]
        if (
            charge > 0
            or atoms.keys() != rest.keys()
            or not _settled(cation, anion)
            or (anion == "O2" and not _forms_peroxide(cation))
        ):
            continue
        times = [rest[symbol] / count for symbol, count in atoms.items()]
        state = -charge * times[0] / amount
        if max(times) - min(times) < 1e-6 and state in allowed:
            return Salt(cation, int(state), anion)
    return None


def _settled(cation: str, anion: str) -> bool:
    """Say whether the plain name of two ions means their salt: aluminium titanate is Al2TiO5, not Al2(TiO3)3."""
    cations = _IONS[anion]["cations"].split()
    return not cations or ((cation not in cations) if cations[0] == "not" else (cation in cations))


def _forms_peroxide(cation: str) -> bool:
    return cation in ELEMENTS and ELEMENTS[cation]["group"] in ("1", "2", "12")


def formula_of(compound: Salt) -> str:
    """Write a salt's formula.

    >>> formula_of(Salt("Ag", 1, "SO4")), formula_of(Salt("NH4", 1, "SO4")), formula_of(Salt("Zn", 2, "OH"))
    ('Ag2SO4', '(NH4)2SO4', 'Zn(OH)2')
    """
    charge = -_CHARGE[compound.anion]
    if compound.state == charge == 1 and compound.anion.endswith("COO"):
        return compound.anion + compound.cation  # CH3COONa
    common = gcd(compound.state, charge)
    return _times(compound.cation, charge // common) + _times(compound.anion, compound.state // common)


def is_ion(formula: str) -> bool:
    """Say whether a formula without a charge is that of an ion and of no compound.

    >>> is_ion("SO4"), is_ion("SO3")
    (True, False)
    """
    return formula in _IONS and formula not in ELEMENTS and formula not in _MOLECULES


def is_anion(formula: str, like: str) -> bool:
    """Say whether this is a known anion with the charge of another.

    >>> is_anion("AsO4", "PO4"), is_anion("W7O24", "Mo7O24")
    (True, False)
    """
    return formula in _CHARGE and _CHARGE[formula] == _CHARGE[like]


def _times(ion: str, amount: int) -> str:
    bare = ion in ELEMENTS or amount == 1
    return (ion if bare else f"({ion})") + (str(amount) if amount > 1 else "")


def _cation_names(compound: Salt) -> tuple[str, str]:
    """Return the common and the IUPAC name of a cation: ("cupric", "copper(II)")."""
    if compound.cation in _IONS:
        row = _IONS[compound.cation]
        return row["name"], row["iupac"]
    row, state = ELEMENTS[compound.cation], str(compound.state)
    stock = f"({_ROMAN[compound.state]})"
    for adjective in row["adjectives"].split():
        if adjective.endswith(f":{state}"):
            return adjective.partition(":")[0], row["name"] + stock
    plain = state == row["salt_state"] and (compound.anion not in ("O", "S", "N") or row["states"] == state)
    return row["common"] + ("" if plain else stock), row["name"] + (stock if row["stock"] == "yes" else "")


def _systematic(counts: Mapping[str, float]) -> str:
    """Name a mixed oxide or a mixed-valence binary with multiplying prefixes, or return ""."""
    metals = sorted((s for s in counts if ELEMENTS[s]["kind"][:5] == "metal"), key=lambda s: ELEMENTS[s]["name"])
    anions = [symbol for symbol in counts if symbol not in metals]
    if not metals or len(anions) != 1 or _CHARGE.get(anions[0], 0) >= 0:
        return ""
    if any(count != int(count) or count >= len(_TIMES) for count in counts.values()):
        return ""
    words = [(counts[metal], ELEMENTS[metal]["name"]) for metal in metals]
    anion = _IONS[anions[0]]["name"]
    number = int(counts[anions[0]])
    last = ("mono" if number == 1 else _TIMES[number]) + anion
    return " ".join([_TIMES[int(count)] + name for count, name in words] + [last])


def _named(formula: str) -> Compound | None:
    """Name a formula without water."""
    composition = parse(formula)
    if composition is None or composition.charge:
        return None
    known = _TABLE.get(composition.plain)
    if known or "·" in composition.plain:  # Na2O·SiO2 tells more than its atoms do
        return known
    known = _BY_ATOMS.get(_key(composition))
    if known:
        return known
    if composition.plain in ELEMENTS:
        row = ELEMENTS[composition.plain]
        return Compound(composition.plain, row["common"], row["name"])
    found = salt(formula)
    if found:
        common, iupac = _cation_names(found)
        anion = _IONS[found.anion]
        return Compound(formula_of(found), f"{common} {anion['name']}", f"{iupac} {anion['iupac']}")
    name = _systematic(composition.elements)
    return Compound(composition.plain, name, name) if name else None


@lru_cache(maxsize=4096)
def compound(formula: str) -> Compound | None:
    """Return a formula's names; None unless reading each of them gives back this very compound.

    >>> compound("Co(NO3)2·6H2O").name, compound("Co(NO3)2·6H2O").iupac
    ('cobaltous nitrate hexahydrate', 'cobalt(II) nitrate hexahydrate')
    >>> compound("Ba2CO3") is None  # no charge balance: a misprint keeps its formula
    True
    """
    base, water = _split(formula)
    whole = _TABLE.get(_formula_key(formula))
    found = whole or _named(base)
    if found is not None and water and not whole:
        suffix = _WATERS.get(water)
        if suffix is None:
            return None
        word = f" {suffix}hydrate"
        dotted = f"{found.formula}·{'' if water == '1' else water}H2O"
        found = replace(found, formula=dotted, name=found.name + word, iupac=found.iupac + word)
    if found is None or not all(same(read(name) or "", formula) for name in (found.name, found.iupac)):
        return None
    return found


# --- name to formula ---------------------------------------------------------------------------------------

_CATIONS: dict[str, tuple[str, int]] = {}  # name -> (symbol or ion, its state, 0 if the name does not say)
for _symbol, _row in ELEMENTS.items():
    _CATIONS |= {_row[column]: (_symbol, 0) for column in ("name", "common", "alias") if _row[column]}
    for _adjective in _row["adjectives"].split():
        _CATIONS[_adjective.partition(":")[0]] = (_symbol, int(_adjective.partition(":")[2]))
_ANIONS: dict[str, str] = {}
for _formula, _row in _IONS.items():
    for _name in (_row["name"], _row["iupac"], *filter(None, _row["aliases"].split(";"))):
        if _CHARGE[_formula] > 0:
            _CATIONS[_name] = (_formula, _CHARGE[_formula])
        else:
            _ANIONS[_name] = _formula


def _either(words: Mapping[str, object]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


_MULT, _CAT, _AN = _either(_MULTIPLE), _either(_CATIONS), _either(_ANIONS)
_HYDRATE = rf"(?:(?P<water>{'|'.join(sorted(filter(None, _WATERS.values()), key=len, reverse=True))}|)-?hydrate)"
_SALT = re.compile(
    rf"(?P<many>{_MULT})?(?P<cation>{_CAT})(?: ?\((?P<stock>[ivx]+)\))? "
    rf"(?:(?P<times>{_MULT})-?)??(?P<anion>{_AN})(?: {_HYDRATE})?(?![\w-])"
)
_PART = re.compile(rf"(?P<times>{_MULT})??(?:(?P<cation>{_CAT})|(?P<anion>{_AN}))")
WATER_WORD = re.compile(rf" {_HYDRATE}(?![\w-])")
_CATION_WORD = re.compile(rf"(?:{_MULT})?(?:{_either({name.split()[0]: 0 for name in _CATIONS})})$")
ANION_NAMES = sorted(map(re.escape, _ANIONS), key=len, reverse=True)
CATION_NAMES = _CAT
_WATER_OF = {word: number for number, word in _WATERS.items() if "/" not in number}


def salt_end(text: str, position: int) -> int:
    """Return where a salt's name that starts at `position` of a lower-case text ends, or 0."""
    found = _SALT.match(text, position)
    return found.end() if found else 0


@lru_cache(maxsize=8192)
def starts_salt(word: str) -> bool:
    """Say whether a lower-case word can begin a salt's name: zinc, cupric, dilithium."""
    return _CATION_WORD.match(word) is not None


def symbols_named(name: str) -> frozenset[str]:
    """Return the elements that a salt's name names if it does not say the oxidation state.

    >>> sorted(symbols_named("iron oxide")), sorted(symbols_named("ferric oxide"))
    (['Fe', 'O'], [])
    """
    found = _SALT.fullmatch(name.lower())
    if found is None or found["stock"] or found["times"] or _CATIONS[found["cation"]][1]:
        return frozenset()
    cation, anion = _CATIONS[found["cation"]][0], _ANIONS[found["anion"]]
    return frozenset({*_ION_ATOMS.get(cation, {cation: 1.0}), *_ION_ATOMS[anion]})


@lru_cache(maxsize=4096)
def read(name: str) -> str | None:
    """Return the formula that a name stands for; None if it is unknown or does not say the state.

    >>> read("Zinc nitrate hexahydrate"), read("niobium pentoxide"), read("iron oxide")
    ('Zn(NO3)2·6H2O', 'Nb2O5', None)
    """
    lower = " ".join(name.lower().split())
    if lower in NAMES:
        return NAMES[lower].formula
    word = _ends_in_water(lower)
    base = lower[: word.start()] if word else lower
    formula = NAMES[base].formula if base in NAMES else _read_salt(base) or _read_parts(base)
    if formula is None or word is None:
        return formula
    number = _WATER_OF[word["water"]]
    return f"{formula}·{'' if number == '1' else number}H2O"


def _ends_in_water(name: str) -> re.Match[str] | None:
    cut = name.rfind(" ")
    return WATER_WORD.fullmatch(name, cut) if cut > 0 else None


def _read_salt(name: str) -> str | None:
    if name in _CATIONS and _CATIONS[name][0] in ELEMENTS and not _CATIONS[name][1]:
        return _CATIONS[name][0]
    found = _SALT.fullmatch(name)
    if found is None:
        return None
    cation, state = _CATIONS[found["cation"]]
    anion = _ANIONS[found["anion"]]
    if not _settled(cation, anion):
        return None
    if found["stock"]:
        state = _ROMAN.index(found["stock"].upper())
    if found["many"] or found["times"]:
        return _counted(cation, _MULTIPLE.get(found["many"], 0), anion, _MULTIPLE.get(found["times"], 0), state)
    state = state or _usual_state(cation, anion)
    return formula_of(Salt(cation, state, anion)) if state else None


def _usual_state(cation: str, anion: str) -> int:
    """Return the state that a name without number implies: 2 for cobalt nitrate, none for cobalt oxide."""
    row = ELEMENTS[cation]
    several = len(STATES[cation]) > 1 and anion in ("O", "S", "Se", "Te", "N", "P", "C")
    return 0 if several or not row["salt_state"] else int(row["salt_state"])


def _counted(cation: str, many: int, anion: str, times: int, state: int) -> str | None:
    """Read prefixes: niobium pentoxide is Nb2O5 although nothing says "di"."""
    charge = -_CHARGE[anion] * (times or 1)
    states = (state,) if state else STATES.get(cation, ())
    for number in (many,) if many else (1, 2):
        if charge % number == 0 and charge // number in states and (many or gcd(number, times) == 1):
            return _times(cation, number) + _times(anion, times or 1)
    return None


def _read_parts(name: str) -> str | None:
    """Read a name made of counted parts: "hexapraseodymium undecaoxide", "diiron zinc tetraoxide"."""
    parts = [_PART.fullmatch(word) for word in name.split()]
    if len(parts) < 2 or not any(part and part["times"] for part in parts):
        return None
    written, least, most = "", 0, 0
    for part in parts:
        if part is None:
            return None
        ion = _CATIONS[part["cation"]][0] if part["cation"] else _ANIONS[part["anion"]]
        number = _MULTIPLE.get(part["times"], 1)
        charges = (_CHARGE[ion],) if part["anion"] or ion in _IONS else STATES[ion]
        written += _times(ion, number)
        least, most = least + number * min(charges), most + number * max(charges)
    return written if least <= 0 <= most else None


_ORGANIC_NAME = re.compile(r"(?!.*(?:xidanyl|azanyl))[a-z0-9,'()\[\]-]+(?: acid)?")  # no oxidanyl for hydroxy
_ORGANIC_FORMULA = re.compile(r"C\d*H\d*(?:[BFINOPS]\d*|Br\d*|Cl\d*|Si\d*)*")


@lru_cache(maxsize=4096)
def library(name: str) -> Compound | None:
    """Look an organic compound up in the package `chemicals`; None unless its IUPAC name leads back to it.

    The package takes a second and 190 MB to load, so it is asked only for names with a locant or an acid's
    ending that the table lacks, and only for the IUPAC name: its formulas of salts and hydrates and its common
    names were found wrong too often. What it knows depends on its version, which the lock file pins.
    """
    from chemicals.identifiers import search_chemical

    try:
        found = search_chemical(name)
        back = search_chemical(found.iupac_name)
    except ValueError:
        return None
    usual = _ORGANIC_NAME.fullmatch(found.iupac_name) and _ORGANIC_FORMULA.fullmatch(found.formula)
    leads_back = back.CAS == found.CAS
    return Compound(found.formula, name.lower(), found.iupac_name, "organic") if usual and leads_back else None


def leaves_state_open(name: str) -> bool:
    """Say whether a salt's name relies on the usual oxidation state of a metal that has several.

    >>> leaves_state_open("nickel nitrate"), leaves_state_open("ferric nitrate"), leaves_state_open("zinc nitrate")
    (True, False, False)
    """
    found = _SALT.fullmatch(name.lower())
    return (
        found is not None
        and symbols_named(name) != frozenset()
        and len(STATES.get(_CATIONS[found["cation"]][0], ())) > 1
    )


def accept(formula: str, proposed: str) -> str | None:
    """Accept a name that a model proposed for a formula only if it reads back as that formula.

    >>> accept("Fe2O3", " iron(III) oxide "), accept("Fe2O3", "iron(II) oxide"), accept("Fe2O3", "rust")
    ('iron(III) oxide', None, None)
    """
    name = " ".join(proposed.split())
    formula_read = read(name)
    return name if formula_read and same(formula_read, formula) else None
