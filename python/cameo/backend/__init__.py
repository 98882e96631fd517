# ONNX's backend interface.
# SPDX-License-Identifier: Apache-2.0
"""Cameo as a backend of ONNX: the functions that onnx.backend.base.Backend asks for.

>>> import onnx.parser, numpy
>>> from cameo import backend
>>> model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg(x) }')
>>> backend.run_model(model, [numpy.array([1, -2], numpy.float32)])[0]
array([-1.,  2.], dtype=float32)
"""

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

import cameo


class CameoRep(BackendRep):
    """A model made ready."""

    def __init__(self, session):
        self._session = session
        self._inputs = [info.name for info in session.inputs if not info.has_default]
        self._all = [info.name for info in session.inputs]
        self._outputs = [info.name for info in session.outputs]

    def run(self, inputs, **kwargs):
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            names = self._inputs if len(inputs) <= len(self._inputs) else self._all
            feeds = dict(zip(names, inputs))
        values = self._session.run(None, feeds)
        return namedtupledict("Outputs", self._outputs)(*values)


class CameoBackend(Backend):
    """See https://onnx.ai/onnx/repo-docs/ImplementingAnOnnxBackend.html"""

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        try:
            cls.prepare(model, device, **kwargs)
        except cameo.Error:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return CameoRep(cameo.Session(model, **kwargs))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        if not isinstance(inputs, dict):
            inputs = dict(zip(names, inputs))
        types = [onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in inputs.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", types, outputs)
        imports = [onnx.helper.make_opsetid(node.domain, opset)]
        return cls.run_model(onnx.helper.make_model(graph, opset_imports=imports), inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"


is_compatible = CameoBackend.is_compatible
prepare = CameoBackend.prepare
run_model = CameoBackend.run_model
run_node = CameoBackend.run_node
supports_device = CameoBackend.supports_device
