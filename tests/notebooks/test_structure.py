"""The notebooks as texts: what a reader may rely on before anything runs."""

import ast
import itertools
import json
import re
from pathlib import Path

import papermill
import pytest

from helpers.params import Params, declared
from helpers.runs import STAGES

ROOT = Path(__file__).parents[2]
NOTEBOOKS = [ROOT / "notebooks" / f"{stage}.ipynb" for stage in STAGES]
pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=STAGES)


def cells(path, kind):
    found = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def test_the_defaults_in_the_parameters_cell_are_those_of_the_schema(path):
    known = Params().model_dump()
    assert declared(path) == {name: known[name] for name in declared(path)}


def test_papermill_sees_the_same_parameters_as_we_do(path):
    assert set(papermill.inspect_notebook(path)) == set(declared(path))


def test_every_parameter_says_what_it_is(path):
    (source,) = [text for text in cells(path, "code") if text.startswith("# Parameters of this notebook")]
    for line in source.splitlines()[1:]:
        assert re.fullmatch(r"\w+: [\w\[\]]+ = .+  # \S.*", line), line


def test_the_values_are_checked_right_after_the_parameters(path):
    sources = cells(path, "code")
    place = next(n for n, text in enumerate(sources) if text.startswith("# Parameters of this notebook"))
    assert place == 1
    assert sources[place + 1].startswith("settings = params.from_notebook(globals())")


def test_nothing_is_defined_and_no_cell_is_long(path):
    for source in cells(path, "code"):
        tree = ast.parse(source)
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda)]
        if not source.startswith("# Parameters"):
            assert len([line for line in source.splitlines() if line.strip()]) <= 15, source


def test_it_is_committed_as_source(path):
    notebook = json.loads(path.read_text())
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")
        assert "papermill" not in cell["metadata"]


def test_it_opens_with_its_question_and_leads_to_its_neighbours(path):
    title = cells(path, "markdown")[0]
    place = NOTEBOOKS.index(path)
    assert title.startswith(f"# {place + 1}. ")
    for word in ("**Question.**", "**Reads**", "**Writes**"):
        assert word in title
    for other in NOTEBOOKS[max(0, place - 1) : place] + NOTEBOOKS[place + 1 : place + 2]:
        assert f"({other.name})" in title


def test_there_is_one_title_and_a_sentence_before_every_code_cell(path):
    found = json.loads(path.read_text())["cells"]
    assert sum("".join(cell["source"]).startswith("# ") for cell in found if cell["cell_type"] == "markdown") == 1
    for before, cell in itertools.pairwise(found[2:]):
        if cell["cell_type"] == "code":
            assert before["cell_type"] == "markdown", "".join(cell["source"])


def test_no_text_of_a_model_can_become_markup(path):
    source = "\n".join(cells(path, "code"))
    for route in ("Markdown(", "HTML(", ".style", "desc="):
        assert route not in source


def test_no_machine_shows(path):
    assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users)/", path.read_text())
