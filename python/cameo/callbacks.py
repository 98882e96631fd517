# What a run calls on its way.
# SPDX-License-Identifier: Apache-2.0
"""Callbacks of cameo.Trainer.fit: a base class, and those that most programs want.

>>> from cameo.callbacks import LambdaCallback
>>> tell = LambdaCallback(on_epoch=lambda state: print(state.epoch, state.loss))
"""

from __future__ import annotations

import csv
import io
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from . import _cameo
from ._cameo import ArgumentError
from ._check import Fixed

if TYPE_CHECKING:
    from ._history import History
    from ._tensorboard import TensorBoard as TensorBoard
    from ._trainer import Trainer

__all__ = ["Callback", "State", "EarlyStopping", "Checkpoint", "ProgressBar", "CSVLogger", "LambdaCallback",
           "TensorBoard"]


class State(Fixed):
    """Where a run is, for its callbacks. loss is that of the last step, means are over the epoch so far; measure, of
    the validation data, and best are there in on_epoch."""

    def __init__(self, trainer: Trainer, history: History):
        self.trainer, self.history = trainer, history
        self.step = 0  # done, from the first step ever
        self.steps: int | None = None  # to do in all, where that is known
        self.first_step = 0  # done before this run
        self.epoch = 0  # of the last batch, from 1
        self.loss = float("nan")
        self.scalars: Mapping[str, float] = {}
        self.means: Mapping[str, float] = {}
        self.measure: Mapping[str, float] | None = None
        self.best = False
        self.best_loss = float("inf")
        self.checkpoint: str | None = None  # written, or at the start: resumed from

    def values(self) -> dict[str, float]:
        """All that an epoch told, by the names that the history has."""
        return {**self.means, **{"val_" + name: value for name, value in (self.measure or {}).items()
                                 if name != "samples"}}


class Callback(Fixed):
    """Does nothing; derive from it. A function that returns False ends the run. An exception ends it too, and is what
    fit raises; the trainer can be used as before. The trainer may be read, evaluated and saved in a callback."""

    def on_start(self, state: State) -> bool | None:
        """Before the first step, resumed or not."""

    def on_step(self, state: State) -> bool | None:
        """After each step."""

    def on_epoch(self, state: State) -> bool | None:
        """After each epoch and its validation."""

    def on_checkpoint(self, state: State) -> bool | None:
        """After a checkpoint was written: state.checkpoint."""

    def on_end(self, state: State) -> bool | None:
        """When the run is over, also where it failed."""


class LambdaCallback(Callback):
    """Functions as a callback.

    >>> LambdaCallback(on_step=lambda state: state.loss > 0.1)  # doctest: +ELLIPSIS
    <cameo.callbacks.LambdaCallback object at ...>
    """

    def __init__(self, **functions: Callable[[State], bool | None]):
        for name, function in functions.items():
            if name not in ("on_start", "on_step", "on_epoch", "on_checkpoint", "on_end"):
                raise TypeError(f"'{name}' is not a function of a callback")
            setattr(self, name, function)


class EarlyStopping(Callback):
    """Ends the run when a quantity of the history was not better for so many epochs in a row. fit's own patience is
    the same for val_loss, and goes on where a resumed run left off."""

    def __init__(self, monitor: str = "val_loss", patience: int = 3, min_delta: float = 0.0, mode: str = "auto"):
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode is '{mode}', expected 'auto', 'min' or 'max'")
        rising = mode == "max" or (mode == "auto" and monitor.endswith(("accuracy", "r2")))
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta
        self._sign = -1.0 if rising else 1.0
        self.best = float("inf")
        self.worse = 0

    def on_start(self, state: State) -> None:
        self.best, self.worse = float("inf"), 0

    def on_epoch(self, state: State) -> bool:
        values = state.values()
        if self.monitor not in values:
            raise ArgumentError(f"there is no '{self.monitor}' to monitor, only {', '.join(values)}")
        value = self._sign * values[self.monitor]
        if value < self.best - self.min_delta:
            self.best, self.worse = value, 0
        else:
            self.worse += 1
        return self.worse < self.patience


class Checkpoint(Callback):
    """Saves the model after each epoch, to a path in which {epoch}, {step} and names of the history may stand, or only
    where a quantity is the best so far. To resume a run, use fit's own checkpoint."""

    def __init__(self, path: str | os.PathLike[str], monitor: str | None = None, mode: str = "auto"):
        self.path, self.monitor = os.fspath(path), monitor
        self._stopping = EarlyStopping(monitor, mode=mode) if monitor else None

    def on_start(self, state: State) -> None:
        if self._stopping:
            self._stopping.on_start(state)

    def on_epoch(self, state: State) -> None:
        if self._stopping:
            self._stopping.on_epoch(state)
            if self._stopping.worse:
                return
        names = {"epoch": state.epoch, "step": state.step, **state.values()}
        try:
            path = self.path.format(**names)
        except (LookupError, ValueError, AttributeError) as problem:
            raise ArgumentError(f"the path '{self.path}' cannot be filled in ({problem}); there is "
                                f"{', '.join(names)}") from None
        state.trainer.save(path)


