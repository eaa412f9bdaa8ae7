import json
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_environment_yml_holds_what_pyproject_says_and_nothing_that_drifts():
    python, pip, inner = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert python == f"python{PROJECT['requires-python']}"
    assert pip == "pip"
    assert len(inner["pip"]) == 1
    extras = re.fullmatch(r"-e \.\[(.+)\]", inner["pip"][0]).group(1).split(",")
    # A trainer brings gigabytes and is installed by those who train.
    assert set(extras) == set(PROJECT["optional-dependencies"]) - {"train"}


def test_plain_make_lists_every_target_in_one_line_each():
    makefile = (ROOT / "Makefile").read_text()
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    targets = set(re.search(r"\.PHONY: (.+)", makefile).group(1).split())
    assert {line.split()[0] for line in listed} == targets
    assert all(len(line.split()) > 2 for line in listed)


def test_the_workspace_file_opens_the_first_notebook_and_its_table_of_contents():
    layout = json.loads((ROOT / "notebooks" / "plumbline.jupyterlab-workspace").read_text())["data"]
    opened = layout["layout-restorer:data"]["main"]["current"].removeprefix("notebook:")
    assert (ROOT / "notebooks" / opened).exists()
    assert layout["layout-restorer:data"]["left"]["current"] == "@jupyterlab/toc:plugin"


def requirements(name, extra, seen):
    """Every distribution that an installed one needs, itself included."""
    if name in seen:
        return
    seen.add(name)
    for text in metadata.requires(name) or []:
        needed = Requirement(text)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            requirements(needed.name.lower(), "", seen)


def test_nothing_that_is_needed_at_run_time_is_under_the_gpl():
    seen = set()
    for extra in ("", "lab", "local"):
        requirements("plumbline", extra, seen)
        seen.discard("plumbline")
    for name in seen:
        about = metadata.metadata(name)
        stated = " ".join([about.get("License-Expression") or "", *(about.get_all("Classifier") or [])])
        assert not re.search(r"(?<!L)\bA?GPL|(?<!Lesser )General Public", stated), (name, stated)
