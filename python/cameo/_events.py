# Event files of TensorBoard.
# SPDX-License-Identifier: Apache-2.0
"""cameo.EventWriter."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Optional, Union

from . import _cameo
from ._check import Fixed


class EventWriter(Fixed):
    """Writes an event file of TensorBoard into a folder, which is made where it is not. Each point is in the file when
    the call returns; any thread may write.

    >>> import tempfile, cameo
    >>> with tempfile.TemporaryDirectory() as folder, cameo.EventWriter(folder) as events:
    ...     for step in range(3):
    ...         events.scalar("train/loss", 1 / (step + 1), step)
    ...     events.text("settings", "| lr | 0.001 |")
    """

    def __init__(self, folder: Union[str, "os.PathLike[str]"]) -> None:
        self._inside = _cameo.Events(os.fspath(folder))
        self.path: str = self._inside.path

    def scalar(self, tag: str, value: float, step: int, time: float = 0.0) -> None:
        """A point of the curve tag. time is in seconds since 1970; 0 is now."""
        self._inside.scalar(tag, step, time, float(value))

    def text(self, tag: str, text: str, step: int = 0, time: float = 0.0) -> None:
        """A text, which may be Markdown."""
        self._inside.text(tag, step, time, text)

    def resume(self, step: int, time: float = 0.0) -> None:
        """A run goes on at this step: what earlier files of the folder have of it and later ones is forgotten."""
        self._inside.resume(step, time)

    def close(self) -> None:
        """Ends the file, and raises where it could not be kept; doing so twice does no harm."""
        self._inside.close()

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cameo.EventWriter {self.path}>"
