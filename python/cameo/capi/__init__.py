# SPDX-License-Identifier: Apache-2.0
"""Where ONNX Runtime keeps the names of its exceptions."""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import onnxruntime_pybind11_state as onnxruntime_pybind11_state


def __getattr__(name: str) -> object:
    if name == "onnxruntime_pybind11_state":
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'cameo.capi' has no attribute '{name}'")
