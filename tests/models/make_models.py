#!/usr/bin/env python3
# Writes the small models beside it, and the seeds of the decoder's fuzz target. Needs the onnx package.
# SPDX-License-Identifier: Apache-2.0
"""usage: make_models.py

The files are committed; run this when a model is added. training_*.onnx are not written here: their training was computed
step by step elsewhere, and their bytes are part of those tests.
"""

import pathlib

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor as Field
from onnx import TensorProto, helper, numpy_helper

import wire

HERE = pathlib.Path(__file__).resolve().parent
SEEDS = HERE.parent / "fuzz" / "corpus" / "fuzz_decode"


class Filler:
    """Sets every field of a message. Each type is filled as often as its oneof has members, at least once; after that its
    messages are there but empty, which ends the recursion and keeps the file small."""

    def __init__(self):
        self.times = {}
        self.number = 0

    def value(self, field):
        self.number += 1
        if field.type in (Field.TYPE_STRING, Field.TYPE_BYTES):
            text = f"{field.name}_{self.number}"
            return text if field.type == Field.TYPE_STRING else text.encode()
        if field.type in (Field.TYPE_FLOAT, Field.TYPE_DOUBLE):
            return self.number + 0.5
        if field.type == Field.TYPE_ENUM:
            return field.enum_type.values[-1].number
        if field.type == Field.TYPE_UINT64:
            return 2**64 - self.number
        return -self.number if self.number % 2 else self.number * 1000

    def fill(self, message):
        descriptor = message.DESCRIPTOR
        oneof = descriptor.oneofs[0].fields if descriptor.oneofs else [None]
        times = self.times.get(descriptor.full_name, 0)
        if times == len(oneof):
            return message
        self.times[descriptor.full_name] = times + 1
        for field in descriptor.fields:
            if field.containing_oneof is None or field is oneof[times]:
                self.set(message, field)
        return message

    def set(self, message, field):
        at = getattr(message, field.name)
        if field.type == Field.TYPE_MESSAGE:
            for child in (at.add(), at.add()) if field.is_repeated else (at,):
                child.SetInParent()
                self.fill(child)
        elif field.is_repeated:
            at.extend([self.value(field), self.value(field)])
        else:
            setattr(message, field.name, self.value(field))


def model(graph, opset=21, **more):
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="cameo-tests", **more
    )


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def linear():
    weight = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "W")
    bias = helper.make_tensor("B", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    node = helper.make_node("Gemm", ["X", "W", "B"], ["Y"], name="gemm", alpha=0.5, transB=0)
    return model(
        helper.make_graph([node], "linear", [value("X", ["n", 2])], [value("Y", ["n", 3])], [weight, bias])
    )


def branches():
    def branch(name, op):
        return helper.make_graph(
            [helper.make_node(op, ["x"], [f"{name}_y"])], name, [], [value(f"{name}_y", [2])]
        )

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("yes", "Neg"), else_branch=branch("no", "Abs")
    )
    inputs = [value("c", [], TensorProto.BOOL), value("x", [2])]
    return model(helper.make_graph([node], "branches", inputs, [value("y", [2])]))


def functions():
    opsets = [helper.make_opsetid("", 21)]
    body = [
        helper.make_node("Constant", [], ["slope"]),
        helper.make_node("Mul", ["x", "slope"], ["scaled"]),
        helper.make_node("Max", ["x", "scaled"], ["y"]),
    ]
    body[0].attribute.add(name="value_float", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function(
        "local", "Leaky", ["x"], ["y"], body, opsets, ["beta"], [helper.make_attribute("alpha", 0.1)]
    )
    node = helper.make_node("Leaky", ["a"], ["b"], domain="local", beta=[1, 2])
    graph = helper.make_graph([node], "functions", [value("a", [4])], [value("b", [4])])
    return helper.make_model(
        graph, opset_imports=[*opsets, helper.make_opsetid("local", 1)], functions=[function]
    )


def sparse():
    values = helper.make_tensor("S", TensorProto.FLOAT, [2], [1.5, -2.5])
    indices = helper.make_tensor("", TensorProto.INT64, [2], [1, 4])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "S"], ["y"])],
        "sparse",
        [value("x", [2, 3])],
        [value("y", [2, 3])],
        sparse_initializer=[helper.make_sparse_tensor(values, indices, [2, 3])],
    )
    graph.node.add(
        op_type="Constant",
        output=["z"],
        attribute=[helper.make_attribute("sparse_value", graph.sparse_initializer[0])],
    )
    return model(graph)


def types():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT16, ["n", None, 3])
    sequence = helper.make_sequence_type_proto(tensor)
    kinds = {
        "tensor": tensor,
        "sequence": sequence,
        "optional": helper.make_optional_type_proto(sequence),
        "map": helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.INT64, [])),
        "sparse": helper.make_sparse_tensor_type_proto(TensorProto.DOUBLE, [5]),
        "no_shape": helper.make_tensor_type_proto(TensorProto.BOOL, None),
    }
    opaque = onnx.TypeProto()
    opaque.opaque_type.domain, opaque.opaque_type.name = "elsewhere", "thing"
    kinds["opaque"] = opaque
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in kinds]
    graph = helper.make_graph(
        nodes,
        "types",
        [helper.make_value_info(name, kind) for name, kind in kinds.items()],
        [helper.make_value_info(f"{name}_out", kind) for name, kind in kinds.items()],
    )
    graph.node.add(op_type="Optional", output=["none"], attribute=[helper.make_attribute("type", sequence)])
    return model(graph)


