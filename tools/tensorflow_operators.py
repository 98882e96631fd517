#!/usr/bin/env python3
"""Writes data/frameworks/tensorflow/lib/operators.txt: operands, results and attributes of the operators of TensorFlow
that rows name, with the types that kernels for processors take, from TensorFlow's own registry.

Run it with a Python that has TensorFlow (tools/setup.sh checkpoints) after a row names a new operator.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels, op_def_registry

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "data/frameworks/tensorflow"
NAMES = {
    "DT_FLOAT": "f32", "DT_DOUBLE": "f64", "DT_INT32": "i32", "DT_UINT8": "u8", "DT_INT16": "i16",
    "DT_INT8": "i8", "DT_STRING": "string", "DT_COMPLEX64": "c64", "DT_INT64": "i64", "DT_BOOL": "bool",
    "DT_BFLOAT16": "bf16", "DT_UINT16": "u16", "DT_COMPLEX128": "c128", "DT_HALF": "f16",
    "DT_RESOURCE": "resource", "DT_VARIANT": "variant", "DT_UINT32": "u32", "DT_UINT64": "u64",
}
KINDS = {
    "int": "int", "float": "float", "bool": "bool", "string": "text", "type": "type", "list(type)": "types",
    "list(int)": "ints", "shape": "shape", "func": "function",
}
HEAD = """// Operators of TensorFlow: operands -> results ; attributes, with the types that kernels for processors take.
// Written by tools/tensorflow_operators.py.
"""


def type_name(number):
    return NAMES.get(types_pb2.DataType.Name(number))


def argument(arg):
    if arg.type_list_attr:
        return f"{arg.name}:*{arg.type_list_attr}"
    kind = arg.type_attr or type_name(arg.type)
    return f"{arg.name}:{arg.number_attr}*{kind}" if arg.number_attr else f"{arg.name}:{kind}"


def types_of(name, attr):
    """Types that some kernel for processors takes as this attribute; those that the definition allows if none says."""
    found, is_open = set(), False
    for kernel in kernels.get_registered_kernels_for_op(name).kernel:
        if kernel.device_type != "CPU":
            continue
        said = [c for c in kernel.constraint if c.name == attr.name]
        is_open |= not said
        for constraint in said:
            found |= {type_name(t) for t in constraint.allowed_values.list.type}
    allowed = {type_name(t) for t in attr.allowed_values.list.type}
    if is_open or not found:
        found = allowed
    elif allowed:
        found &= allowed
    found.discard(None)
    return ",".join(n for n in NAMES.values() if n in found) or "*"


def line(name):
    op = op_def_registry.get(name)
    if op is None:
        sys.exit(f"TensorFlow has no operator {name}")
    attrs = []
    for attr in op.attr:
        kind = KINDS.get(attr.type, "other")
        text = f"{attr.name}={kind}"
        if kind == "type":
            text += f":{types_of(name, attr)}"
            if attr.HasField("default_value") and type_name(attr.default_value.type):
                text += f"/{type_name(attr.default_value.type)}"
        attrs.append(text)
    parts = [name, *map(argument, op.input_arg), "->", *map(argument, op.output_arg), ";", *attrs]
    return " ".join(parts)


def main():
    names = set()
    for path in ROWS.rglob("*.txt"):
        if path.name == "operators.txt":
            continue
        text = path.read_text()
        names |= set(re.findall(r"= ([A-Z]\w*)\(", text))
        for choice in re.findall(r"= \$\{([^}]*)\}\(", text):
            names |= {n for n in re.findall(r'"([A-Z]\w*)', choice) if op_def_registry.get(n)}
        for op, _ in re.findall(r'@do pool\("(\w+)"(.)', text):
            names |= {op, op + "3D"}
    for path in (ROOT / "src/convert/savedmodel").glob("*.c"):
        names |= {n for n in re.findall(r"= ([A-Z]\w*)\(", path.read_text()) if op_def_registry.get(n)}
    names = sorted(names)
    (ROWS / "lib/operators.txt").write_text(HEAD + "".join(line(n) + "\n" for n in names))


if __name__ == "__main__":
    main()
