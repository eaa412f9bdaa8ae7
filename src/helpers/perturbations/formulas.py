"""Element substitution: one element of a compound becomes another of its group, wherever the compound is named.

A swap is a true error only if the element matters: with a target, one that the target needs; without, a metal
(or, where there is none, the non-metal that the compound brings). What takes its place stands in no formula and
no name of the recipe or the target, exists in that oxidation state, and gives another known kind of compound:
BaCO3 to SrCO3, Pr6O11 to Nd2O3, cupric nitrate to silver nitrate. Auxiliaries (solvents, gases, NaOH for the
pH) are left alone, as are charged species, labels, vessels, and compounds that the text calls by an abbreviation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from helpers import keyed

from . import names, nomenclature
from .articles import fits
from .composition import ELEMENTS, STATES, Composition, balanced, find, parse, rows, swap, symbols, unread
from .edits import Edit
from .learning import relearned
from .names import Mention
from .nomenclature import Salt, compound, formula_of, salt

__all__ = ["Composition", "elements", "parse", "propose", "spans", "unread"]

KIND = "element_substitution"
_PARTNERS = {symbol: row["partners"].split() for symbol, row in ELEMENTS.items()}
_ACRONYM = {row["token"]: frozenset(row["formula"].split()) for row in rows("tokens") if row["kind"] == "acronym"}
_ENGLISH = {row["token"] for row in rows("tokens") if row["kind"] == "word"}
_WORD = {name: set(symbols(known.formula)) for name, known in nomenclature.NAMES.items() if name.isalpha()}
_WORD |= {row["name"]: set(symbols(row["formula"])) for row in rows("ions") if row["name"].isalpha()}
for _symbol, _row in ELEMENTS.items():
    _WORD |= {word: {_symbol, "O"} for word in _row["oxyanion"].split()}
    _WORD |= {_row[column]: {_symbol} for column in ("name", "common", "alias") if _row[column]}
    _WORD |= {adjective.partition(":")[0]: {_symbol} for adjective in _row["adjectives"].split()}
_SYMBOL = "|".join(sorted(ELEMENTS, key=len, reverse=True))
_SYMBOLS = re.compile(rf"(?:{_SYMBOL})+")
_LOOSE = re.compile(rf"(?<![A-Za-z])(?:(?:{_SYMBOL})[\d.xyzδ/()\[\]-]*)+")
_MATERIALS = re.compile(r"(?ims)^(#+)\s*(?:\d+\.?\s*)?(?:starting |raw )?materials\b.*?(?=^(?!\1#)#|\Z)")
_SPARED = ("solvent", "gas", "auxiliary", "organic")


def spans(text: str) -> list[tuple[int, int]]:
    """Return where the formulas of a text stand.

    >>> [("Mix TiO2 and 2 g Li2CO3")[a:b] for a, b in spans("Mix TiO2 and 2 g Li2CO3")]
    ['TiO2', 'Li2CO3']
    """
    return [(token.start, token.end) for token in find(text)]


@lru_cache(maxsize=256)
def elements(text: str) -> frozenset[str]:
    """Return the elements of all formulas, symbols, names and known acronyms in a text, variables allowed.

    >>> sorted(elements("La0.67Ba0.33(Mn1-xCox)O3")), sorted(elements("Synthesis of lead zirconate titanate"))
    (['Ba', 'Co', 'La', 'Mn', 'O'], ['O', 'Pb', 'Ti', 'Zr'])
    >>> sorted(elements("NiFe hydroxide on Au"))
    ['Au', 'Fe', 'H', 'Ni', 'O']
    """
    found = set().union(*(symbols(token.text) for token in find(text)))
    for word in re.findall(r"[A-Za-z][A-Za-z0-9]*", text):
        found |= _ACRONYM.get(word, frozenset()) or _WORD.get(_stem(word.lower()), set())
        if _SYMBOLS.fullmatch(word) and word not in _ENGLISH and len(word) > 1 and not word.isupper():
            found |= symbols(word)
    for piece in _LOOSE.findall(text):
        found |= symbols(piece) if re.search(r"\d", piece) and re.search("[a-z]", piece) else set()
    return frozenset(found)


def _stem(word: str) -> str:
    """Strip what chemists put before or behind: dititanate, metasilicate, titanates."""
    if word in _WORD:
        return word
    return re.sub(r"^(?:di|tri|tetra|penta|hexa|meta|ortho|pyro|poly)+|s$", "", word)


def propose(text: str, *, seed: int, sample_id: str, target: str = "") -> list[Edit]:
    """Return the swaps of every compound that has one; edits that share `entity` belong together.

    >>> edits = propose("Mix BaCO3 and barium carbonate.", seed=1, sample_id="a", target="BaTiO3")
    >>> [(edit.old, edit.new) for edit in edits]
    [('BaCO3', 'MgCO3'), ('barium carbonate', 'magnesium carbonate')]
    """
    needed = elements(target)
    section = _MATERIALS.search(text)
    taken = set(needed | elements(section.group() if section and needed else text))
    groups = _entities(text, target)
    wanted = {entity for entity, group in groups.items() if _swappable(group[0].formula, needed)}
    edits: list[Edit] = []
    for entity, group in groups.items():
        if (needed and entity not in wanted) or (not needed and _spared(group[0].formula)):
            continue
        choice = _draw(text, group, needed, taken, (seed, sample_id, KIND, entity))
        if choice:
            old, new, changed = choice
            taken.add(new)
            edits += [_edit(mention, word, entity, old, new, needed) for mention, word in changed]
    return sorted(edits)


def _spared(formula: str) -> bool:
    known = compound(formula)
    return known is not None and known.role in _SPARED


def _entities(text: str, target: str) -> dict[str, list[Mention]]:
    """Group the mentions by compound; with a materials section, only what is listed there."""
    groups: dict[str, list[Mention]] = {}
    spoilt = set()
    for mention in names.mentions(text):
        key = _entity(mention.formula)
        if mention.form == "abbreviation" or (mention.form == "name" and not mention.formula):
            spoilt.add(key)
        elif mention.form != "element" and mention.formula and target not in (mention.text, mention.formula):
            groups.setdefault(key, []).append(mention)
    for mention in names.mentions(text):
        owners = [key for key in groups if mention.formula in symbols(groups[key][0].formula)]
        if mention.form == "element" and len(owners) == 1:
            groups[owners[0]].append(mention)
    section = _MATERIALS.search(text)
    start, end = section.span() if section else (0, len(text))
    listed = {key for key, group in groups.items() if any(start <= mention.start < end for mention in group)}
    return {key: group for key, group in groups.items() if key in (listed or groups.keys()) and key not in spoilt}


@relearned
@lru_cache(maxsize=8192)
def _entity(formula: str) -> str:
    """Return what tells compounds apart, water aside: "zinc nitrate" is the hexahydrate weighed in before."""
    known, composition = compound(formula), parse(formula)
    if known or composition is None:
        return (known.formula if known else formula).partition("·")[0]
    dry = {**composition.elements}
    for symbol, count in (("H", 2.0), ("O", 1.0)):
        dry[symbol] = dry.get(symbol, 0.0) - count * composition.hydrate
    return "".join(f"{symbol}{count:g}" for symbol, count in sorted(dry.items()) if count)


@relearned
@lru_cache(maxsize=4096)
def _swappable(formula: str, needed: frozenset[str]) -> frozenset[str]:
    """Return the elements whose swap is an error: those needed; with no target, the metals that a compound brings.

    An alkali metal beside another one only balances its charge (KMnO4); without a metal it is the non-metal.
    """
    found = {symbol for symbol in symbols(formula) if _PARTNERS[symbol]}
    if needed:
        return frozenset(found) & needed
    metals = {symbol for symbol in found if ELEMENTS[symbol]["kind"] in ("metal", "metalloid") or symbol == "P"}
    heavier = {symbol for symbol in metals if ELEMENTS[symbol]["group"] != "1"}
    return frozenset(heavier or metals or found)


def _draw(
    text: str, group: list[Mention], needed: frozenset[str], taken: set[str], key: tuple[int, str, str, str]
) -> tuple[str, str, list[tuple[Mention, str]]] | None:
    """Draw the element and its replacement; the next in turn where a draw gives no possible compound."""
    olds = sorted(_swappable(group[0].formula, needed))
    for old in _turned(olds, keyed.word(*key, "element")):
        news = [new for new in _PARTNERS[old] if new not in taken]
        for new in _turned(news, keyed.word(*key, old)):
            words = [(mention, _swapped(mention, old, new)) for mention in group]
            if all(word and fits(text, mention.start, word) for mention, word in words):
                return old, new, [(mention, word) for mention, word in words if word != mention.text]
    return None


def _turned(items: list[str], word: int) -> list[str]:
    first = word % len(items) if items else 0
    return items[first:] + items[:first]


def _swapped(mention: Mention, old: str, new: str) -> str:
    """Return what a mention becomes, or "" where that is no possible compound."""
    if mention.form == "element":
        return names.cased(mention.text, ELEMENTS[new]["common"]) if mention.formula == old else mention.text
    if mention.form == "formula":
        return _swapped_formula(mention.text, old, new)
    name = _swapped_name(mention.text, mention.formula, old, new)
    return names.cased(mention.text, name) if name else ""


@relearned
@lru_cache(maxsize=8192)
def _swapped_formula(formula: str, old: str, new: str) -> str:
    """Put `new` for `old` in a formula, with other counts where its oxidation state asks for them."""
    plain = swap(formula, old, new)
    composition = parse(formula)
    if composition is None or len(composition.elements) == 1:
        return plain if composition or _alike(old, new) else ""
    found = salt(composition.plain.partition("·")[0])
    if found is None and composition.elements.keys() == {old, "O"}:  # mixed valence: Pr6O11, Co3O4; not TiO6
        if 2 * composition.elements["O"] > max(STATES[old]) * composition.elements[old]:
            return ""
        return _styled(next(iter(ELEMENTS[new]["oxides"].split()), ""), formula)
    if found is None or old in symbols(found.cation) - {found.cation}:
        return plain if _possible(composition, old, new) and parse(plain) else ""
    other = _other_salt(found, old, new)
    if not other:
        return ""
    kept = other == swap(formula_of(found), old, new) and not composition.plain.startswith("H")
    return plain if kept and parse(plain) else _styled(other, formula)


def _other_salt(found: Salt, old: str, new: str) -> str:
    """Return the formula of the salt, oxide or hydroxide that `new` makes in the place of `old`, or ""."""
    row = ELEMENTS[new]
    if old != found.cation:
        anion = swap(found.anion, old, new)
        return formula_of(Salt(found.cation, found.state, anion)) if nomenclature.is_anion(anion, found.anion) else ""
    same = formula_of(Salt(new, found.state, found.anion))
    if found.anion == "O":
        oxides = row["oxides"].split()
        return same if same in oxides else next(iter(oxides), "")
    usual = int(row["salt_state"] or 0)
    if found.state == usual or (found.state in STATES[new] and found.anion in ELEMENTS):
        return same
    single = nomenclature.is_anion(found.anion, "Cl") or usual == 1
    return formula_of(Salt(new, usual, found.anion)) if single and 0 < usual < 4 else ""


def _alike(old: str, new: str) -> bool:
    """Say whether each has the other's commonest oxidation state; as anions, members of a group do."""
    return ELEMENTS[old]["kind"] == "nonmetal" or (STATES[old][0] in STATES[new] and STATES[new][0] in STATES[old])


