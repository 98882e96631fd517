# Cameo for Python.
# SPDX-License-Identifier: Apache-2.0
"""Cameo reads any ONNX model and checks it, runs it, differentiates it and trains it.

>>> import cameo, numpy
>>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
... line (float[N] x) => (float[N] y) <float w = {2}> { y = Mul(x, w) }''')
>>> model.run(x=numpy.array([1, 2, 3], numpy.float32))["y"]
array([2., 4., 6.], dtype=float32)
"""

import importlib

from . import _cameo
from ._cameo import (ArgumentError, CancelledError, DivergedError, Error, FileError, LimitError, ModelError,
                     NotFoundError, OutOfMemoryError, UnsupportedError)
from ._model import Finding, Model, ValueInfo, load

__version__ = _cameo.version()

# What needs NumPy comes when it is first asked for: `import cameo` alone is quick.
_LATER = {"Session": "_session", "Trainer": "_trainer", "operator": "operators", "Operator": "operators",
          "Registry": "operators", "TensorType": "operators", "EventWriter": "_events"}

__all__ = ["load", "Model", "ValueInfo", "Finding", "Error", "ModelError", "ArgumentError", "NotFoundError",
           "UnsupportedError", "LimitError", "OutOfMemoryError", "FileError", "CancelledError", "DivergedError",
           "libraries", *_LATER]


def __getattr__(name):
    if name in _LATER:
        value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'cameo' has no attribute '{name}'")


def __dir__():
    return sorted(set(globals()) | set(__all__))


def libraries():
    """Libraries of others that are opened where they are found: a list of dicts."""
    return _cameo.libraries()
