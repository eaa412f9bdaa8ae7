import json
import re
from pathlib import Path

import pytest

from helpers.__main__ import main
from helpers.params import describe

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_table_of_parameters_is_the_one_that_the_command_prints(capsys):
    assert main(["parameters"]) == 0
    assert capsys.readouterr().out.strip() == describe()
    assert describe() in README


def test_every_link_leads_to_a_file():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_make_target_that_is_named_exists():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE)) <= set(targets)


@pytest.mark.parametrize("command", sorted(set(re.findall(r"[`/]plumbline +([a-z]+)\b", README))))
def test_every_command_that_is_named_exists(command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0


def test_every_figure_and_table_of_the_paper_map_is_made_by_a_notebook():
    made = set()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        source = "".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
        made |= set(re.findall(r'save_(figure|table)\(\s*"(\w+)"', source))
    for kind, name in re.findall(r"`(figure|table)s/(\w+)`", README):
        assert (kind, name) in made


@pytest.mark.parametrize("file", sorted((ROOT / "params").glob("*.yaml")), ids=lambda path: path.name)
def test_every_parameter_file_says_why_it_exists(file):
    assert file.read_text().startswith("# ")
