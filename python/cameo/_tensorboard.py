# Curves of a training for TensorBoard.
# SPDX-License-Identifier: Apache-2.0
"""cameo.callbacks.TensorBoard."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Union

from ._events import EventWriter
from .callbacks import Callback


class TensorBoard(Callback):
    """Writes the curves of Trainer.fit into a folder, as `cameo train --tensorboard` does: "train/loss" and the other
    scalars of a step every so many steps, "epoch/loss" and "val/loss", "val/accuracy", .. after each epoch. A run that
    is resumed goes on in a second file. settings, a dict, is shown as a table."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], every: int = 1,
                 settings: Optional[Mapping[str, Any]] = None) -> None:
        if every < 1:
            raise ValueError(f"every is {every}, expected a number of steps")
        self.folder, self.every, self.settings = folder, every, dict(settings or {})
        self.events: Optional[EventWriter] = None

    def on_start(self, state: Any) -> None:
        self.events = EventWriter(self.folder)
        if state.step:
            self.events.resume(state.step + 1)
        if self.settings:
            rows = [f"| {name} | {value} |" for name, value in self.settings.items()]
            self.events.text("settings", "\n".join(["| setting | value |", "| --- | --- |", *rows]), state.step)

    def _write(self, group: str, values: Mapping[str, float], step: int) -> None:
        if self.events is not None:
            for name, value in values.items():
                self.events.scalar(f"{group}/{name}", value, step)

    def on_step(self, state: Any) -> None:
        if state.step % self.every == 0 or state.step == state.steps:
            values = {"loss": state.loss, **state.scalars}
            self._write("train", {name: value for name, value in values.items() if value == value}, state.step)

    def on_epoch(self, state: Any) -> None:
        self._write("epoch", {"loss": state.means["loss"]} if "loss" in state.means else {}, state.step)
        self._write("val", {name: value for name, value in (state.measure or {}).items() if name != "samples"},
                    state.step)

    def on_end(self, state: Any) -> None:
        if self.events is not None:
            self.events.close()
            self.events = None
