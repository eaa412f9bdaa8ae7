"""What a plain scalar in a parameter file means: YAML 1.2 core, where the schema decides between number and text.

PyYAML composes the nodes, with their lines; nothing is resolved before the type that is asked for is known, so that
`1e-1` is a number for a float and `1:4`, `no`, `007` or a date stay as written for a text.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import yaml

__all__ = ["Given", "ParameterError", "coerce", "read_file"]

NULLS = {"", "~", "null", "Null", "NULL"}
BOOLS = dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
MOST_DIGITS = 100
INT = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.0*)?\Z")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")


class ParameterError(ValueError):
    """A parameter, or a file of parameters, that the run cannot use; names the key, the file and the line."""


class Given(NamedTuple):
    """A value as it was given: text where it is a plain scalar, and where it stands."""

    value: Any
    where: str  # "" for Python values, else "file, line n: "
    quoted: bool = False


def read_file(path: Path) -> dict[str, Given]:
    """Read the top-level `name: value` pairs of a YAML file, scalars as written, each with file and line.

    Raises ParameterError for a file that is missing, no UTF-8, no YAML or no mapping, and for a key given twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
        for token in yaml.scan(text, Loader=yaml.BaseLoader):
            if isinstance(token, yaml.AliasToken):
                line = token.start_mark.line + 1
                raise ParameterError(f"{path}, line {line}: aliases such as *{token.value} are not supported")
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except RecursionError:
        raise ParameterError(f"{path}: is nested too deeply") from None
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path}: is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ParameterError(f"{path}, line {line}: is not YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise ParameterError(f"{path}: is not YAML ({str(error).splitlines()[0]})") from None
    if node is None:
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise ParameterError(
            f"{path}, line {node.start_mark.line + 1}: must hold 'name: value' lines, not a list or text"
        )
    return _entries(node, path)


def _entries(node: yaml.MappingNode, path: Path) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for key, value in node.value:
        where = f"{path}, line {key.start_mark.line + 1}: "
        if not isinstance(key, yaml.ScalarNode):
            raise ParameterError(f"{where}a parameter's name must be text")
        if key.value in given:
            raise ParameterError(f"{where}'{key.value}' is given twice")
        quoted = isinstance(value, yaml.ScalarNode) and value.style is not None
        given[key.value] = Given(_plain(value, where), where, quoted)
    return given


def _plain(node: yaml.Node, where: str) -> Any:
    if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.rsplit(":", 1)[1] not in {
        "str",
        "seq",
        "map",
    }:
        raise ParameterError(f"{where}the YAML tag {node.tag!r} is not supported")
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, where) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(node.value):
            raise ParameterError(f"{where}a name inside the mapping is given twice, or is no text")
        return {name: _plain(item, where) for name, (_, item) in zip(names, node.value, strict=True)}
    return node.value


def coerce(name: str, item: Given, annotation: Any) -> Any:
    """Turn what was given into the plain value that the annotation asks for, or leave it for the schema to refuse.

    >>> coerce("min_delta", Given("1e-1", ""), float), coerce("recipes", Given("1:4", ""), str)
    (0.1, '1:4')
    """
    kinds = _kinds(annotation)
    value = item.value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    value = str(value) if isinstance(value, Path) else value
    if list in kinds:
        return _coerce_list(value)
    if isinstance(value, str) and str not in kinds:
        return _from_text(name, value, item, kinds)
    if isinstance(value, float) and kinds & {int} and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and kinds == {float}:
        return float(value)
    return value


def _kinds(annotation: Any) -> set[type]:
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return _kinds(typing.get_args(annotation)[0])
    if origin is Literal:
        return {str}
    if origin in (types.UnionType, typing.Union):
        return set().union(*(_kinds(part) for part in typing.get_args(annotation)))
    return {origin or annotation}


def _coerce_list(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        return [part.strip().strip("'\"") for part in text.split(",") if part.strip()]
    return list(value) if isinstance(value, Sequence) else value


def _from_text(name: str, text: str, item: Given, kinds: set[type]) -> Any:
    if item.quoted:
        return text
    if type(None) in kinds and text in NULLS:
        return None
    if dict in kinds:
        return _mapping(name, text, item.where)
    if bool in kinds:
        return BOOLS.get(text, text)
    if int in kinds and INT.match(text) and len(text) < MOST_DIGITS:
        return int(text.partition(".")[0])
    if float in kinds and FLOAT.match(text):
        return float(text)
    return text


def _mapping(name: str, text: str, where: str) -> Any:
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        node = None
    if not isinstance(node, yaml.MappingNode):
        raise ParameterError(f"{where}'{name}' is {text!r}: give it as {{ours: theirs}}")
    return _plain(node, where)
