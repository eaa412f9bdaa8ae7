"""Compounds in a text, by formula, name or abbreviation, and the same compounds written another way.

What may be renamed stands in the checked table or follows the rules of `nomenclature`; anything else declines.
A name inside another name, a vessel ("alumina crucible"), a term ("oxygen vacancies"), a composite and a gas
mixture stay as they are. Whole names are protected spans for the other finders, locants included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from . import nomenclature
from .articles import fits
from .composition import ELEMENTS, Token, find, parse, rows
from .edits import Edit
from .learning import relearned
from .nomenclature import ABBREVIATIONS, NAMES, Compound, compound, read, same

__all__ = ["Mention", "cased", "declined", "mentions", "propose", "spans"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A compound at `text[start:end]`.

    `form` is "formula", "name", "abbreviation" or "element" (the zinc of "zinc solution"). `formula` is "" where
    the name does not say which compound it is. `twin` is the index of the mention beside it that gives the same
    compound in another form ("zinc oxide (ZnO)"), or -1; `bracketed` says that brackets or a comma part them.
    """

    start: int
    end: int
    text: str
    form: str
    formula: str
    twin: int = -1
    bracketed: bool = False


_TOKENS = rows("tokens")
_BY_NAME = {row[key]: row["symbol"] for row in ELEMENTS.values() for key in ("name", "common", "alias") if row[key]}
_PROTECTED = {row["token"] for row in _TOKENS if row["kind"] == "acronym"} | set(ABBREVIATIONS)


def _words(*kinds: str) -> str:
    return "|".join(re.escape(row["token"]) for row in _TOKENS if row["kind"] in kinds)


_KEY = re.compile(r"(?<![\w)\]-])(?:\d[\d,′']{0,12}-|[a-z],[a-z]-|[nopm]-)*[a-z][a-z0-9]+")
_ABBREVIATION = re.compile(r"(?<!\w)[A-Z][A-Za-z]*[A-Z0-9][A-Za-z0-9]*(?![\w-])")
_LOCANT = re.compile(
    r"(?<![\w-])(?:\d[\d,′']{0,12}-|[NOSP](?:,[NOSP])*-|(?:[nopmDLtsRS]|tert|sec|cis|trans|iso)-)+(?!(?:min|mol|vol)\b)"
    r"(?:[a-z]+(?:\(\d*[a-z]+\)|-\d[\d,]*-)?)*"
    r"(?:yl|ol|one|ane|ene|yne|ine|in|ide|ate|al|ole|ium|ic acid|dehyde)s?(?![\w])"
)
_GRADE = re.compile(rf"(?<![\w.])(?:{_words('grade')})(?!\w)")
_AFTER = re.compile(rf"\s+(?:{_words('vessel', 'property')})(?:e?s)?(?!\w)")
_STUFF = re.compile(rf"\s+(?:nano)?(?:{_words('form', 'stuff')})s?(?!\w)")
_SOLUTION = re.compile(rf"\s+(?:{_words('stuff')})s?(?!\w)")
_GOES_ON = re.compile(
    rf"[ -](?:{'|'.join(nomenclature.ANION_NAMES)}|\w*hydrate|ether|acid|anhydride|oxime|resin|alcohol|glycol"
    r"|amine|amide|ester|borane|glass|\w+ic acid|cyanohydrin|hydro(?:gen )?\w+ide|formaldehyde|buffer|cement"
    r"|(?:mono|di|tri)basic|red|blue|orange|violet"
    r"|(?:mono|di|tri|tetr|pent|hex|hept|oct|bis|tris|chlor|brom|fluor|iod|oxo|cyan|meta|ortho|pyro|per|thio)"
    r"\w*(?:ate|ide|ite)|\w*(?:methyl|ethyl|propyl|butyl|phenyl|vinyl|acetyl)\w*)(?!\w)"
)
_CAME_FROM = re.compile(
    rf"(?:(?:\w*(?:yl|ylene|ium|oxy)|poly|meta|ortho|per|ice|heavy|lime|chlorine|bromine|urea|phenol|melamine)[ (-]"
    rf"|(?<![a-z])(?:{nomenclature.CATION_NAMES})(?: ?\([ivx,]+\))?[ -])$"
)
# A charge or a water that the finder could not read as part of the formula before it.
_CUT_OFF = re.compile(r"[-−–+⁻⁺](?!\w)|[ .:]{1,2}(?:\d+ ?H[2₂]O|\(H[2₂]O\)\d)")
_GAS = re.compile(r"\s+(?:gas|vapou?r|fumes|atmosphere)\b")
_SPACE = re.compile(r"[\s-]")
_WRAPPED = re.compile(r"(?:cover|wrap|seal|lin|clos|protect)\w*\s+(?:\w+\s+){0,3}(?:with|in|by)\s+(?:an?\s+)?$")
_LETTER = re.compile(r"(?<![A-Za-z])[A-Za-z](?=[a-z])")
_ALONE = re.compile(r"\s*(?:,|\(|;|$|\n)")
_LISTED = re.compile(r"(?:^|\n)\s*[-*•]\s+$")
_SENTENCE = re.compile(
    r"(?:^|(?<!conc)(?<!dil)(?<!approx)(?<!\bca)(?<!\baq)(?<!i\.e)(?<!e\.g)[.!?]\s+|\n\s*(?:\d+[.)]|[-*•])\s+)$"
)
_ORGANIC = re.compile(
    r"(?!(?:in)?organic )(?:(?:\d[\d,']*-)?[a-z]{4,}ic acid"
    r"|\d[\d,']*-[a-z]{3,}(?:-\d[\d,]*-[a-z]+)*(?:ol|one|ane|ene|yne|ine|ole|ide|dehyde))(?![\w-])"
)

