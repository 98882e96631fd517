# Inference by ONNX's backend interface.
# SPDX-License-Identifier: Apache-2.0
"""Models and single nodes by onnx.backend.base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import onnx
import onnx.backend.base
import onnx.defs
import onnx.helper

import cameo
from cameo._arrays import fitting

# What onnx.backend.test hands to every call of a backend beside the options of that backend.
_OF_THE_RUNNER = ("rtol", "atol")


def options_of(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that are options of ours."""
    return {key: value for key, value in kwargs.items() if key not in _OF_THE_RUNNER}


def check_device(device: str) -> None:
    """Refuses every device but the CPU."""
    if not supports(device):
        raise cameo.UnsupportedError(f"device '{device}' is not supported, expected 'CPU'")


def supports(device: str) -> bool:
    return device in ("CPU", "CPU:0")


def as_declared(declared: str, value: Any) -> Any:
    """What an input is fed that the model declares with this type: numbers and lists of numbers become arrays, and a
    list is a sequence where the type is one, whatever its items look like."""
    if declared.startswith("optional("):
        return as_declared(declared[len("optional("):-1], value)
    if declared.startswith("seq(") and isinstance(value, (list, tuple, numpy.ndarray)):
        return [as_declared(declared[len("seq("):-1], item) for item in value]
    if declared.startswith(("seq(", "map(")) or not isinstance(value, (bool, int, float, complex, str, list, tuple)):
        return value
    number = onnx.TensorProto.DataType.Value(declared.split("[")[0].upper())
    if number == onnx.TensorProto.STRING:
        return numpy.asarray(value, dtype=object)
    return fitting("it", value, number)


def named_inputs(inputs: Any, infos: Sequence[cameo.ValueInfo]) -> dict[str, Any]:
    """Inputs by name out of a dict, a list or tuple in the order of the model's inputs (those with a default value may
    be left out), or one value that is neither."""
    if not isinstance(inputs, Mapping):
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        needed = [info for info in infos if not info.has_default]
        order = needed if len(values) <= len(needed) else infos
        if len(values) > len(order):
            raise cameo.ArgumentError(f"{len(values)} inputs are given, the model has {len(order)}")
        inputs = {info.name: value for info, value in zip(order, values)}
    types = {info.name: info.type for info in infos}
    feeds = {}
    for name, value in inputs.items():
        try:
            feeds[name] = as_declared(types[name], value) if name in types else value
        except (TypeError, ValueError, OverflowError) as problem:  # NumPy's, of lists that are not an array
            raise cameo.ArgumentError(f"input '{name}' cannot be made {types[name]}: {problem}") from None
    return feeds


class BackendRep(onnx.backend.base.BackendRep):
    """A model made ready to run; Backend.prepare makes it."""

    def __init__(self, session: cameo.Session) -> None:
        self._session = session
        self._inputs = session.inputs
        self._outputs = onnx.backend.base.namedtupledict("Outputs", [info.name for info in session.outputs])

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs once. inputs: a list or tuple in the order of the model's inputs, a dict by name, or the one value.
        Results can be indexed by position and by name."""
        return self._outputs(*self._session.run(None, named_inputs(inputs, self._inputs)))


class Inference(onnx.backend.base.Backend):
    """The half of cameo.backend.Backend that runs. Keyword arguments are options of cameo.Session (threads, ..)."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether prepare would succeed."""
        try:
            cls.prepare(model, device, **kwargs)
        except cameo.Error:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Makes a model ready: an onnx.ModelProto, or whatever cameo.load takes."""
        check_device(device)
        return BackendRep(cameo.Session(model, **options_of(kwargs)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Makes a model ready and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """Runs one node. inputs: a list in the order of the node's inputs (None, or nothing, for one that is left out)
        or a dict by name; outputs_info: (dtype, shape) of each output, where known; opset_version: of the node's domain.

        >>> import numpy, onnx.helper
        >>> node = onnx.helper.make_node("Clip", ["x", "", "high"], ["y"])
        >>> Inference.run_node(node, [numpy.array([1., 9.]), numpy.array(5.)])["y"]
        array([1., 5.])
        """
        version = kwargs.pop("opset_version", None) or _newest_version(node)
        feeds = _node_inputs(node, inputs)
        declared = [_value_info(name, value) for name, value in feeds.items()]
        names = [name for name in node.output if name]
        known = dict(zip(names, outputs_info)) if outputs_info else {}
        outputs = [onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(known[name][0])), known[name][1])
            if name in known else onnx.ValueInfoProto(name=name) for name in names]
        graph = onnx.helper.make_graph([node], "node", declared, outputs)
        imports = [onnx.helper.make_opsetid(node.domain, version)]
        return cls.run_model(onnx.helper.make_model(graph, opset_imports=imports), feeds, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can run on a device: "CPU", "CPU:0"."""
        return supports(device)


def _newest_version(node: onnx.NodeProto) -> int:
    """The opset version of a node's domain that onnx knows best."""
    if node.domain in ("", "ai.onnx"):
        return int(onnx.defs.onnx_opset_version())
    versions = [schema.since_version for schema in onnx.defs.get_all_schemas_with_history()
                if schema.domain == node.domain]
    return max(versions, default=1)


def _node_inputs(node: onnx.NodeProto, inputs: Any) -> dict[str, Any]:
    """By name, without those that are left out. A node may read one value twice."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    names = list(node.input) if len(values) == len(node.input) else [name for name in node.input if name]
    if len(values) > len(names):
        raise cameo.ArgumentError(f"{len(values)} inputs are given, node {node.op_type} has {len(names)}")
    return {name: value for name, value in zip(names, values) if name}


def _value_info(name: str, value: Any) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=name)
    info.type.CopyFrom(_type_of(value))
    return info


def _type_of(value: Any) -> onnx.TypeProto:
    """The type that a value would be declared with."""
    if isinstance(value, (list, tuple)) and value and not numpy.isscalar(value[0]):
        return onnx.helper.make_sequence_type_proto(_without_shape(_type_of(value[0])))
    if isinstance(value, dict) and value:
        key, item = next(iter(value.items()))
        kind = onnx.TensorProto.STRING if isinstance(key, str) else onnx.TensorProto.INT64
        return onnx.helper.make_map_type_proto(kind, _type_of(numpy.asarray(item)))
    array = numpy.asarray(value)
    text = array.dtype.kind in "OSU"
    number = onnx.TensorProto.STRING if text else onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.helper.make_tensor_type_proto(number, array.shape)


def _without_shape(kind: onnx.TypeProto) -> onnx.TypeProto:
    """Items of a sequence may differ in shape."""
    if kind.HasField("tensor_type"):
        kind.tensor_type.ClearField("shape")
    return kind
