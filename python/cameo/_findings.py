# What is wrong with a model, or stands in the way of something.
# SPDX-License-Identifier: Apache-2.0
"""Finding and Findings."""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Finding:
    """Something that is wrong with a model: rule, place, reason, help; severity is "violation", "warning" or, for what
    the tool given to check() accepts, "note". node, operator and value are what the place names, or ""."""

    __slots__ = ("rule", "severity", "place", "node", "operator", "value", "reason", "help")

    rule: str
    severity: str
    place: str
    node: str
    operator: str
    value: str
    reason: str
    help: str

    def __init__(self, row: tuple[str, int, str, str, str, str, str, str]) -> None:
        self.rule, severity, self.place, self.reason, self.help, self.node, self.operator, self.value = row
        self.severity = ("warning", "violation", "note")[severity]

    def __repr__(self) -> str:
        return f"{self.rule}: {self}"

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


class Findings(list[Finding]):
    """What check() found, or what stands in the way of something else, with the numbers of violations and warnings;
    cut: there are more."""

    def __init__(self, rows: Iterable[Any], cut: bool = False) -> None:
        super().__init__(map(Finding, rows))
        self.cut = cut

    @property
    def violations(self) -> int:
        return sum(row.severity == "violation" for row in self)

    @property
    def warnings(self) -> int:
        return sum(row.severity == "warning" for row in self)