_STARTS: dict[str, list[str]] = {}
for _name in sorted(NAMES, key=len, reverse=True):
    _found = _KEY.match(_name)
    _STARTS.setdefault(_found.group() if _found else _name, []).append(_name)


def _edge(low: str, start: int, end: int) -> bool:
    """Say whether a name ends here as a whole word that is not part of a longer term."""
    if low[end : end + 1].isalnum() or low[end : end + 1] in ("-", "–", "_") or _GOES_ON.match(low, end):
        return False
    before = low[max(0, start - 24) : start]
    return not _CAME_FROM.search(before) and (not before.endswith(("-", "–")) or before[-2:-1] in "αβγδεθ")


def _name_at(text: str, low: str, start: int, key: str) -> Mention | None:
    """Return the longest name that starts here, standing on its own."""
    end = next((start + len(name) for name in _STARTS.get(key, ()) if _whole(low, start, name)), 0)
    if nomenclature.starts_salt(key):
        end = max(end, nomenclature.salt_end(low, start))
    water = nomenclature.WATER_WORD.match(low, end) if end else None
    end = water.end() if water else end
    if not end and key in _BY_NAME:
        return _element_at(text, low, start, start + len(key))
    if not end:
        found = _ORGANIC.match(low, start)
        end = found.end() if found and nomenclature.library(found.group()) else 0
    if not end or not _edge(low, start, end) or _ceramic_body(low, start, end) or _supply(low, start, end):
        return None
    return Mention(start, end, text[start:end], "name", read(low[start:end]) or "")


def _whole(low: str, start: int, name: str) -> bool:
    return low.startswith(name, start) and not low[start + len(name) : start + len(name) + 1].isalnum()


def _ceramic_body(low: str, start: int, end: int) -> bool:
    """Say whether a word such as alumina is left alone here: it may be what a vessel or a ball is made of."""
    known = NAMES.get(low[start:end])
    if known is None or known.role != "ceramic" or " " in low[start:end]:
        return False
    return not (_as_powder(low, start, end) or low.startswith(" (", end))


def _supply(low: str, start: int, end: int) -> bool:
    """Say whether a gas is only what something gives: a nitrogen source need not be N2."""
    known = NAMES.get(low[start:end])
    return known is not None and known.role == "gas" and known.formula.endswith("2") and bool(_SOLUTION.match(low, end))


def _element_at(text: str, low: str, start: int, end: int) -> Mention | None:
    if not _edge(low, start, end) or not _as_powder(low, start, end) or _WRAPPED.search(low, max(0, start - 60), start):
        return None
    form = "element" if _SOLUTION.match(low, end) else "name"
    return Mention(start, end, text[start:end], form, _BY_NAME[low[start:end]])


def _as_powder(low: str, start: int, end: int) -> bool:
    """Say whether a word such as alumina or titanium means the chemical here, not what a vessel is made of."""
    if _STUFF.match(low, end):
        return True
    return bool(_LISTED.search(low, max(0, start - 8), start) and _ALONE.match(low, end))


@relearned
@lru_cache(maxsize=64)
def mentions(text: str) -> tuple[Mention, ...]:
    """Return the compounds of a text from left to right; they never overlap.

    >>> [(m.text, m.form, m.twin) for m in mentions("Mix zinc oxide (ZnO) with water in an alumina crucible.")]
    [('zinc oxide', 'name', 1), ('ZnO', 'formula', 0), ('water', 'name', -1)]
    """
    low = text.lower()
    formulas = [
        Mention(token.start, token.end, token.text, "formula", token.text)
        for token in find(text)
        if not _fragment(token) and not _AFTER.match(low, token.end) and not _CUT_OFF.match(text, token.end)
    ]
    taken = [(token.start, token.end) for token in find(text)]
    named = _names(text, low) if len(low) == len(text) else []
    free = [name for name in named if not any(start < name.end and name.start < end for start, end in taken)]
    return tuple(_settle(_pair(text, sorted(formulas + free, key=lambda mention: mention.start))))


