# What a model is made of.
# SPDX-License-Identifier: Apache-2.0
"""Values, nodes, graphs, functions and entries of training info, as Python has them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping

from . import _cameo
from ._check import Fixed, similar

TYPE_CHECKING = False  # type checkers take it for True; importing typing would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    import numpy

_TENSOR, _GRAPH, _TENSORS, _GRAPHS, _TYPE, _TYPES = 4, 5, 9, 10, 13, 14  # ONNX's numbers of kinds of attributes
_MAIN, _FUNCTION, _INITIALIZATION, _ALGORITHM = range(4)


class Report(types.SimpleNamespace):
    """What the library tells of a model or of what was done to it. Members are called as in the command's JSON, and
    report["from"] is a member whose name Python does not allow after a point. Printed, it has a line for each member."""

    def __getitem__(self, name: str) -> Any:
        if name not in vars(self):
            raise KeyError(f"this cameo.Report has no member '{name}'" + similar(name, vars(self)))
        return vars(self)[name]

    def __setattr__(self, name: str, value: object) -> None:
        if name not in vars(self):
            raise AttributeError(f"this cameo.Report has no member '{name}'" + similar(name, vars(self)))
        super().__setattr__(name, value)

    def __str__(self) -> str:
        lines = []
        for name, value in vars(self).items():
            if isinstance(value, (list, dict)) and value:
                rows = value.items() if isinstance(value, dict) else ((None, row) for row in value)
                lines.append(f"{name}:")
                lines.extend(f"  {_line(row)}" if key is None else f"  {key}: {_line(row)}" for key, row in rows)
            elif isinstance(value, Report):
                lines.extend([f"{name}:", *("  " + line for line in str(value).splitlines())])
            elif value not in ("", [], {}, None):
                lines.append(f"{name}: {value}")
        return "\n".join(lines)


def _line(row: object) -> str:
    if not isinstance(row, Report):
        return str(row)
    return ", ".join(f"{name} {value}" for name, value in vars(row).items() if value not in ("", [], {}, None))


class ValueInfo:
    """An input or output: name, type as ONNX writes it, dtype of NumPy, shape (numbers, names or None)."""

    __slots__ = ("name", "type", "number", "shape", "kind", "has_default")

    name: str
    type: str
    number: int
    shape: tuple[int | str | None, ...] | None
    kind: int
    has_default: bool

    def __init__(self, row: tuple[Any, ...]) -> None:
        self.name, self.type, self.number, self.shape, self.kind, self.has_default = row

    @property
    def dtype(self) -> numpy.dtype[Any] | None:
        from ._arrays import numpy_type
        dtype: numpy.dtype[Any] | None = numpy_type(self.number)
        return dtype

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


class Reference:
    """In a function: the value of an attribute is what the call gives for the attribute of this name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"@{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class Attributes(Fixed, Mapping[str, "Any"]):
    """The attributes of a node: numbers, texts (bytes where they are not UTF-8), lists of these, NumPy arrays, graphs,
    types as ONNX writes them. Tensors are read when they are asked for; sparse ones are None."""

    def __init__(self, inside: Any, rows: list[tuple[str, int, str, Any]]) -> None:
        self._inside = inside
        self._rows = {row[0]: row[1:] for row in rows}

    def __getitem__(self, name: str) -> Any:
        kind, refers_to, value = self._rows[name]
        if refers_to:
            return Reference(refers_to)
        if kind in (_TENSOR, _TENSORS):
            from ._arrays import from_value
            tensors = [from_value(_cameo.attribute_tensor(self._inside, value[0], i)) for i in range(value[1])]
            return tensors if kind == _TENSORS else tensors[0] if tensors else None
        if kind in (_GRAPH, _GRAPHS):
            graphs = [Graph(self._inside, row) for row in value]
            return graphs if kind == _GRAPHS else graphs[0] if graphs else None
        if kind == _TYPE:
            return value[0] if value else None
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {_short(self[name])}" for name in self) + "}"


def _short(value: object) -> str:
    """One line of it."""
    if hasattr(value, "dtype") and getattr(value, "size", 0) > 8:
        return f"array of {value.dtype}, shape {getattr(value, 'shape', ())}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + ".."