def elements():
    """A tensor of every element type, in the typed field and in raw_data."""
    tensors = []
    for name, number in TensorProto.DataType.items():
        if number == TensorProto.UNDEFINED:
            continue
        complex_type = number in (TensorProto.COMPLEX64, TensorProto.COMPLEX128)
        values = [b"one", b"", b"thr\xffee"] if number == TensorProto.STRING else [1, 0, 1]
        tensors.append(helper.make_tensor(f"{name.lower()}_typed", number, [3], [complex(v) for v in values] if complex_type else values))
        if number != TensorProto.STRING:
            # Not the array's own bytes: numpy gives each element below a byte a whole one.
            tensors.append(numpy_helper.from_array(numpy_helper.to_array(tensors[-1]), f"{name.lower()}_raw"))
    graph = helper.make_graph([], "elements", [], [], tensors)
    return model(graph, 25)


def external():
    tensor = TensorProto(dims=[2, 2], data_type=TensorProto.FLOAT, name="W")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "weights.bin"), ("offset", "64"), ("length", "16")):
        tensor.external_data.add(key=key, value=text)
    node = helper.make_node("MatMul", ["X", "W"], ["Y"])
    return model(helper.make_graph([node], "external", [value("X", [1, 2])], [value("Y", [1, 2])], [tensor]))


def strings():
    node = helper.make_node("StringConcat", ["a", "b"], ["c"])
    tensor = helper.make_tensor("b", TensorProto.STRING, [2], ["\N{GREEK SMALL LETTER ALPHA}".encode(), b""])
    text = TensorProto.STRING
    return model(helper.make_graph([node], "strings", [value("a", [2], text)], [value("c", [2], text)], [tensor]))


def values():
    sequence = onnx.SequenceProto(name="sequence", elem_type=onnx.SequenceProto.MAP)
    table = sequence.map_values.add(name="map", key_type=TensorProto.STRING, string_keys=[b"a", b"b"])
    table.values.elem_type = onnx.SequenceProto.TENSOR
    table.values.tensor_values.add(dims=[1], data_type=TensorProto.FLOAT, float_data=[1.0])
    table.values.tensor_values.add(dims=[0], data_type=TensorProto.FLOAT)
    return sequence


def hostile():
    """Files that lie."""
    varint, field = wire.varint, wire.field
    small = linear().SerializeToString()
    deep = b""
    for _ in range(400):  # graph in an attribute of a node of a graph
        deep = field(1, field(5, field(6, deep)))
    nested_type = b""
    for _ in range(400):
        nested_type = field(4, field(1, nested_type))
    yield "deep_graphs", field(7, deep)
    yield "deep_types", field(7, field(11, field(2, nested_type)))
    yield "cut", small[: len(small) // 2]
    yield "long_length", b"\x3a" + varint(2**63) + small
    yield "group", field(7, b"\x0b\x0c")
    yield "field_zero", b"\x02\x00"
    yield "long_varint", b"\x08" + b"\xff" * 11
    yield "two_graphs", small + small
    yield "two_dims", field(7, field(11, field(2, field(1, field(2, field(1, b"\x08\x01\x12\x01n"))))))
    yield "many_empty", field(7, field(5, b"") * 1500)
    yield "huge_dims", field(7, field(5, field(1, varint(2**62) * 8) + b"\x10\x01"))
    yield "broken_packed", field(7, field(5, field(7, b"\x01\xff")))


def main():
    made = {
        f.__name__: f().SerializeToString()
        for f in (linear, branches, functions, sparse, types, elements, external, strings)
    }
    made["every_field"] = Filler().fill(onnx.ModelProto()).SerializeToString()
    made["foreign"] = wire.foreign(functions())
    made["unpacked"] = wire.unpacked(elements())
    SEEDS.mkdir(parents=True, exist_ok=True)
    for name, data in made.items():
        (HERE / f"{name}.onnx").write_bytes(data)
        if len(data) < 4096:
            (SEEDS / f"{name}.onnx").write_bytes(data)
    for name, data in hostile():
        (SEEDS / name).write_bytes(data)
    for path in HERE.glob("training_*.onnx"):
        (SEEDS / path.name).write_bytes(path.read_bytes())
    for name, message in (
        ("sequence", Filler().fill(onnx.SequenceProto())),
        ("map", Filler().fill(onnx.MapProto())),
        ("optional", Filler().fill(onnx.OptionalProto())),
        ("operator_set", Filler().fill(onnx.OperatorSetProto())),
        ("values", values()),
    ):
        (HERE / f"every_field_{name}.pb" if name != "values" else HERE / "values.pb").write_bytes(
            message.SerializeToString()
        )


if __name__ == "__main__":
    main()