def _fragment(token: Token) -> bool:
    """Say whether this is an ion and no compound: SO4²⁻, and the SO4 of "SO4 groups"."""
    composition = token.composition
    return composition is not None and bool(composition.charge or nomenclature.is_ion(composition.plain))


def _names(text: str, low: str) -> list[Mention]:
    found: list[Mention] = []
    position = 0
    for match in _KEY.finditer(low):
        start = match.start()
        if start < position:
            continue
        short = _ABBREVIATION.match(text, start)
        if short and short.group() in ABBREVIATIONS:
            mention = Mention(start, short.end(), short.group(), "abbreviation", ABBREVIATIONS[short.group()].formula)
        else:
            named = _name_at(text, low, start, match.group())
            if named is None:
                continue
            mention = named
        position = mention.end
        if not _AFTER.match(low, mention.end):
            found.append(mention)
    return found


def _pair(text: str, found: list[Mention]) -> list[Mention]:
    """Tie a name to the formula or abbreviation beside it, which also says what an unclear name means."""
    for here in range(len(found) - 1):
        one, two = found[here], found[here + 1]
        between, after = text[one.end : two.start], text[two.end : two.end + 1]
        bracketed = (between.strip(" *_") in ("(", "[") and after in (")", "]", ",", ";")) or between == ", "
        if one.form == two.form or not (bracketed or between == " "):
            continue
        formula = _agree(one, two)
        if formula and one.twin >= 0:
            found[here + 1] = replace(two, twin=here) if two.form == "abbreviation" else two
        elif formula:
            found[here] = replace(one, formula=formula, twin=here + 1, bracketed=bracketed)
            found[here + 1] = replace(two, formula=formula, twin=here, bracketed=bracketed)
    return found


def _settle(found: list[Mention]) -> list[Mention]:
    """Let "iron nitrate" mean the one iron nitrate that the text gives in full."""
    dry = {nomenclature.dry(mention.formula) for mention in found if mention.formula}
    for here, mention in enumerate(found):
        if mention.form == "name" and not mention.formula:
            said = nomenclature.symbols_named(mention.text)
            fits = [formula for formula in dry if said and (known := parse(formula)) and known.elements.keys() == said]
            found[here] = replace(mention, formula=fits[0] if len(fits) == 1 else "")
    return found


def _agree(one: Mention, two: Mention) -> str:
    """Return the formula that two neighbours share, or ""; a formula settles what a name leaves open."""
    named, written = (one, two) if two.form == "formula" else (two, one)
    if named.formula and written.formula and same(named.formula, written.formula):
        return written.formula if compound(written.formula) else named.formula
    composition = parse(written.formula)
    if written.form != "formula" or composition is None:
        return ""
    said = nomenclature.symbols_named(named.text)
    return written.formula if said and said <= composition.elements.keys() else ""


def spans(text: str) -> list[tuple[int, int]]:
    """Return where names stand that other finders must not cut into: DMF, P123, N,N-dimethylformamide.

    >>> [text[a:b] for text in ["5 mL N,N-dimethylformamide, 2,3-butanediol, PVP"] for a, b in spans(text)]
    ['N,N-dimethylformamide', '2,3-butanediol', 'PVP']
    """
    found = {(mention.start, mention.end) for mention in mentions(text) if mention.form != "formula"}
    found |= {match.span() for match in _LOCANT.finditer(text)}
    found |= {match.span() for match in _ABBREVIATION.finditer(text) if match.group() in _PROTECTED}
    found |= {match.span() for match in _GRADE.finditer(text)}
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def propose(text: str, to: str, *, seed: int, sample_id: str, target: str = "") -> list[Edit]:
    """Return an edit for every compound that can be written as `to`: "formula", "name" or "iupac".

    Nothing is drawn: seed, sample_id and target are taken so that all kinds are called alike.

    >>> [(edit.old, edit.new) for edit in propose("Add CuSO4·5H2O to water.", "iupac", seed=0, sample_id="a")]
    [('CuSO4·5H2O', 'copper(II) sulfate pentahydrate'), ('water', 'oxidane')]
    """
    found = mentions(text)
    edits = []
    offers = [_offer(text, mention, found, to) for mention in found]
    refused = {here for here, (_, new) in enumerate(offers) if new and not fits(text, found[here].start, new)}
    for here, (mention, (known, new)) in enumerate(zip(found, offers, strict=True)):
        if known and new and new != mention.text and not {here, mention.twin} & refused:
            why = f"{new} is the same compound as {mention.text}: composition, water and oxidation state are kept"
            edits.append(Edit(mention.start, mention.end, mention.text, new, f"to_{to}", known.formula, why))
    return edits