class CSVLogger(Callback):
    """Writes a line for each epoch. append: to what the file has; else the first line replaces it."""

    def __init__(self, path: str | os.PathLike[str], append: bool = False):
        self.path, self.append = path, append
        self._names: list[str] = []
        self._begun = False

    def on_start(self, state: State) -> None:
        old = self.append and os.path.exists(self.path) and os.path.getsize(self.path) > 0
        self._names = []
        if old:
            with open(self.path, newline="", encoding="utf-8") as file:
                self._names = next(csv.reader(file), [])
        self._begun = old
        if not os.access(self.path if os.path.exists(self.path) else os.path.dirname(self.path) or ".", os.W_OK):
            with open(self.path, "a", encoding="utf-8"):  # to raise as it does, before the first epoch
                pass

    def on_epoch(self, state: State) -> None:
        row = {"epoch": state.epoch, "step": state.step, **state.values()}
        text = io.StringIO()
        writer = csv.writer(text)
        if not self._names:
            self._names = list(row)
            writer.writerow(self._names)
        writer.writerow([row.get(name, "") for name in self._names])
        if self._begun:
            with open(self.path, "a", newline="", encoding="utf-8") as file:
                file.write(text.getvalue())
        else:
            _cameo.write_file(self.path, text.getvalue().encode())
        self._begun = True


def in_notebook() -> bool:
    """Whether standard output is a cell of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"


class ProgressBar(Callback):
    """A line that tells how far the run is, and a line for each epoch. It is quiet where the output is neither a
    terminal nor a notebook, unless always is set: then it writes the lines of the epochs."""

    def __init__(self, always: bool = False, file: IO[str] | None = None, width: int = 24, interval: float = 0.1):
        self.always, self.file, self.width, self.interval = always, file, width, interval
        self._drawn = 0  # characters of the line
        self._next = 0.0
        self._start = 0.0

    def _output(self) -> IO[str]:
        return self.file or sys.stderr

    def _is_live(self) -> bool:
        output = self._output()
        return bool(hasattr(output, "isatty") and output.isatty()) or (self.file is None and in_notebook())

    def _write(self, text: str, end: str = "") -> None:
        if self._is_live():
            self._output().write("\r" + text.ljust(self._drawn) + end)
            self._drawn = 0 if end else len(text)
        elif self.always and end:
            self._output().write(text + end)
        self._output().flush()

    def on_start(self, state: State) -> None:
        self._start = time.monotonic()
        self._next = 0.0

    def on_step(self, state: State) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self.interval
        done, total = state.step - state.first_step, state.steps
        speed = done / max(now - self._start, 1e-9)
        text = f"epoch {state.epoch}  loss {state.means.get('loss', state.loss):.4g}  {speed:.3g} steps/s"
        if total:
            share = min(1.0, state.step / total)
            filled = int(share * self.width)
            left = (total - state.step) / speed if speed else 0.0
            text = f"[{'#' * filled}{'.' * (self.width - filled)}] {state.step}/{total}  {text}  {left:.0f} s left"
        self._write(text)

    def on_epoch(self, state: State) -> None:
        told = "  ".join(f"{name} {value:.4g}" for name, value in state.values().items())
        self._write(f"epoch {state.epoch}  {told}" + ("  (best)" if state.best else ""), "\n")

    def on_end(self, state: State) -> None:
        if self._drawn:
            self._write("")  # over what is there
            self._output().write("\r")


class CallbackList(Callback):
    """Callbacks one after the other. All are called, also after one that ends the run."""

    def __init__(self, callbacks: list[Callback]):
        for callback in callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(f"{type(callback).__name__} is not a cameo.callbacks.Callback")
        self.callbacks = callbacks

    def call(self, name: str, state: State) -> bool:
        """Calls that method of all of them; False where one of them ends the run."""
        goes_on = True
        for callback in self.callbacks:
            result = getattr(callback, name)(state)
            goes_on = (result is None or bool(result)) and goes_on  # NumPy has a False of its own
        return goes_on

    def end(self, state: State) -> None:
        """on_end of all of them, whatever one raises; the first exception is raised then."""
        failures: list[BaseException] = []
        for callback in self.callbacks:
            try:
                callback.on_end(state)
            except BaseException as failure:
                failures.append(failure)
        if failures:
            raise failures[0]


def __getattr__(name: str) -> Any:
    if name == "TensorBoard":
        from . import _tensorboard
        return _tensorboard.TensorBoard
    raise AttributeError(f"module 'cameo.callbacks' has no attribute '{name}'")