class Node:
    """A node: name, op_type, domain, overload, inputs and outputs (names; "" where left out), attributes."""

    __slots__ = ("name", "op_type", "domain", "overload", "doc_string", "inputs", "outputs", "attributes")

    name: str
    op_type: str
    domain: str
    overload: str
    doc_string: str
    inputs: list[str]
    outputs: list[str]
    attributes: Attributes

    def __init__(self, inside: Any, row: tuple[Any, ...]) -> None:
        (self.name, self.op_type, self.domain, self.overload, self.doc_string, self.inputs, self.outputs,
         attributes) = row
        self.attributes = Attributes(inside, attributes)

    @property
    def operator(self) -> str:
        """Domain and type: "Conv", "ai.onnx.ml::Scaler"."""
        return f"{self.domain}::{self.op_type}" if self.domain not in ("", "ai.onnx") else self.op_type

    def __repr__(self) -> str:
        attributes = f"<{', '.join(f'{name}={_short(self.attributes[name])}' for name in self.attributes)}>"
        return (f"{', '.join(self.outputs)} = {self.operator}{attributes if self.attributes else ''}"
                f"({', '.join(self.inputs)})")


# Operators that hand each element on: what an output is, is what they are given.
_PLAIN = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}


def last_operator(nodes: list[Node], output: str) -> str:
    """The operator that computes an output; those that only hand it on do not count. "" where there is none."""
    makers = {name: node for node in nodes for name in node.outputs}
    while output in makers:
        node = makers[output]
        if node.op_type not in _PLAIN:
            return str(node.op_type)
        output = node.inputs[0]
    return ""


class Graph(Fixed):
    """A graph: name, inputs, outputs, nodes in the order of the file, and values, which has what the file says of the
    type of each name."""

    def __init__(self, inside: Any, row: tuple[Any, ...], main: bool = False) -> None:
        self._inside = inside
        self._main = main
        self.name: str = row[0]
        self.inputs = [ValueInfo(info) for info in row[1]]
        self.outputs = [ValueInfo(info) for info in row[2]]
        self._values = row[3]
        self.nodes = [Node(inside, node) for node in row[4]]

    @property
    def values(self) -> dict[str, ValueInfo]:
        return {info[0]: ValueInfo(info) for info in self._values}

    def svg(self, fold: str | list[str] = "auto") -> str:
        """The graph of a model as a picture. Calls of functions are one box; so are, in models of more than 150 nodes,
        nodes whose names begin alike. fold: prefixes of names that become one box, or "functions", or "none"."""
        if not self._main:
            raise _cameo.UnsupportedError("only the graph of a model is drawn, not one inside a node or a function")
        svg: str = _cameo.draw(self._inside, [fold] if isinstance(fold, str) else list(fold))[0]
        return svg

    def _repr_svg_(self) -> str | None:
        return self.svg() if self._main else None

    def __repr__(self) -> str:
        return f"<cameo.Graph '{self.name}' of {len(self.nodes)} node{'' if len(self.nodes) == 1 else 's'}>"


class Function(Graph):
    """A function that the model defines: a graph with domain, overload and doc_string."""

    def __init__(self, inside: Any, row: tuple[str, str, str, str], graph: tuple[Any, ...]) -> None:
        super().__init__(inside, graph)
        self.domain, self.name, self.overload, self.doc_string = row

    def __repr__(self) -> str:
        return f"<cameo.Function {self.domain}::{self.name} of {len(self.nodes)} nodes>"


class Training(Fixed):
    """An entry of training info: inputs and outputs of a step beside those of the graph, states (what it changes),
    initialization_binding and update_binding (variable to value), and the graphs initialization and algorithm, or None."""

    def __init__(self, inside: Any, index: int, row: tuple[Any, ...]) -> None:
        self.initialization_binding: dict[str, str] = dict(row[0])
        self.update_binding: dict[str, str] = dict(row[1])
        self.inputs = [ValueInfo(info) for info in row[2]]
        self.outputs = [ValueInfo(info) for info in row[3]]
        self.states: list[str] = row[4]
        self.initialization = _graph(inside, _INITIALIZATION, index)
        self.algorithm = _graph(inside, _ALGORITHM, index)

    def __repr__(self) -> str:
        return (f"<cameo.Training {', '.join(map(repr, self.inputs))} -> {', '.join(map(repr, self.outputs))}; "
                f"{len(self.states)} states>")


def _graph(inside: Any, kind: int, index: int) -> Graph | None:
    row = _cameo.graph(inside, kind, index)
    return None if row is None else Graph(inside, row, kind == _MAIN)


def main_graph(inside: Any) -> Graph:
    """The graph of a model; a file without one has an empty one."""
    return _graph(inside, _MAIN, 0) or Graph(inside, ("", [], [], [], []))


def functions(inside: Any) -> list[Function]:
    return [Function(inside, row, _cameo.graph(inside, _FUNCTION, i)) for i, row in enumerate(_cameo.functions(inside))]


def trainings(inside: Any) -> list[Training]:
    return [Training(inside, i, row) for i, row in enumerate(_cameo.training(inside))]
