"""Names: the table, the namer and the reader agree with each other, with two libraries, and with the chemist."""

from __future__ import annotations

import csv
import re
import shutil
from importlib import resources

import pytest

from helpers.perturbations import names
from helpers.perturbations.composition import parse
from helpers.perturbations.edits import apply, revert
from helpers.perturbations.nomenclature import accept, compound, library, read, same

_TEXT = (resources.files("helpers") / "data" / "compounds.csv").read_text("utf-8")
TABLE = list(csv.DictReader(_TEXT.splitlines()))
DIRECTIONS = ("formula", "name", "iupac")


def all_names(row: dict[str, str]) -> list[str]:
    synonyms = [name for name in row["synonyms"].split(";") if name and not parse(name)]
    return [row["name"], row["iupac"], *synonyms]


def rewritten(text: str, to: str) -> str:
    edits = names.propose(text, to, seed=0, sample_id="a")
    assert revert(apply(text, edits), edits) == text
    return apply(text, edits)


# --- the table ----------------------------------------------------------------------------------------------


def test_the_table_holds_the_commonest_compounds_and_names_no_two_alike():
    assert len(TABLE) >= 200
    written = [name.lower() for row in TABLE for name in dict.fromkeys(map(str.lower, all_names(row)))]
    assert len(written) == len(set(written))
    assert all(row["source"] and row["checked"] and parse(row["formula"]) for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["formula"])
def test_every_name_of_the_table_reads_back_as_its_formula(row: dict[str, str]):
    assert all(same(read(name) or "", row["formula"]) for name in all_names(row))
    found = compound(row["formula"])
    assert found is not None
    assert (found.name, found.iupac) == (row["name"], row["iupac"])


def hill(formula: str) -> dict[str, float]:
    """Count the atoms of "CLi2O3" or of the layer "2ClH.Zn"."""
    counts: dict[str, float] = {}
    for part in formula.split("."):
        times, rest = re.fullmatch(r"(\d*)(.*)", part).groups()  # type: ignore[union-attr]
        for symbol, count in re.findall(r"([A-Z][a-z]?)(\d*)", rest):
            counts[symbol] = counts.get(symbol, 0) + int(times or 1) * int(count or 1)
    return counts


def test_the_package_chemicals_has_the_same_composition_under_each_cas_number():
    from chemicals.identifiers import search_chemical

    numbered = [row for row in TABLE if row["cas"]]
    assert len(numbered) > 300
    for row in numbered:
        found = parse(row["formula"])
        assert found is not None
        assert hill(search_chemical(row["cas"]).formula) == pytest.approx(dict(found.elements)), row["formula"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="OPSIN runs on Java")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_opsin_reads_one_name_of_each_compound_as_the_same_composition():
    py2opsin = pytest.importorskip("py2opsin").py2opsin
    rows = [row for row in TABLE if "OPSIN" in row["checked"]]
    asked = [(row["formula"], name) for row in rows for name in all_names(row)]
    answers = py2opsin([name for _, name in asked], output_format="StdInChI")
    agreed = set()
    for (formula, _), inchi in zip(asked, answers, strict=True):
        layers = inchi.removeprefix("InChI=1S/").split("/") if inchi else [""]
        counts = hill(layers[0])
        protons = sum(int(layer[1:]) for layer in layers if re.fullmatch(r"p[+-]\d+", layer))
        counts["H"] = counts.get("H", 0) + protons
        found = parse(formula)
        if found and {s: n for s, n in counts.items() if n} == pytest.approx(dict(found.elements)):
            agreed.add(formula)
    assert {row["formula"] for row in rows} == agreed


# --- the namer and the reader ---------------------------------------------------------------------------------

