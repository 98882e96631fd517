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

from . import _forking

try:
    from . import _cameo
    from ._cameo import (ArgumentError, Cancel, CancelledError, DivergedError, Error, FileError, LimitError,
                         ModelError, NotFoundError, OutOfMemoryError, UnsupportedError)
    from ._findings import Finding
    from ._graph import Function, Graph, Node, Reference, Report, Training, ValueInfo
    from ._model import Model, load, merge
except BaseException:
    _forking.imported()
    raise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import (backend as backend, callbacks as callbacks, capi as capi, jax as jax, keras as keras,
                   operators as operators, ort as ort, sklearn as sklearn, torch as torch, training as training)
    from ._history import History as History
    from ._trainer import (Trainer as Trainer, checkpoint_notes as checkpoint_notes,
                           newest_checkpoint as newest_checkpoint, train as train)
    from ._checkpoint import Checkpoint as Checkpoint, checkpoint as checkpoint, export_formats as export_formats
    from ._compare import Comparison as Comparison, GradCheck as GradCheck
    from ._events import EventWriter as EventWriter
    from ._session import Session as Session
    from .operators import Operator as Operator, Registry as Registry, TensorType as TensorType, operator as operator
    from .ort import (ExecutionMode as ExecutionMode, ExecutionOrder as ExecutionOrder,
                      GraphOptimizationLevel as GraphOptimizationLevel, InferenceSession as InferenceSession,
                      IOBinding as IOBinding, ModelMetadata as ModelMetadata, NodeArg as NodeArg, OrtDevice as OrtDevice,
                      OrtValue as OrtValue, RunOptions as RunOptions, SessionOptions as SessionOptions,
                      get_all_providers as get_all_providers, get_available_providers as get_available_providers,
                      disable_telemetry_events as disable_telemetry_events,
                      enable_telemetry_events as enable_telemetry_events, get_build_info as get_build_info,
                      get_version_string as get_version_string, has_collective_ops as has_collective_ops,
                      preload_dlls as preload_dlls,
                      get_device as get_device, set_default_logger_severity as set_default_logger_severity,
                      set_default_logger_verbosity as set_default_logger_verbosity, set_seed as set_seed)

__version__ = _cameo.version()

# What needs NumPy comes when it is first asked for: `import cameo` alone is quick.
_LATER = {"Session": "_session", "Trainer": "_trainer", "checkpoint": "_checkpoint", "Checkpoint": "_checkpoint",
          "export_formats": "_checkpoint", "Comparison": "_compare", "GradCheck": "_compare",
          "train": "_trainer", "checkpoint_notes": "_trainer", "newest_checkpoint": "_trainer", "History": "_history"}
# ONNX Runtime's names: `import cameo as onnxruntime`.
_LATER.update(dict.fromkeys([
    "InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "OrtDevice", "IOBinding", "NodeArg", "ModelMetadata",
    "GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "get_available_providers", "get_all_providers",
    "get_device", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed", "get_version_string",
    "get_build_info", "enable_telemetry_events", "disable_telemetry_events", "preload_dlls", "has_collective_ops"],
    "ort"))
_LATER.update({"operator": "operators", "Operator": "operators", "Registry": "operators", "TensorType": "operators",
               "EventWriter": "_events"})

__all__ = ["load", "merge", "Model", "ValueInfo", "Finding", "Node", "Graph", "Function", "Training", "Reference",
           "Report", "Error", "ModelError", "ArgumentError", "NotFoundError",
           "UnsupportedError", "LimitError", "OutOfMemoryError", "FileError", "CancelledError", "DivergedError",
           "Cancel", "libraries", *_LATER]


def __getattr__(name: str) -> object:
    if name in _LATER:
        value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
        globals()[name] = value
        return value
    if name in ("backend", "callbacks", "capi", "jax", "keras", "operators", "ort", "sklearn", "torch", "training"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'cameo' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


def libraries() -> list[dict[str, str]]:
    """Libraries of others that are opened where they are found: a list of dicts with name, version, path, and why, where
    one cannot be used."""
    found: list[dict[str, str]] = _cameo.libraries()
    return found


_forking.imported()
