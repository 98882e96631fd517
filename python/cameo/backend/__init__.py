# ONNX's backend interface, and training beside it.
# SPDX-License-Identifier: Apache-2.0
"""Cameo as a backend of ONNX: what onnx.backend.base.Backend asks for, as a class and as functions of this module.

>>> import onnx.parser, numpy
>>> import cameo.backend
>>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
... negate (float[N] x) => (float[N] y) { y = Neg(x) }''')
>>> cameo.backend.run_model(model, [numpy.array([1, -2], numpy.float32)])["y"]
array([-1.,  2.], dtype=float32)

What ONNX does not have is here too: prepare_training makes a model ready to be trained. cameo.backend.training describes
that interface for other backends, and cameo.backend.training_tests tests one.
"""

from ._inference import BackendRep, Inference
from ._training import Training, TrainingRep
from .training import TrainingBackend, TrainingBackendRep

__all__ = ["Backend", "BackendRep", "TrainingBackend", "TrainingBackendRep", "TrainingRep", "is_compatible", "prepare",
           "prepare_training", "run_model", "run_node", "supports_device"]


class Backend(Inference, Training):
    """Runs and trains models on the CPU. The module has the same methods as functions.

    https://onnx.ai/onnx/repo-docs/ImplementingAnOnnxBackend.html describes inference, docs/backend.md both.
    """


is_compatible = Backend.is_compatible
prepare = Backend.prepare
prepare_training = Backend.prepare_training
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
