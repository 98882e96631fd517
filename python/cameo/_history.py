# What a run was like.
# SPDX-License-Identifier: Apache-2.0
"""cameo.History."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping
from typing import Any

from . import _cameo
from ._check import Fixed

COLORS = ("#1f6fb4", "#d1641b", "#2c8a3d", "#a8323e", "#6d4fa3", "#7a5a44", "#c2569b", "#5f6b76")


class History(Fixed, dict[str, list[float]]):
    """What a run told, by epochs: lists by name, `loss` and other scalars of the training averaged over the epoch,
    `val_loss`, `val_accuracy` and others of the validation data. `steps` has the scalars of each step.

    >>> history = History()
    >>> history.add_epoch(1, {"loss": 0.5}, {"loss": 0.75, "accuracy": 0.5})
    >>> history
    {'loss': [0.5], 'val_loss': [0.75], 'val_accuracy': [0.5]}
    >>> history.plot().startswith("<svg")
    True
    """

    def __init__(self) -> None:
        super().__init__()
        self.epochs: list[int] = []  # their numbers, from 1; a resumed run begins later
        self.steps: dict[str, list[float]] = {}
        self.first_step = 0  # the number of the first step in steps, from 1; 0: there is none
        self.first_loss = math.nan  # of the first step
        self.stopped = False  # by a callback
        self.stopped_early = False  # by patience
        self.best_validation_loss = math.inf
        self.best_step = self.best_epoch = 0  # where that was; 0: nothing was validated

    def add_step(self, step: int, scalars: Mapping[str, float]) -> None:
        """Notes what a step told; fit does."""
        self.first_step = self.first_step or step
        for name, value in scalars.items():
            self.steps.setdefault(name, []).append(value)

    def add_epoch(self, epoch: int, means: Mapping[str, float], measure: Mapping[str, float] | None = None) -> None:
        """Notes the means of an epoch, and what was measured after it; fit does."""
        told = {**means, **{"val_" + name: value for name, value in (measure or {}).items() if name != "samples"}}
        for name in told:
            self.setdefault(name, [math.nan] * len(self.epochs))
        for name, values in self.items():  # a list for each name, with a number for each epoch
            values.append(told.get(name, math.nan))
        self.epochs.append(epoch)

    def plot(self, path: str | os.PathLike[str] | None = None) -> str:
        """The curves as SVG, a picture for each quantity, training and validation in one; written to path if given."""
        svg = _draw(self._panels())
        if path is not None:
            _cameo.write_file(path, svg.encode())
        return svg

    def _panels(self) -> list[tuple[str, list[tuple[str, list[float], list[float]]]]]:
        """(title, [(name, xs, ys)]) of each picture: what is measured by epochs, or by steps where no epoch ended."""
        if self.epochs:
            xs = [float(epoch) for epoch in self.epochs]
            lines: Mapping[str, list[float]] = self
        else:
            count = max((len(values) for values in self.steps.values()), default=0)
            xs = [float(self.first_step + i) for i in range(count)]
            lines = self.steps
        panels: dict[str, list[tuple[str, list[float], list[float]]]] = {}
        for name, ys in lines.items():
            panels.setdefault(name.removeprefix("val_"), []).append((name, xs[-len(ys):], ys))
        return list(panels.items())

    def _repr_svg_(self) -> str:
        return self.plot()

    def _repr_html_(self) -> str:
        return self.plot()


# ---- drawing ----

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 30, 34


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from low to high, at most so many.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    return [round((first + i) * step, 12) for i in range(int((high - low) / step + 1e-9) + 1)
            if (first + i) * step <= high + step * 1e-6]


def _scale(values: list[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        spread = abs(low) * 0.1 or 0.5
        return low - spread, high + spread
    return low, high


def _panel(left: float, top: float, title: str, lines: list[tuple[str, list[float], list[float]]]) -> list[str]:
    x_low, x_high = _scale([x for _, xs, _ in lines for x in xs])
    y_low, y_high = _scale([y for _, _, ys in lines for y in ys])

    def at_x(x: float) -> float:
        return round(left + LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT), 2)

    def at_y(y: float) -> float:
        return round(top + HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM), 2)

    out = [f'<text x="{left + LEFT}" y="{top + 18}" font-weight="bold">{html.escape(title)}</text>']
    for y in ticks(y_low, y_high):
        out.append(f'<line x1="{left + LEFT}" x2="{left + WIDTH - RIGHT}" y1="{at_y(y)}" y2="{at_y(y)}" stroke="#ddd"/>'
                   f'<text x="{left + LEFT - 6}" y="{at_y(y) + 4}" text-anchor="end">{y:.6g}</text>')
    for x in ticks(x_low, x_high):
        if x == int(x):
            out.append(f'<text x="{at_x(x)}" y="{top + HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:.0f}</text>')
    for i, (name, xs, ys) in enumerate(lines):
        color = COLORS[i % len(COLORS)]
        parts: list[list[str]] = [[]]  # the line is broken where a number is not finite
        for x, y in zip(xs, ys):
            if math.isfinite(y):
                parts[-1].append(f"{at_x(x)},{at_y(y)}")
            elif parts[-1]:
                parts.append([])
        for points in filter(None, parts):
            if len(points) == 1:
                cx, cy = points[0].split(",")
                out.append(f'<circle cx="{cx}" cy="{cy}" r="2.5" fill="{color}"/>')
            else:
                out.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        out.append(f'<text x="{left + WIDTH - RIGHT}" y="{top + 18 + 14 * i}" text-anchor="end" fill="{color}">'
                   f"{html.escape(name)}</text>")
    return out


def _draw(panels: list[tuple[str, list[tuple[str, list[float], list[float]]]]]) -> str:
    columns = min(2, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    size = f"{columns * WIDTH} {rows * HEIGHT}"
    out: list[Any] = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{columns * WIDTH}" '
                      f'height="{rows * HEIGHT}" font-family="sans-serif" font-size="11">',
                      f'<rect width="{columns * WIDTH}" height="{rows * HEIGHT}" fill="#fff"/>']
    for i, (title, lines) in enumerate(panels):
        out += _panel(i % columns * WIDTH, i // columns * HEIGHT, title, lines)
    return "\n".join([*out, "</svg>", ""])
