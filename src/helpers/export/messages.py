"""Texts as a trainer takes them: lists of role and content in Arrow, or the same lists written as JSON."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from helpers.pairing.texts import same_text, utf8

__all__ = ["MESSAGES", "Distinct", "as_json", "as_messages", "equal_answers"]

MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
Distinct = tuple[pa.Array, npt.NDArray[np.int64]]


def equal_answers(chosen: Distinct, rejected: Distinct) -> npt.NDArray[np.bool_]:
    """Whether chosen and rejected say the same; texts whose beginnings differ are not compared any further."""
    heads = []
    for values, back in (chosen, rejected):
        start = pc.utf8_slice_codeunits(pc.utf8_ltrim_whitespace(pc.utf8_slice_codeunits(values, 0, 128)), 0, 64)
        head = pc.utf8_slice_codeunits(pc.utf8_normalize(start, form="NFC"), 0, 20)
        heads.append(pc.utf8_trim_whitespace(head).take(pa.array(back)))
    equal: npt.NDArray[np.bool_] = pc.equal(*heads).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(equal):
        equal[row] = same_text(*(values[back[row]].as_py() for values, back in (chosen, rejected)))
    return equal


def as_messages(contents: pa.Array, system: str, role: str) -> pa.Array:
    """Return lists of role and content: the text, after the system message where there is one."""
    width = 2 if system else 1
    places = np.zeros((len(contents), width), dtype=np.int64)
    places[:, -1] = np.arange(1, len(contents) + 1)
    texts = pa.concat_arrays([pa.array([system], contents.type), contents]).take(pa.array(places.ravel()))
    roles = pa.array(["system", role]).take(pa.array(np.tile([0, 1][-width:], len(contents))))
    messages = pa.StructArray.from_arrays([roles, texts.cast(pa.string())], fields=list(MESSAGES.value_type))
    starts = pa.array(np.arange(len(contents) + 1, dtype=np.int32) * width)
    return pa.ListArray.from_arrays(starts, messages, type=MESSAGES)


def as_json(contents: pa.Array, system: str, role: str) -> pa.Array:
    """Return the same lists as `json.dumps(messages, ensure_ascii=False)` writes them."""
    before = json.dumps([{"role": "system", "content": system}], ensure_ascii=False)[:-1] + ", " if system else "["
    first, last, nothing = (
        pa.scalar(part, contents.type) for part in (f'{before}{{"role": "{role}", "content": "', '"}]', "")
    )
    return pc.binary_join_element_wise(first, _escaped(contents), last, nothing).cast(pa.string())


def _escaped(texts: pa.Array) -> pa.Array:
    data = np.frombuffer(utf8(texts)[0], np.uint8)
    found = {plain: np.count_nonzero(data == ord(plain)) for plain in '\\"\n\r\t'}
    if np.count_nonzero(data < 32) > found["\n"] + found["\r"] + found["\t"]:
        return pa.array([json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.to_pylist()], texts.type)
    for plain in (plain for plain, count in found.items() if count):
        texts = pc.replace_substring(texts, plain, json.dumps(plain)[1:-1])
    return texts
