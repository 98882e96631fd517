# How far apart models are, and gradients from differences.
# SPDX-License-Identifier: Apache-2.0
"""Model.compare and Model.gradcheck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import _cameo
from ._arrays import to_value
from ._check import Fixed
from ._graph import Node, Report
from ._session import Session

if TYPE_CHECKING:
    from ._model import Model

PARTS = ("structure", "weights", "results")


class Difference:
    """Something that differs: name, text (a sentence), and of numbers count, differing, first (the first that differs),
    max_abs, relative_l2 (the norm of the difference, as a part of that of the reference)."""

    __slots__ = ("name", "text", "count", "differing", "first", "max_abs", "relative_l2")

    def __init__(self, name: str, text: str, row: tuple[Any, ...] | None = None) -> None:
        self.name = name
        self.text = text
        self.count, self.differing, self.first, self.max_abs, norm, reference = row or (0, 0, -1, 0.0, 0.0, 0.0)
        self.relative_l2: float = norm / reference if reference else norm
        if row:
            self.text = (f"{self.differing} of {self.count} differ, at most {self.max_abs:.3g}, relative L2 "
                         f"{self.relative_l2:.3g}, first at {self.first}")

    def __repr__(self) -> str:
        return f"{self.name}: {self.text}"


class Part(list[Difference]):
    """What differs in a part of two models; compared counts what was looked at."""

    compared = 0

    @property
    def differing(self) -> int:
        return len(self)

    @property
    def rows(self) -> list[Difference]:
        return list(self)


class Comparison(Fixed):
    """What one model differs from another in: structure, weights and results, lists of Difference. True where they are
    the same."""

    def __init__(self) -> None:
        self.structure = Part()
        self.weights = Part()
        self.results = Part()

    @property
    def same(self) -> bool:
        return not (self.structure or self.weights or self.results)

    def __bool__(self) -> bool:
        return self.same

    def __repr__(self) -> str:
        return f"<cameo.Comparison: {'the same' if self.same else 'different'}>"

    def __str__(self) -> str:
        lines = []
        for part in PARTS:
            rows = getattr(self, part)
            if rows.compared or rows:
                lines.append(f"{part}: {rows.compared} compared, {len(rows) or 'none'} "
                             f"{'differs' if len(rows) == 1 else 'differ'}")
            lines.extend(f"  {row}" for row in rows[:30])
            if len(rows) > 30:
                lines.append(f"  and {len(rows) - 30} more")
        return "\n".join(lines)


def compare(a: Model, b: Model, inputs: Mapping[str, Any] | None, rtol: float | None, atol: float | None, seed: int,
            only: Sequence[str]) -> Comparison:
    for part in only:
        if part not in PARTS:
            raise _cameo.ArgumentError(f"only has {part!r}, expected {', '.join(PARTS)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not value >= 0:
            raise _cameo.ArgumentError(f"{name} is {value}, expected a number of at least 0")
    found = Comparison()
    parts = only or PARTS
    if "structure" in parts:
        _compare_structure(found, a, b)
    if "weights" in parts:
        _compare_weights(found, a, b, rtol or 0.0, atol or 0.0)
    if "results" in parts:
        _compare_results(found, a, b, inputs or {}, 1e-3 if rtol is None else rtol, 1e-5 if atol is None else atol,
                         seed)
    return found


# ---- structure ----

def _same(a: Any, b: Any) -> bool:
    """Of attributes: arrays by their elements, graphs by their nodes."""
    if isinstance(a, numpy.ndarray) or isinstance(b, numpy.ndarray):
        both = isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray)
        return both and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if hasattr(a, "nodes") and hasattr(b, "nodes"):
        return len(a.nodes) == len(b.nodes) and all(map(_same_node, a.nodes, b.nodes))
    return bool(a == b)


def _same_node(a: Node, b: Node) -> bool:
    return not _node_change(a, b)


def _node_change(a: Node, b: Node) -> str:
    """What became of a node, in words; "" where nothing did."""
    for what in ("operator", "inputs", "outputs"):
        if getattr(a, what) != getattr(b, what):
            return f"{what}: {getattr(a, what)} became {getattr(b, what)}"
    for name in dict.fromkeys([*a.attributes, *b.attributes]):
        if name not in b.attributes or name not in a.attributes:
            return f"attribute '{name}' is {'gone' if name in a.attributes else 'new'}"
        if not _same(a.attributes[name], b.attributes[name]):
            return f"attribute '{name}' changed"
    return ""


def _compare_structure(found: Comparison, a: Model, b: Model) -> None:
    """Nodes meet by the first value that they compute."""
    add = found.structure.append
    for what in ("opsets", "metadata"):
        if getattr(a, what) != getattr(b, what):
            add(Difference(what, f"{getattr(a, what)} became {getattr(b, what)}"))
    for what in ("inputs", "outputs"):
        if repr(getattr(a, what)) != repr(getattr(b, what)):
            add(Difference(what, f"{getattr(a, what)} became {getattr(b, what)}"))

    def by_output(model: Model) -> dict[str, Node]:
        return {next((name for name in node.outputs if name), f"{i}"): node for i, node in enumerate(model.nodes)}
    first, second = by_output(a), by_output(b)
    for name in dict.fromkeys([*first, *second]):
        found.structure.compared += 1
        if name not in second or name not in first:
            add(Difference(name, f"node was {'removed' if name in first else 'added'}: {first.get(name) or second[name]}"))
        elif change := _node_change(first[name], second[name]):
            add(Difference(name, change))


# ---- numbers ----

def _compare_weights(found: Comparison, a: Model, b: Model, rtol: float, atol: float) -> None:
    first, second = a.initializers._rows(), b.initializers._rows()
    for name in dict.fromkeys([*first, *second]):
        found.weights.compared += 1
        if name not in second or name not in first:
            found.weights.append(Difference(name, f"was {'removed' if name in first else 'added'}"))
            continue
        try:
            row = _cameo.initializer_difference(b._inside, second[name][0], a._inside, first[name][0], rtol, atol)
        except _cameo.Error as problem:
            found.weights.append(Difference(name, str(problem)))
            continue
        if row[1]:
            found.weights.append(Difference(name, "", row))


def _compare_values(name: str, a: Any, b: Any, rtol: float, atol: float) -> Difference | None:
    if isinstance(a, (list, dict)) and type(a) is type(b) and len(a) == len(b):
        keys = range(len(a)) if isinstance(a, list) else a
        if isinstance(a, dict) and list(a) != list(b):
            return Difference(name, "has other keys")
        return next(filter(None, (_compare_values(f"{name}[{key!r}]", a[key], b[key], rtol, atol) for key in keys)), None)
    if a is None or b is None or isinstance(a, (list, dict)) or isinstance(b, (list, dict)):
        return None if a is b else Difference(name, f"is {type(b).__name__}, was {type(a).__name__}")
    try:
        row = _cameo.value_difference(to_value(b), to_value(a), rtol, atol)
    except _cameo.Error as problem:
        return Difference(name, str(problem))
    return Difference(name, "", row) if row[1] else None


def _compare_results(found: Comparison, a: Model, b: Model, inputs: Mapping[str, Any], rtol: float, atol: float,
                     seed: int) -> None:
    feeds = {**a.make_inputs(seed, given=inputs), **inputs}
    first = [output.name for output in a.outputs]
    second = [output.name for output in b.outputs]
    common = [name for name in first if name in second]
    pairs = list(zip(common, common)) if common else list(zip(first, second))
    results = Session(a).run([name for name, _ in pairs], feeds)
    try:
        others = Session(b).run([name for _, name in pairs], feeds)
    except _cameo.Error as problem:
        found.results.append(Difference("second model", f"does not run: {problem}"))
        return
    for (name, _), x, y in zip(pairs, results, others):
        found.results.compared += 1
        different = _compare_values(name, x, y, rtol, atol)
        if different:
            found.results.append(different)


# ---- gradients ----

class GradCheck(Fixed, Sequence[Report]):
    """Gradients against differences: a row for each tensor, with name, good, worst (by how much they differ, as a part
    of the larger), at, analytic, numeric, elements, checked, kinks. True where all are good."""

    def __init__(self, rows: list[dict[str, Any]], tolerance: float) -> None:
        self._rows = [Report(good=row["worst"] <= tolerance, **row) for row in rows]

    @property
    def good(self) -> bool:
        return all(row.good for row in self._rows)

    def __bool__(self) -> bool:
        return self.good

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Report]:
        return iter(self._rows)

    def __str__(self) -> str:
        return "\n".join(f"{'good' if row.good else 'BAD '}  {row.name}: differs by {row.worst:.1e} at {row.at}: "
                         f"{row.analytic:.9g}, differences say {row.numeric:.9g} ({row.checked} of {row.elements} "
                         "elements)" for row in self._rows)

    def __repr__(self) -> str:
        return f"<cameo.GradCheck: {sum(row.good for row in self._rows)} of {len(self)} tensors agree>"