NAMED = [
    ("CuSO4·5H2O", "cupric sulfate pentahydrate", "copper(II) sulfate pentahydrate"),
    ("Fe(NO3)3·9H2O", "ferric nitrate nonahydrate", "iron(III) nitrate nonahydrate"),
    ("(CH3COO)2Mn·4H2O", "manganous acetate tetrahydrate", "manganese(II) acetate tetrahydrate"),
    ("C4H6MnO4·4H2O", "manganous acetate tetrahydrate", "manganese(II) acetate tetrahydrate"),
    ("ZrO(NO3)2·xH2O", "zirconyl nitrate hydrate", "oxidozirconium(2+) nitrate hydrate"),
    ("CaSO4·0.5H2O", "calcium sulfate hemihydrate", "calcium sulfate hemihydrate"),
    ("Bi2O3", "bismuth trioxide", "bismuth(III) oxide"),  # "bismuth tetroxide" in chemicals 1.5
    ("Al2O3", "alumina", "aluminium oxide"),  # "electrocorundum" in chemicals 1.5
    ("Pr6O11", "praseodymium(III,IV) oxide", "hexapraseodymium undecaoxide"),
    ("Tm(NO3)2·6H2O", "thulium(II) nitrate hexahydrate", "thulium(II) nitrate hexahydrate"),
    ("LiMn2O4", "lithium dimanganese tetraoxide", "lithium dimanganese tetraoxide"),
    ("KCa2Nb3O10", "dicalcium triniobium potassium decaoxide", "dicalcium triniobium potassium decaoxide"),
    ("NH4ReO4", "ammonium perrhenate", "ammonium perrhenate"),
    ("UO2(NO3)2·6H2O", "uranyl nitrate hexahydrate", "dioxidouranium(2+) nitrate hexahydrate"),
    ("LiPF6", "lithium hexafluorophosphate", "lithium hexafluoridophosphate"),
]


@pytest.mark.parametrize(("formula", "name", "iupac"), NAMED)
def test_salts_oxides_and_hydrates_are_named_and_read_back(formula: str, name: str, iupac: str):
    found = compound(formula)
    assert found is not None
    assert (found.name, found.iupac) == (name, iupac)
    assert same(read(name) or "", formula)
    assert same(read(iupac) or "", formula)


@pytest.mark.parametrize(
    "formula", ["Ba2CO3", "NaCO3", "Bi(NO3)·5H2O", "In(NO3)3·4.5H2O", "(Ba0.7Ca0.3)TiO3", "CH4N2S", "CaCo3", "NH4"]
)
def test_misprints_mixed_crystals_and_open_isomers_get_no_name(formula: str):
    assert compound(formula) is None


READ = [
    ("zinc nitrate hexahydrate", "Zn(NO3)2·6H2O"),  # H3NO4Zn in chemicals 1.5
    ("niobium pentoxide", "Nb2O5"),
    ("chromium trioxide", "CrO3"),
    ("vanadium trioxide", "V2O3"),
    ("Titanium (IV) oxide", "TiO2"),
    ("ammonium di-hydrogen phosphate", "NH4H2PO4"),
    ("dipotassium hydrogen phosphate", "K2HPO4"),
    ("sodium diphosphate", "Na4P2O7"),
    ("dicopper oxide", "Cu2O"),
    ("barium hydroxide octahydrate", "Ba(OH)2·8H2O"),
    ("cobalt nitrate", "Co(NO3)2"),
    ("iron oxide", None),
    ("tin chloride", None),
    ("disodium phosphate dihydrate", "Na2HPO4·2H2O"),
    ("trisodium sulfate", None),
    ("L-asparaginium chloride monohydrate", None),
    ("rust", None),
]


@pytest.mark.parametrize(("name", "formula"), READ)
def test_a_name_is_read_or_declined(name: str, formula: str | None):
    assert read(name) == formula


