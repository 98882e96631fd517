# ONNX's backend interface.
# SPDX-License-Identifier: Apache-2.0
"""Cameo as a backend of ONNX: what onnx.backend.base.Backend asks for, as a class and as functions of this module.

>>> import onnx.parser, numpy
>>> import cameo.backend
>>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
... negate (float[N] x) => (float[N] y) { y = Neg(x) }''')
>>> cameo.backend.run_model(model, [numpy.array([1, -2], numpy.float32)])["y"]
array([-1.,  2.], dtype=float32)
"""

from ._inference import Backend, BackendRep

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
