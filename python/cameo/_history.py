# What a run was like.
# SPDX-License-Identifier: Apache-2.0
"""cameo.History."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from . import _cameo
from ._check import Fixed


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
        svg: str = _cameo.draw_curves(*self._curves())
        if path is not None:
            _cameo.write_file(path, svg.encode())
        return svg

    def _curves(self) -> tuple[list[tuple[str, list[float], list[float]]], str]:
        """(name, xs, ys) of each curve, by epochs, or by steps where no epoch ended; and which of the two."""
        if self.epochs:
            xs = [float(epoch) for epoch in self.epochs]
            lines: Mapping[str, list[float]] = self
        else:
            count = max((len(values) for values in self.steps.values()), default=0)
            xs = [float(self.first_step + i) for i in range(count)]
            lines = self.steps
        return [(name, xs[-len(ys):], ys) for name, ys in lines.items()], "epoch" if self.epochs else "step"

    def _repr_svg_(self) -> str:
        return self.plot()

    def _repr_html_(self) -> str:
        return self.plot()
