#!/usr/bin/env python3
# Has ONNX Runtime run the operator cases of its own domain and compares with what they say.
# SPDX-License-Identifier: Apache-2.0
"""usage: judge_microsoft.py FOLDER [--show]

Reads the cases of com.microsoft in those FOLDER/*.txt that name ONNX Runtime as their judge in the first
line (tests/ops/README.md has their format, of which this knows tensors with elements written out or
filled) and runs each as a model of one node. A result that
differs is printed and makes the exit status 1. What ONNX Runtime has no kernel for, cases whose comment says
"by hand", and cases that must be refused are counted apart; --show names the first two.
"""

import collections
import pathlib
import re
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

DOMAIN = "com.microsoft"
JUDGED = "Results are those of ONNX Runtime"
TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_, "i8": np.int8,
    "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "str": np.object_,
}
# Relative to the largest element; a case may say more.
TOLERANCE = {"float16": 1e-3, "float32": 2e-6, "float64": 1e-9}
OPTIONS = {"tol", "body", "grad", "grad2", "unknown", "rank", "opset", "seed"}
VALUE = re.compile(r"(\w+) (\w+)(?:\[([\d,]*)\])? = ?(.*)", re.DOTALL)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
ATTRIBUTE = re.compile(
    r'(\w+)=(\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]|"(?:[^"\\]|\\.)*"|\S+)')
ITEM = re.compile(r'"(?:[^"\\]|\\.)*"|[^,\s]+')


# Without VNNI, ONNX Runtime's products of uint8 and int8 saturate at 16 bits: it is no judge of them.
HAS_VNNI = "vnni" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
STATE = onnxruntime.capi.onnxruntime_pybind11_state
REFUSALS = (STATE.Fail, STATE.InvalidArgument, STATE.InvalidGraph, STATE.NotImplemented,
            STATE.RuntimeException)


class Unreadable(Exception):
    """A case in a form that this script does not know."""


def read_blocks(text):
    """(line number, lines) of each case, lines that go on put together, comments left out. Those that say
    "by hand" have no lines."""
    block, first, by_hand = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        if line.startswith("#"):
            by_hand = by_hand or "by hand" in line
        elif line.startswith(" ") and block:
            block[-1] += line
        elif line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield first, [] if by_hand else block
            block, by_hand = [], False


def read_text(text):
    """What stands between quotes: bytes of UTF-8, some of them escaped."""
    try:
        return text.encode().decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError as error:
        raise Unreadable(text[:60]) from error


def read_value(line):
    found = VALUE.fullmatch(line)
    if line == "-":
        return None
    if not found or found[2] not in TYPES:
        raise Unreadable(line[:60])
    dtype, words = TYPES[found[2]], found[4].split()
    if dtype is np.object_:
        words = [read_text(text) for text in STRING.findall(found[4])]
    shape = [int(size) for size in found[3].split(",")] if found[3] else []
    shape = shape if found[3] != "" else [0]
    if words and words[0].startswith("fill("):
        words = [words[0][5:-1]] * int(np.prod(shape))
    elif dtype is not np.object_ and (words == ["?"] or words and "(" in words[0]):
        raise Unreadable(line[:60])
    if dtype == np.bool_:
        words = [word == "true" for word in words]
    if not issubclass(dtype, np.floating):
        words = [int(word) for word in words] if issubclass(dtype, np.integer) else words
        return np.array(words, dtype).reshape(shape)
    return np.array(words, np.float64).astype(dtype).reshape(shape)


def read_item(word, kind):
    if word.startswith('"'):
        return read_text(word[1:-1])
    return float(word) if kind.name.startswith("FLOAT") else int(word)


def read_attributes(text, schema):
    attributes = {}
    for name, word in ATTRIBUTE.findall(text):
        kind = schema.attributes[name].type
        is_list = word.startswith("[")
        words = ITEM.findall(word[1:-1]) if is_list else [word]
        items = [read_item(item, kind) for item in words]
        attributes[name] = items if is_list else items[0]
    return attributes