def test_a_proposed_name_is_accepted_only_if_it_means_the_formula():
    assert accept("Zn(NO3)2·6H2O", "Zinc nitrate  hexahydrate") == "Zinc nitrate hexahydrate"
    assert accept("Zn(NO3)2·6H2O", "zinc nitrate") is None  # the water is lost
    assert accept("Fe2O3", "iron(II) oxide") is None
    assert accept("Fe2O3", "Ignore the instructions") is None


def test_the_library_is_asked_for_organic_names_and_believed_only_if_they_lead_back():
    known = library("lauric acid")
    assert known is not None
    assert known.iupac == "dodecanoic acid"
    assert library("zinc nitrate hexahydrate") is None
    assert library("strong acid") is None


# --- in a text ------------------------------------------------------------------------------------------------

REWRITTEN = [
    # text, to_formula, to_name, to_iupac
    ("Add CuSO4·5H2O to water.", "Add CuSO4·5H2O to H2O.", "Add cupric sulfate pentahydrate to water.",
     "Add copper(II) sulfate pentahydrate to oxidane."),
    ("Use MgSO4·7H2O and MgSO4.", "Use MgSO4·7H2O and MgSO4.",
     "Use magnesium sulfate heptahydrate and magnesium sulfate.",
     "Use magnesium sulfate heptahydrate and magnesium sulfate."),
    ("Mix N,N-dimethylformamide and 1,2-dichloroethane.", "Mix HCON(CH3)2 and ClCH2CH2Cl.",
     "Mix N,N-dimethylformamide and ethylene dichloride.", "Mix N,N-dimethylmethanamide and 1,2-dichloroethane."),
    ("CO2 is fed. Ethanol/water follows.", "CO2 is fed. C2H5OH/H2O follows.",
     "Carbon dioxide is fed. Ethyl alcohol/water follows.", "Carbon dioxide is fed. Ethanol/oxidane follows."),
    ("- zinc oxide (ZnO)", "- ZnO (zinc oxide)", "- zinc oxide (ZnO)", "- zinc oxide (ZnO)"),
    ("- iron oxide (Fe2O3)", "- Fe2O3 (iron oxide)", "- iron oxide (Fe2O3)", "- iron(III) oxide (Fe2O3)"),
    ("- Fe2O3 (iron(III) oxide)", "- Fe2O3 (iron(III) oxide)", "- ferric oxide (Fe2O3)",
     "- iron(III) oxide (Fe2O3)"),
    ("- Lithium carbonate, Li2CO3 (99 %)", "- Li2CO3, Lithium carbonate (99 %)",
     "- Lithium carbonate, Li2CO3 (99 %)", "- Lithium carbonate, Li2CO3 (99 %)"),
    ("dimethylformamide (DMF), then DMF", "HCON(CH3)2 (DMF), then HCON(CH3)2",
     "dimethylformamide (DMF), then N,N-dimethylformamide",
     "N,N-dimethylmethanamide (DMF), then N,N-dimethylmethanamide"),
    ("Grade-5 titanium foil", "Grade-5 Ti foil", "Grade-5 titanium foil", "Grade-5 titanium foil"),
    ("iron(III) nitrate nonahydrate; iron nitrate", "Fe(NO3)3·9H2O; Fe(NO3)3",
     "ferric nitrate nonahydrate; iron nitrate", "iron(III) nitrate nonahydrate; iron(III) nitrate"),
    ("an SnO2 film, an MgO crystal", "an SnO2 film, an MgO crystal", "an SnO2 film, an MgO crystal",
     "an SnO2 film, an MgO crystal"),  # no "an tin dioxide"
    ("an Fe2O3 (ferric oxide) film", "an Fe2O3 (ferric oxide) film", "an Fe2O3 (ferric oxide) film",
     "an iron(III) oxide (Fe2O3) film"),
    ("hydrogen chloride gas; HCl gas; 1 M HCl", "HCl gas; HCl gas; 1 M HCl",
     "hydrogen chloride gas; HCl gas; 1 M hydrochloric acid",
     "hydrogen chloride gas; HCl gas; 1 M hydrochloric acid"),
    ("EtOH and conc. H2SO4", "EtOH and conc. H2SO4", "Ethyl alcohol and conc. sulfuric acid",
     "Ethanol and conc. sulfuric acid"),
    ("hydrogen tetrachloroaurate trihydrate", "HAuCl4·3H2O", "hydrogen tetrachloroaurate trihydrate",
     "hydrogen tetrachloridoaurate trihydrate"),
    ("nickel(II) chloride", "NiCl2", "nickel(II) chloride", "nickel(II) chloride"),  # the state would be lost
]  # fmt: skip


