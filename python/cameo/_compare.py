# How far apart models are, and gradients from differences.
# SPDX-License-Identifier: Apache-2.0
"""Model.compare and Model.gradcheck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _cameo
from ._check import Fixed
from ._graph import Report

if TYPE_CHECKING:
    from ._model import Model

PARTS = ("structure", "weights", "results")


class Difference:
    """Something that differs: kind ("added", "removed", "changed", "value", "first" for the first value of a run that
    differs; "note" for what is no difference), name, text (a sentence), and of numbers count, differing, first (the
    first that differs), max_abs, relative_l2 (the norm of the difference, as a part of that of the reference)."""

    __slots__ = ("kind", "name", "text", "count", "differing", "first", "max_abs", "relative_l2")

    def __init__(self, kind: str, name: str, text: str, row: tuple[Any, ...] | None = None) -> None:
        self.kind = kind
        self.name = name
        self.count, self.differing, self.first, self.max_abs, norm, reference = row or (0, 0, -1, 0.0, 0.0, 0.0)
        self.relative_l2: float = norm / reference if reference else norm
        numbers = (f"{self.differing} of {self.count} differ, at most {self.max_abs:.3g}, relative L2 "
                   f"{self.relative_l2:.3g}, first at {self.first}") if row else ""
        self.text = ": ".join(filter(None, (text, numbers)))

    def __repr__(self) -> str:
        return ": ".join(filter(None, (f"{self.kind} {self.name}", self.text)))


class Part(list[Difference]):
    """What differs in a part of two models; compared and differing count nodes, tensors or values."""

    compared = 0
    differing = 0

    @property
    def rows(self) -> list[Difference]:
        return list(self)


class Comparison(Fixed):
    """What one model differs from another in: structure, weights and results, lists of Difference. True where they are
    the same."""

    def __init__(self, same: bool, parts: list[tuple[int, int]], rows: list[tuple[Any, ...]]) -> None:
        self.same = same
        self.structure = Part()
        self.weights = Part()
        self.results = Part()
        for part, (compared, differing) in zip(PARTS, parts):
            getattr(self, part).compared = compared
            getattr(self, part).differing = differing
        for part_number, *row in rows:
            getattr(self, PARTS[part_number]).append(Difference(*row))

    def __bool__(self) -> bool:
        return self.same

    def __repr__(self) -> str:
        return f"<cameo.Comparison: {'the same' if self.same else 'different'}>"

    def __str__(self) -> str:
        lines = []
        for part in PARTS:
            rows = getattr(self, part)
            if rows.compared or rows:
                lines.append(f"{part}: {rows.compared} compared, {rows.differing or 'none'} "
                             f"{'differs' if rows.differing == 1 else 'differ'}")
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
    return Comparison(*_cameo.compare(a._inside, b._inside, a._feeds(inputs or {}),
                                      sum(1 << PARTS.index(part) for part in set(only)),
                                      -1.0 if rtol is None else rtol, -1.0 if atol is None else atol, seed))


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