def _possible(composition: Composition, old: str, new: str) -> bool:
    """Say whether `new` has the oxidation state that `old` has in a compound other than a simple salt."""
    if _alike(old, new):
        return True
    shared = [state for state in STATES[old] if state in STATES[new]]
    return any(balanced(composition.elements, {old: state}) for state in shared)


def _styled(formula: str, like: str) -> str:
    """Write the counts with subscript characters if the old formula did."""
    return formula.translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")) if re.search("[₀-₉]", like) else formula


@relearned
@lru_cache(maxsize=8192)
def _swapped_name(name: str, formula: str, old: str, new: str) -> str:
    """Change the element in a name; names such as alumina or ferric nitrate are named anew."""
    other = _swapped_formula(formula, old, new)
    words = "|".join({ELEMENTS[old][key] for key in ("name", "common", "alias")} - {""})
    changed, count = re.subn(rf"(?i)\b(?:{words})(?![a-z])", ELEMENTS[new]["common"], name)
    if count and other == swap(formula, old, new):
        return changed
    known, known_other = compound(formula), compound(other) if other else None
    if known_other is None:
        return ""
    formal = known is not None and known.iupac.lower() == name.lower() != known.name.lower()
    return known_other.iupac if formal else known_other.name


def _edit(mention: Mention, word: str, entity: str, old: str, new: str, needed: Iterable[str]) -> Edit:
    lost, brought = ELEMENTS[old]["name"], ELEMENTS[new]["name"]
    if old in needed:
        why = f"the target needs {lost} and has no {brought}, but {word} stands where {mention.text} belongs"
    else:
        why = f"{word} stands where {mention.text} belongs: {lost} is missing, and nothing else here has {brought}"
    return Edit(mention.start, mention.end, mention.text, word, KIND, entity, why)
