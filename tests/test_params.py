import json
from pathlib import Path

import numpy as np
import pytest

from helpers.params import ParameterError, Params, declared, dump, from_notebook, load

CASES = json.loads((Path(__file__).parent / "cases" / "params.json").read_text())


def read(case, tmp_path):
    if case["via"] == "command":
        name, _, value = case["input"].partition("=")
        return load(overrides={name: value})
    file = tmp_path / "run.yaml"
    file.write_text(case["input"])
    return load([file])


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_tricky_parameter_is_taken_exactly_or_refused_by_name(case, tmp_path):
    expect = case["expect"]
    allowed = [expect, expect["also_ok"]] if "also_ok" in expect else [expect]
    try:
        value = getattr(read(case, tmp_path), case["key"] or "seed")
    except ParameterError as error:
        assert any(not option["accept"] for option in allowed), error
        assert case["key"] in str(error)
        assert all(text in str(error) for text in case.get("mentions", []))
        if case["via"] == "file":
            assert "run.yaml" in str(error)
    else:
        accepted = [option["value"] for option in allowed if option["accept"]]
        assert value in accepted
        assert [type(value)] == [type(option) for option in accepted if option == value]
        assert value not in expect.get("never", [])


def test_the_message_names_file_line_and_the_nearest_name(tmp_path):
    file = tmp_path / "night.yaml"
    file.write_text("seed: 1\n\nmin_dleta: 0.5\n")
    with pytest.raises(ParameterError, match=r"night\.yaml, line 3: 'min_dleta' .* did you mean 'min_delta'\?"):
        load([file])


def test_a_look_alike_letter_is_shown_by_its_code_point():
    with pytest.raises(ParameterError, match=r"U\+0435"):
        load(overrides={"s\u0435ed": 1})


def test_later_files_win_and_overrides_win_over_files(tmp_path):
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("seed: 1\ntau: 0.25\nmin_delta: 1\n")
    second.write_text("seed: 2\ntau: 0.75\n")
    params = load([first, second], {"seed": 3})
    assert (params.seed, params.tau, params.min_delta) == (3, 0.75, 1.0)


@pytest.mark.parametrize("text", ["a,b", "a, b", "[a, b]", "['a', \"b\"]"])
def test_a_list_may_be_written_with_or_without_brackets(text):
    assert load(overrides={"judges": text}).judges == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("min_delta", np.float32(0.5), 0.5),
        ("seed", np.int64(5), 5),
        ("interactive", np.bool_(False), False),
        ("recipes", Path("runs/a"), "runs/a"),
        ("judges", ("a", "b"), ["a", "b"]),
        ("instructions", "quote\" ' \\ \n H₂O 🧪 " * 1000, "quote\" ' \\ \n H₂O 🧪 " * 1000),
    ],
)
def test_values_from_python_arrive_as_plain_values(name, value, plain):
    got = getattr(load(overrides={name: value}), name)
    assert got == plain
    assert type(got) is type(plain)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", True),
        ("seed", float("nan")),
        ("min_delta", float("inf")),
        ("judges", {"a"}),
        ("judges", ["a", "a"]),
        ("run_id", "../elsewhere"),
        ("run_id", "a/b"),
        ("run_id", ""),
        ("validation_fraction", 1.5),
        ("engine", "dask"),
        ("completions_per_instruction", 6),
        ("conditions", ["element_swap"]),
        ("seed", b"1"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(name, value):
    with pytest.raises(ParameterError, match=name):
        load(overrides={name: value})


def test_published_aliases_of_conditions_are_accepted():
    names = ["all_error_injection_5pct", "all_equivalence_rewriting_10pct"]
    assert load(overrides={"conditions": names}).conditions == names


def test_written_parameters_read_back_to_the_same_values(tmp_path):
    params = load(overrides={"seed": 2**53 + 1, "tau": 1e-05, "columns": {"recipe": "a: b"}, "run_id": "007"})
    file = tmp_path / "params.yaml"
    file.write_text(dump(params))
    assert load([file]) == params
    assert load([file]).tau == 1e-05


def test_yaml_that_could_run_code_is_refused(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("seed: !!python/object/apply:os.getpid []\n")
    with pytest.raises(ParameterError, match="tag"):
        load([file])


def test_a_notebooks_cells_give_the_names_so_a_misspelt_injected_one_is_an_error():
    cells = ["# Parameters of this notebook\nseed: int = 42\n", "# Parameters\nseed = 9\nsede = 3\n"]
    with pytest.raises(ParameterError, match="'sede' is not a parameter"):
        from_notebook({"In": cells, "seed": 9, "sede": 3})


def test_a_notebook_takes_the_injected_value_and_is_then_a_batch():
    cells = ["# Parameters of this notebook\nseed: int = 42\ninteractive: bool = True\n", "# Parameters\nseed = 9\n"]
    params = from_notebook({"In": cells, "seed": 9, "interactive": True, "later": [1]})
    assert (params.seed, params.interactive) == (9, False)


def test_a_notebook_in_jupyterlab_is_interactive():
    assert from_notebook({"In": ["# Parameters of this notebook\nseed: int = 1\n"], "seed": 1}) == Params(seed=1)


def notebook(tmp_path, *cells):
    path = tmp_path / "n.ipynb"
    made = [{"cell_type": "code", "source": text, "metadata": {"tags": ["parameters"]}} for text in cells]
    path.write_text(json.dumps({"cells": made}))
    return path


def test_a_notebook_without_one_parameters_cell_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="0 cells tagged 'parameters'"):
        declared(notebook(tmp_path))
    with pytest.raises(ParameterError, match="2 cells tagged 'parameters'"):
        declared(notebook(tmp_path, "a = 1", "b = 1"))


def test_a_default_that_is_computed_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="'out' in the parameters cell is not a literal"):
        declared(notebook(tmp_path, "seed = 0\nout = f'run_{seed}'\n"))