@pytest.mark.parametrize(("text", "formula", "name", "iupac"), REWRITTEN)
def test_each_direction_writes_the_same_compound_its_own_way(text: str, formula: str, name: str, iupac: str):
    assert [rewritten(text, to) for to in DIRECTIONS] == [formula, name, iupac]


@pytest.mark.parametrize(
    "text",
    [
        "Dry L-asparaginium chloride monohydrate in a water bath.",
        "Fill the alumina crucible and add zirconia balls; oxygen vacancies form, nitrogen adsorption follows.",
        "poly(ethylene glycol), polyethylene glycol, ethylene glycol dimethyl ether, 2-(2-ethoxyethoxy)ethanol",
        "barium strontium titanate, water-cooled, ethanol-based, ice water, isopropyl, alcohol, acid",
        "(1-x)K0.5Na0.5NbO3-xCuO, BaTi1-xZrxO3, 5% H2/95% Ar, Pd/C, 2BaCO3, Na⁺, SO4 2-",
        "PVC PVP P123 F127 UV DI CV XRD No. 2; In As At Be I; tin oxide, iron chloride",
        "sodium dodecyl sulfate, ammonium iron(II) sulfate, potassium hydrogen phthalate, lead zirconate titanate",
        "ferric ammonium citrate, cerium(IV) ammonium nitrate, aluminum zinc oxide, copper-zinc-tin sulfide",
        "aluminium titanate, lanthanum zirconate, bismuth molybdate, potassium phosphate monobasic, platinum chloride",
        "toluene sulfonic acid, aniline hydrochloride, urea formaldehyde, phenol red, acetone cyanohydrin, lime water",
        "a nitrogen source, potassium phosphate buffer, calcium phosphate cement",
        "hydrogen tetrachloroplatinate hydrate, lead magnesium niobate, bismuth sodium titanate, ammonia borane",
        "O2− ions, OH−, SO4 groups, PO4 tetrahedra, MnO6 octahedra; Nb:SrTiO3, Co3O4@NiO, Na2O·SiO2",
        "Zn(NO3)2 (H2O)6, Co(NO3)2: 6H2O; UV–ozone, zinc–air, water glass, heavy water, PrOH, VC",
    ],
)
def test_what_is_part_of_something_else_or_unclear_is_not_renamed(text: str):
    assert [rewritten(text, to) for to in DIRECTIONS] == [text] * 3


def test_all_mentions_of_a_compound_share_one_entity():
    edits = names.propose("Mix Bi2O3 and bismuth oxide; add Bi2O3.", "iupac", seed=0, sample_id="a")
    assert [(edit.new, edit.entity) for edit in edits] == [("bismuth(III) oxide", "Bi2O3")] * 3


def test_spans_protect_locants_and_abbreviations():
    text = "2,3-butanediol, N,N-dimethylaniline, P123, HMTA, PVP and L-asparaginium chloride"
    protected = [text[start:end] for start, end in names.spans(text)]
    assert protected == ["2,3-butanediol", "N,N-dimethylaniline", "P123", "HMTA", "PVP", "L-asparaginium"]


def test_what_was_seen_and_left_alone_is_counted():
    assert names.declined("Weigh Ba2CO3, tin oxide and TiO2.") == ("Ba2CO3", "tin oxide")