def _offer(text: str, mention: Mention, found: tuple[Mention, ...], to: str) -> tuple[Compound | None, str]:
    if mention.formula:
        known = compound(mention.formula)
    else:
        known = nomenclature.library(mention.text) if to == "iupac" else None
    return known, _rewritten(text, mention, found, known, to) if known else ""


def _rewritten(text: str, mention: Mention, found: tuple[Mention, ...], known: Compound, to: str) -> str:
    """Return the other form of a mention, or "" where it stays."""
    twin = found[mention.twin] if mention.twin >= 0 else None
    if mention.form == "element" or (twin and mention.form == "abbreviation"):
        return ""
    wanted = {"formula": known.formula, "name": known.name, "iupac": known.iupac}[to]
    if wanted.endswith(" acid") and (_GAS.match(text, mention.end) or mention.text.lower().startswith("hydrogen ")):
        return ""  # hydrogen chloride is hydrochloric acid only in water
    if twin and {mention.form, twin.form} == {"name", "formula"}:
        return _in_pair(text, mention, twin, wanted, to)
    if to == "formula":
        return "" if mention.form == "formula" or _isomers(wanted) else wanted
    if mention.form == "formula":
        return "" if _part_of_mixture(text, mention) or _isomers(mention.text) else _cased(text, mention, wanted)
    if mention.form == "name" and not _renames(mention.text, known, to):
        return ""
    return _cased(text, mention, wanted)


def _in_pair(text: str, mention: Mention, twin: Mention, wanted: str, to: str) -> str:
    """Rewrite "zinc oxide (ZnO)": the form asked for comes first, and nothing is said twice."""
    leads = mention.start < twin.start
    formula_leads = (mention.form == "formula") == leads
    if formula_leads == (to == "formula"):
        unnamed = mention.form == "name" and to != "formula" and _renames(mention.text, compound(mention.formula), to)
        return _cased(text, mention, wanted) if unnamed else ""
    if not mention.bracketed:
        return ""
    return twin.text if mention.form == "name" or to == "formula" else _cased(text, mention, wanted)


def _renames(name: str, known: Compound | None, to: str) -> bool:
    """Say whether a name is not yet of the kind asked for; a synonym in use is a common name already."""
    wanted = "" if known is None else known.iupac if to == "iupac" else known.name
    if known is None or _SPACE.sub("", name.lower()) == _SPACE.sub("", wanted.lower()):
        return False
    if to == "iupac":
        return True
    return name.lower() == known.iupac.lower() and not nomenclature.leaves_state_open(known.name)


def _isomers(formula: str) -> bool:
    """Say whether a molecular formula, such as C4H8O, would leave open which isomer is meant."""
    return bool(re.fullmatch(r"C\d+H\d+(?:[A-Z][a-z]?\d*)*", formula)) and not re.search("H.*H", formula)


def _part_of_mixture(text: str, mention: Mention) -> bool:
    """Say whether a formula is bound to its neighbours: 2BaCO3, 5% H2/95% Ar."""
    before, after = text[max(0, mention.start - 1) : mention.start], text[mention.end : mention.end + 1]
    mixed = after == ":" and text[mention.end + 1 : mention.end + 2].isalpha()
    return mixed or bool({"/", "@"} & {before, after}) or before == ":" or before.isdigit()


def _cased(text: str, mention: Mention, name: str) -> str:
    if mention.form == "name":
        return cased(mention.text, name)
    begins = _SENTENCE.search(text, max(0, mention.start - 12), mention.start)
    listed = _LISTED.search(text, max(0, mention.start - 8), mention.start)
    return cased("Aa" if begins and not listed else "a", name)


def cased(like: str, name: str) -> str:
    """Start a name with a capital if the other name does; locants are passed over.

    >>> cased("Zinc oxide", "cadmium oxide"), cased("N,N-dimethylformamide", "N,N-dimethylmethanamide")
    ('Cadmium oxide', 'N,N-dimethylmethanamide')
    """
    old, new = _LETTER.search(like), _LETTER.search(name)
    if old is None or new is None or not old.group().isupper():
        return name
    return name[: new.start()] + new.group().upper() + name[new.end() :]


def declined(text: str) -> tuple[str, ...]:
    """Return the compounds that are seen but cannot be renamed, for the count of what was left alone."""
    return tuple(m.text for m in mentions(text) if m.form != "element" and not (m.formula and compound(m.formula)))
