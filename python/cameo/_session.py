# Sessions.
# SPDX-License-Identifier: Apache-2.0
"""cameo.Session."""

from __future__ import annotations

import typing

import numpy

from . import _cameo
from ._check import Fixed, mapping, memory_limit as checked_limit, seed as checked_seed
from ._graph import ValueInfo
from ._model import Model, _few, load

if typing.TYPE_CHECKING:
    from .operators import Registry


def _room(name: str, array: typing.Any) -> typing.Any:
    """Memory to be written to, of another library's tensor too."""
    if isinstance(array, numpy.ndarray) or not hasattr(type(array), "__dlpack__"):
        return array
    try:
        return numpy.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError) as error:
        raise _cameo.ArgumentError(f"the memory for output '{name}': {error}") from error


class Session(Fixed):
    """A model made ready to run. Any number of threads may run it at once; the interpreter lock is released.

    >>> import cameo, numpy
    >>> session = cameo.Session('''<ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N] x) => (float[N] y) <float w = {2}> { y = Mul(x, w) }''')
    >>> session.run(["y"], {"x": numpy.array([1, 2, 3], numpy.float32)})
    [array([2., 4., 6.], dtype=float32)]
    """

    def __init__(self, model: typing.Any, *, threads: int = 0, memory_limit: int | str = 0, backend: str | None = None,
                 seed: int = 0, without: str | None = None, expand: bool = False,
                 registry: Registry | None = None) -> None:
        self.model: Model = load(model, registry=registry)
        self._inside = _cameo.Session(self.model._inside, threads=threads, backend=backend,
                                      memory_limit=checked_limit(memory_limit), seed=checked_seed(seed),
                                      without=without, expand=expand)
        self._run: typing.Callable[..., list[typing.Any]] = self._inside.run

    def __repr__(self) -> str:
        return f"<cameo.Session {_few(self.inputs)} -> {_few(self.outputs)}>"

    @property
    def inputs(self) -> list[ValueInfo]:
        """What is fed."""
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def outputs(self) -> list[ValueInfo]:
        """What comes out; types are as good as inference can make them."""
        return [ValueInfo(row) for row in self._inside.outputs()]

    def run(self, outputs: typing.Sequence[str] | None, inputs: dict[str, typing.Any],
            cancel: _cameo.Cancel | None = None) -> list[typing.Any]:
        """Runs once: names of outputs (None: all) and a dict of inputs; a list of results.

        Arrays of the declared type are read where they lie, and results see the library's memory: nothing is copied.
        cancel, a cameo.Cancel, stops the run from another thread.
        """
        return self._run(outputs, inputs, cancel) if cancel else self._run(outputs, inputs)

    def run_into(self, outputs: dict[str, typing.Any], inputs: dict[str, typing.Any],
                 cancel: _cameo.Cancel | None = None) -> None:
        """Runs once, with results written to arrays of the caller's: dense, of exactly the type and shape of the result.

        >>> import cameo, numpy
        >>> session = cameo.Session('''<ir_version: 8, opset_import: ["" : 17]>
        ... double (float[N] x) => (float[N] y) { y = Add(x, x) }''')
        >>> y = numpy.empty(2, numpy.float32)
        >>> session.run_into({"y": y}, {"x": numpy.array([1, 2], numpy.float32)})
        >>> y
        array([2., 4.], dtype=float32)
        """
        rooms = {name: _room(name, array) for name, array in mapping("outputs", outputs).items()}
        self._run(None, mapping("inputs", inputs), cancel, None, rooms)

    def profile(self, inputs: dict[str, typing.Any]) -> list[dict[str, typing.Any]]:
        """Runs once and tells what ran: a dict for each step, in order, with node, domain, op, kernel (who computed it),
        declined (why faster ones did not), depth (0: the graph itself), begin_ns and end_ns since the run began,
        live_bytes, id (of the node) and flops.

        >>> import cameo
        >>> [row["op"] for row in cameo.Session('''<ir_version: 8, opset_import: ["" : 17]>
        ... wave (float[N] x) => (float[N] y) { y = Sin(x) }''').profile({"x": [0.0, 1.0]})]
        ['Sin']
        """
        rows: list[dict[str, typing.Any]] = []
        self._run(None, inputs, None, rows)
        return rows
