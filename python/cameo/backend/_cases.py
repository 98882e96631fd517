# Cases of the training conformance suite, as they lie in cases/*.json.
# SPDX-License-Identifier: Apache-2.0
"""Models, data and expected numbers of cameo.backend.training_tests.

A file of cases has these keys:

    format      1
    file        its name, which begins the keys of all made-up numbers
    models      by name: "text", ONNX text without weights; "weights", by initializer: [type, shape, low, high] made
                up, or [type, shape, [numbers]]; "training", a list of entries of training info: "algorithm" and
                "initialization" as ONNX text, "update_binding" and "initialization_binding" as objects
    inputs      by name: [type, shape, low, high] made up for each batch, or [type, shape, [numbers], [numbers], ..] for
                the first batch, the second, ..
    cases       a list: "name"; "model"; "feeds", names of inputs; "loss", "optimizer", "options" (none: the model
                brings its training); "initialize", whether that is called first; "losses", expected of each step;
                "evaluated", expected of one more batch; "weights", expected afterwards by initializer, row-major;
                "tolerance"

Made-up numbers come from SHA-256: the 32 bytes of the digest of "KEY/0" (ASCII), then of "KEY/1", .. are eight unsigned
32-bit numbers each, high byte first; u is such a number divided by 2^32. A real number is low + u * (high - low) in double
precision, rounded once to the type; an integer is low + floor(u * (high - low)). KEY is "FILE/MODEL/INITIALIZER" for
weights and "FILE/INPUT/STEP" for the batch of a step, counted from 0.
"""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser

FOLDER = pathlib.Path(__file__).parent / "cases"
TYPES = {"float": numpy.float32, "double": numpy.float64, "int64": numpy.int64, "bool": numpy.bool_}


def fractions(key: str, count: int) -> Iterator[float]:
    """count numbers from 0 up to but not including 1, by the rule above."""
    for block in range(math.ceil(count / 8)):
        words = struct.unpack(">8I", hashlib.sha256(f"{key}/{block}".encode("ascii")).digest())
        yield from (word / 2**32 for word in words[:count - 8 * block])


def make(key: str, spec: Sequence[Any], step: int = 0) -> numpy.ndarray[Any, Any]:
    """An array by its row in the file."""
    kind, shape, *rest = spec
    if isinstance(rest[0], list):
        return numpy.array(rest[step % len(rest)], TYPES[kind]).reshape(shape)
    low, high = rest
    numbers = [low + u * (high - low) for u in fractions(key, math.prod(shape))]
    if kind == "int64":
        numbers = [math.floor(number) for number in numbers]
    return numpy.array(numbers, TYPES[kind]).reshape(shape)


class Case:
    """One case: what a backend is given, and what is expected of it."""

    def __init__(self, file: dict[str, Any], row: dict[str, Any]) -> None:
        self._file, self._row = file, row
        self.name: str = row["name"]
        self.loss: str | None = row.get("loss")
        self.optimizer: str | None = row.get("optimizer")
        self.options: dict[str, Any] = row.get("options", {})
        self.initialize: bool = row.get("initialize", False)
        self.losses: list[float] = row["losses"]
        self.evaluated: float = row["evaluated"]
        self.weights: dict[str, list[float]] = row["weights"]
        self.tolerance: float = row["tolerance"]

    def __repr__(self) -> str:
        return f"<Case {self.name}>"

    def model(self) -> onnx.ModelProto:
        """The model with its first weights."""
        key, row = f"{self._file['file']}/{self._row['model']}", self._file["models"][self._row["model"]]
        model = onnx.parser.parse_model(row["text"])
        model.graph.initializer.extend(onnx.numpy_helper.from_array(make(f"{key}/{name}", spec), name)
                                       for name, spec in row["weights"].items())
        for entry in row.get("training", []):
            model.training_info.append(_training_info(entry))
        return model

    def batch(self, step: int) -> dict[str, numpy.ndarray[Any, Any]]:
        """What step number `step` is fed."""
        key, inputs = self._file["file"], self._file["inputs"]
        return {name: make(f"{key}/{name}/{step}", inputs[name], step) for name in self._row["feeds"]}


def _training_info(entry: dict[str, Any]) -> onnx.TrainingInfoProto:
    info = onnx.TrainingInfoProto()
    for field in ("initialization", "algorithm"):
        if field in entry:
            getattr(info, field).CopyFrom(onnx.parser.parse_graph(entry[field]))
    for field in ("initialization_binding", "update_binding"):
        for key, value in entry.get(field, {}).items():
            getattr(info, field).add(key=key, value=value)
    return info


def load_cases(path: pathlib.Path) -> list[Case]:
    """The cases of one file."""
    file = json.loads(path.read_text(encoding="utf-8"))
    if file["format"] != 1:
        raise ValueError(f"{path}: format {file['format']} is not supported, expected 1")
    return [Case(file, row) for row in file["cases"]]


def all_cases() -> dict[str, list[Case]]:
    """All cases of the package, by file."""
    return {path.stem: load_cases(path) for path in sorted(FOLDER.glob("*.json"))}