class Case:
    def __init__(self, lines, schemas):
        self.tolerance, self.refused, values = None, False, []
        while lines[0].split()[0] in OPTIONS:
            self.read_option(lines.pop(0))
        name, _, rest = lines.pop(0).partition(" ")
        if not name.startswith(DOMAIN + "."):
            raise Unreadable(name)
        self.op = name[len(DOMAIN) + 1:]
        self.schema = schemas[self.op]
        self.attributes = read_attributes(rest, self.schema)
        arrow = None
        for line in lines:
            if line.startswith("!"):
                self.refused = True
            elif line == "=>":
                arrow = len(values)
            elif line.split()[0] in OPTIONS and " = " not in line:
                self.read_option(line)
            else:
                values.append(read_value(line))
        arrow = len(values) - (not self.refused) if arrow is None else arrow
        self.inputs, self.outputs = values[:arrow], values[arrow:]
        # ONNX Runtime multiplies as integers only where it has packed the weights, which must be constant for that.
        self.n_fed = 1 if self.attributes.get("accuracy_level") == 4 else len(self.inputs)

    def read_option(self, line):
        words = line.split()
        if words[0] == "tol":
            self.tolerance = float(words[1])

    def model(self):
        given = [f"i{i}" if x is not None else "" for i, x in enumerate(self.inputs)]
        asked = [f"o{i}" if y is not None else "" for i, y in enumerate(self.outputs)]
        asked += [""] * (self.schema.min_output - len(asked))

        def info(name, array):
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            kind = onnx.TensorProto.STRING if array.dtype == np.object_ else kind
            return helper.make_tensor_value_info(name, kind, None if name[0] == "o" else array.shape)

        node = helper.make_node(self.op, given, asked, domain=DOMAIN, **self.attributes)
        fed = [(n, x) for n, x in zip(given, self.inputs) if n]
        fed, constant = fed[:self.n_fed], fed[self.n_fed:]
        graph = helper.make_graph(
            [node], self.op, [info(n, x) for n, x in fed], [info(n, y) for n, y in zip(asked, self.outputs) if n],
            [numpy_helper.from_array(x, n) for n, x in constant])
        imports = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def multiplies_mixed_signs(self):
        """Is an operand of rank 2 or more of int8, as weights are that meet uint8?"""
        return any(x is not None and x.dtype == np.int8 and x.ndim >= 2 for x in self.inputs)

    def difference(self):
        """What ONNX Runtime says otherwise, or None."""
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1  # some results depend on it
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            self.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
        feeds = {f"i{i}": x for i, x in enumerate(self.inputs[:self.n_fed]) if x is not None}
        wanted = [y for y in self.outputs if y is not None]
        for number, (got, said) in enumerate(zip(session.run(None, feeds), wanted)):
            if got.shape != said.shape or got.dtype != said.dtype:
                return f"result {number} is {got.dtype}{list(got.shape)}"
            if said.dtype == np.object_:
                if (got != said).any():
                    return f"result {number} differs"
                continue
            tolerance = self.tolerance or TOLERANCE.get(said.dtype.name, 0)
            wide, ours = got.astype(np.float64), said.astype(np.float64)
            most = np.abs(ours[np.isfinite(ours)]).max(initial=0)
            if not np.allclose(wide, ours, rtol=tolerance, atol=tolerance * most, equal_nan=True):
                return f"result {number} differs by {np.nanmax(np.abs(wide - ours)):g}"
        return None


def judge(path, line, lines, schemas, counts, show):
    try:
        if not lines:
            raise Unreadable("by hand")
        case = Case(lines, schemas)
        if case.refused:
            counts["refused"] += 1
            return
        different = case.difference()
        if different and not HAS_VNNI and case.multiplies_mixed_signs():
            raise Unreadable("this processor has no VNNI")
    except (Unreadable, *REFUSALS) as error:
        counts["not judged"] += 1
        if show:
            print(f"{path}:{line}: not judged: {str(error).splitlines()[0][:150]}")
        return
    counts["different" if different else "agree"] += 1
    if different:
        print(f"{path}:{line}: {case.op}: {different}")


def main():
    onnxruntime.set_default_logger_severity(4)
    schemas = {s.name: s for s in STATE.get_all_operator_schema() if s.domain == DOMAIN}
    counts = collections.Counter()
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.txt")):
        text = path.read_text()
        if JUDGED not in text.partition("\n\n")[0]:
            counts["not judged"] += len(list(read_blocks(text)))
            continue
        for line, lines in read_blocks(text):
            judge(path.name, line, lines, schemas, counts, "--show" in sys.argv)
    print(f"ONNX Runtime {onnxruntime.__version__}, onnx {onnx.__version__}: "
          f"{counts['agree']} agree, {counts['different']} differ, {counts['not judged']} not judged, "
          f"{counts['refused']} to be refused")
    return 1 if counts["different"] or not counts["agree"] else 0


if __name__ == "__main__":
    sys.exit(main())
