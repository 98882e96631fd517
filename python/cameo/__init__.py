# Cameo for Python.
# SPDX-License-Identifier: Apache-2.0
"""Cameo reads any ONNX model and checks it, runs it, differentiates it and trains it.

>>> import cameo, numpy
>>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
... line (float[N] x) => (float[N] y) <float w = {2}> { y = Mul(x, w) }''')
>>> model.run(x=numpy.array([1, 2, 3], numpy.float32))["y"]
array([2., 4., 6.], dtype=float32)
"""

import os

from . import _cameo
from ._arrays import from_value, numpy_type, to_value
from ._cameo import (ArgumentError, CancelledError, DivergedError, Error, FileError, LimitError, ModelError,
                     NotFoundError, OutOfMemoryError, UnsupportedError)

__version__ = _cameo.version()
__all__ = ["load", "Model", "Session", "ValueInfo", "Finding", "Error", "ModelError", "ArgumentError",
           "NotFoundError", "UnsupportedError", "LimitError", "OutOfMemoryError", "FileError", "CancelledError",
           "DivergedError", "libraries"]


def libraries():
    """Libraries of others that are opened where they are found: a list of dicts."""
    return _cameo.libraries()


class ValueInfo:
    """An input or output: name, type as ONNX writes it, dtype of NumPy, shape (numbers, names or None)."""

    __slots__ = ("name", "type", "number", "shape", "kind", "has_default")

    def __init__(self, row):
        self.name, self.type, self.number, self.shape, self.kind, self.has_default = row

    @property
    def dtype(self):
        return numpy_type(self.number)

    def __repr__(self):
        return f"{self.name}: {self.type}"


class Finding:
    """Something that is wrong with a model: rule, place, reason, help; severity is "violation" or "warning"."""

    __slots__ = ("rule", "severity", "place", "reason", "help")

    def __init__(self, row):
        self.rule, violation, self.place, self.reason, self.help = row
        self.severity = "violation" if violation else "warning"

    def __repr__(self):
        return f"{self.rule}: {self.place}: {self.reason}"


def load(source, *, copy=False, links=False):
    """Opens a model: a path, bytes, a file object, an onnx.ModelProto, or a model in ONNX's text form.

    copy reads files into memory instead of mapping them; links lets external data be symbolic links.
    """
    if isinstance(source, Model):
        return source
    if hasattr(source, "SerializeToString"):
        source = source.SerializeToString()
    elif hasattr(source, "read"):
        source = source.read()
    if isinstance(source, (bytearray, memoryview)):
        source = bytes(source)
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return Model(_cameo.load(source.encode(), format=2))
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    return Model(_cameo.load(source, copy=copy, links=links))


class Model:
    """A model. load() makes one."""

    def __init__(self, inside):
        self._inside = inside
        self._session = None

    @property
    def inputs(self):
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def outputs(self):
        return [ValueInfo(row) for row in self._inside.outputs()]

    def check(self, strict=False):
        """What is wrong with the model: a list of findings, empty where nothing is."""
        return [Finding(row) for row in self._inside.check(strict)]

    def run(self, outputs=None, /, **inputs):
        """Runs the model: inputs by name, results as a dict. The session is made at the first call and kept."""
        if self._session is None:
            self._session = Session(self)
        names = [output.name for output in self.outputs] if outputs is None else list(outputs)
        return dict(zip(names, self._session.run(names, inputs)))

    def text(self, elide=0):
        """The model in ONNX's text form; tensors of more than elide elements are shortened."""
        return self._inside.write(True, elide)

    def to_bytes(self):
        """The model as a file holds it."""
        return self._inside.write(False)

    def to_onnx(self):
        """The model as an onnx.ModelProto."""
        import onnx
        return onnx.load_from_string(self.to_bytes())

    def save(self, path, *, external=None, inline=False):
        """Writes the model, whole or not at all. external: tensors go to a file of this name, or True for one named
        after the model; inline: everything into the model's own file."""
        placement = 2 if inline else 1 if external else 0
        self._inside.save(os.fspath(path), placement, external if isinstance(external, str) else None)

    def __repr__(self):
        return f"<cameo.Model {', '.join(map(repr, self.inputs))} -> {', '.join(map(repr, self.outputs))}>"


class Session:
    """A model made ready to run. Any number of threads may run it at once; the interpreter lock is released."""

    def __init__(self, model, *, threads=0, memory_limit=0, backend=None, seed=0, without=None, expand=False):
        self.model = load(model)
        self._inside = _cameo.Session(self.model._inside, threads=threads, memory_limit=memory_limit, backend=backend,
                                      seed=seed, without=without, expand=expand)
        self._numbers = {row[0]: row[2] for row in self._inside.inputs()}

    @property
    def inputs(self):
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def outputs(self):
        return [ValueInfo(row) for row in self._inside.outputs()]

    def run(self, outputs, inputs):
        """Runs once: names of outputs (None: all) and a dict of inputs; a list of results."""
        numbers = self._numbers
        feeds = {name: to_value(value, numbers.get(name)) for name, value in inputs.items()}
        return [from_value(value) for value in self._inside.run(feeds, outputs)]
