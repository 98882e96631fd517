#!/usr/bin/env python3
# Writes the operator facts of the installed onnx and onnxruntime packages into data/, or compares.
# SPDX-License-Identifier: Apache-2.0
"""Usage: gen_operators.py [--check] [--data DIR]

Without --check, rewrites one file per operator domain under data/. With --check, changes nothing,
names every operator version that differs and exits 1 if there is one. Exits 2 when onnx or
onnxruntime is not installed.
"""

import argparse
import pathlib
import re
import sys

try:
    import numpy
    import onnx
    import onnx.checker
    import onnx.defs
    import onnx.helper
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
except ImportError as error:
    print(f"gen_operators: cannot read operator schemas: {error}", file=sys.stderr)
    sys.exit(2)

UNBOUNDED = 2**31 - 1

# Element types in the order the files list them.
ELEMENTS = (
    "bool string uint2 uint4 uint8 uint16 uint32 uint64 int2 int4 int8 int16 int32 int64 "
    "float4e2m1 float6e2m3 float6e3m2 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz "
    "float8e8m0 bfloat16 float16 float double complex64 complex128"
).split()

# Each group may use those before it; larger groups are preferred when a constraint is written.
GROUPS = {
    "uints": "uint8 uint16 uint32 uint64",
    "ints": "int8 int16 int32 int64",
    "complexes": "complex64 complex128",
    "float8s": "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz",
    "numbers": "uints ints float16 float double",
    "all3": "numbers bool string complexes",
    "all4": "all3 bfloat16",
    "all9": "all4 float8s",
    "all10": "all9 uint4 int4",
    "all11": "all10 float4e2m1",
    "all12": "all11 float8e8m0",
    "all13": "all12 uint2 int2",
    "all14": "all13 float6e2m3 float6e3m2",
}

# Wrappers in the order the files list them; "" is a dense tensor.
FORMS = ["", "sparse_tensor", "seq", "optional", "optional_seq"]

# Of the operators that ONNX Runtime adds: those that its optimizer, quantizer and model builder and
# the converters write, as far as we run them.
MICROSOFT = "com.microsoft"
MICROSOFT_OPERATORS = (
    "Attention BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu CDist ComplexMul "
    "ComplexMulConj CropAndResize DequantizeLinear DynamicQuantizeLSTM DynamicQuantizeMatMul "
    "EmbedLayerNormalization ExpandDims FastGelu FusedConv FusedGemm FusedMatMul "
    "GatherBlockQuantized GatherND Gelu GemmFastGelu GridSample GroupNorm GroupQueryAttention "
    "Inverse IsAllFinite MatMulBnb4 MatMulIntegerToFloat MatMulNBits MultiHeadAttention "
    "MurmurHash3 NhwcConv NhwcMaxPool Pad QAttention QEmbedLayerNormalization QGemm QLinearAdd "
    "QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu "
    "QLinearMul QLinearReduceMean QLinearSigmoid QLinearSoftmax QLinearWhere QuantizeLinear "
    "QuickGelu Range RotaryEmbedding SkipGroupNorm SkipLayerNormalization "
    "SkipSimplifiedLayerNormalization Tokenizer TransposeMatMul Trilu Unique"
).split()

HEADER = """\
# Operators of the domain {domain}, as declared by the PyPI package {package}.
# Written by tools/gen_operators.py; do not edit.
#
# The whole file:
#   domain NAME FIRST LAST    opset versions of the domain; then groups, then operators
#   group NAME: TYPE...       a name for several element types; allN: all that IR version N had
#
# An operator version is one block, newest version first, lines in this order:
#   NAME VERSION [deprecated] [experimental] [random | maybe_random]
#     in   NAME: TYPE TAG [optional | variadic N] [mixed]
#     out  NAME: TYPE TAG ...
#     counts in|out N...      only these counts are legal, not all between least and most
#     attr NAME: KIND [required | = DEFAULT]
#     type NAME: TYPE...      what a type variable may stand for
#     body N...               opset versions its plain function body is written in
#     context_body N...       the same for bodies that depend on attributes, types and inputs
#     rules [shape] [value]   has shape inference; has propagation of known values
#
# TAG: D differentiable, N not, U not said. variadic N: at least N of them; mixed: each may have
# a type of its own. A parameter's TYPE is a type variable or a full type such as tensor(int64). In
# a type line an element type stands for a dense tensor of it, and seq(..), optional(..),
# optional(seq(..)), sparse_tensor(..) wrap an element type or a whole group; maps are map(KEY,
# VALUE) and seq(map(KEY, VALUE)).
"""

ATTRIBUTE_KINDS = {
    "FLOAT": "float",
    "INT": "int",
    "STRING": "string",
    "TENSOR": "tensor",
    "GRAPH": "graph",
    "FLOATS": "floats",
    "INTS": "ints",
    "STRINGS": "strings",
    "TENSORS": "tensors",
    "GRAPHS": "graphs",
    "SPARSE_TENSOR": "sparse_tensor",
    "SPARSE_TENSORS": "sparse_tensors",
    "TYPE_PROTO": "type_proto",
    "TYPE_PROTOS": "type_protos",
}


def fail(text):
    print(f"gen_operators: {text}", file=sys.stderr)
    sys.exit(3)


def group_members(name):
    members = []
    for word in GROUPS[name].split():
        members += group_members(word) if word in GROUPS else [word]
    return members


def split_type(text):
    """'optional(seq(tensor(float)))' -> ('optional_seq', 'float'); maps stay whole."""
    pattern = r"(?:(optional|seq)\()?(?:(seq)\()?(tensor|sparse_tensor)\((\w+)\)\)*"
    match = re.fullmatch(pattern, text)
    if not match:
        if not re.fullmatch(r"map\(\w+, \w+\)|seq\(map\(\w+, \w+\)\)", text):
            fail(f"type {text} is new to this script")
        return "map", text
    outer, inner, tensor, element = match.groups()
    form = "_".join(word for word in (outer, inner) if word)
    if tensor == "sparse_tensor":
        form = "sparse_tensor" if not form else fail(f"type {text} is new to this script")
    if element not in ELEMENTS or form not in FORMS:
        fail(f"type {text} is new to this script")
    return form, element


def wrap(form, word):
    if form == "optional_seq":
        return f"optional(seq({word}))"
    return f"{form}({word})" if form else word


def compress(types):
    """The shortest spelling of a set of types, largest groups first."""
    by_form = {}
    for text in types:
        form, element = split_type(text)
        by_form.setdefault(form, set()).add(element)
    words = []
    for form in FORMS:
        left = by_form.get(form, set())
        for group in reversed(GROUPS):
            members = set(group_members(group))
            if members <= left:
                words.append(wrap(form, group))
                left = left - members
        words += [wrap(form, element) for element in ELEMENTS if element in left]
    return " ".join(words + sorted(by_form.get("map", ())))


def short_name(enumerator):
    return str(enumerator).split(".")[-1]


def param_line(word, param):
    tag = short_name(param.differentiation_category)[0]
    line = f"  {word:<4} {param.name}: {param.type_str} {tag}"
    option = short_name(param.option)
    if option == "Optional":
        line += " optional"
    elif option == "Variadic":
        line += f" variadic {param.min_arity}"
    if not param.is_homogeneous:
        line += " mixed"
    return line


def quote(data):
    out = ""
    for byte in data:
        char = chr(byte)
        if char in '"\\':
            out += "\\" + char
        elif 32 <= byte < 127:
            out += char
        else:
            out += f"\\x{byte:02x}"
    return f'"{out}"'


def real(value):
    """The shortest text that reads back as the same float32."""
    return str(numpy.float32(value))


def default_text(schema, attribute):
    value = attribute.default_value
    kind = onnx.AttributeProto.AttributeType.Name(value.type)
    if kind == "INT":
        return str(value.i)
    if kind == "FLOAT":
        return real(value.f)
    if kind == "STRING":
        return quote(value.s)
    if kind == "INTS":
        return "[" + ", ".join(str(item) for item in value.ints) + "]"
    if kind == "FLOATS":
        return "[" + ", ".join(real(item) for item in value.floats) + "]"
    if kind == "STRINGS":
        return "[" + ", ".join(quote(item) for item in value.strings) + "]"
    return fail(f"{schema.name} {schema.since_version}: a default of kind {kind} is not foreseen")


def attribute_line(schema, attribute):
    line = f"  attr {attribute.name}: {ATTRIBUTE_KINDS[short_name(attribute.type)]}"
    if attribute.required:
        return line + " required"
    # The package says "no default" by a default without a name.
    return line + f" = {default_text(schema, attribute)}" if attribute.default_value.name else line


def implied_counts(params):
    """Least and most operands that a list of parameters stands for."""
    least = most = 0
    for index, param in enumerate(params):
        option = short_name(param.option)
        most = UNBOUNDED if option == "Variadic" else most + 1
        if option == "Single":
            least = index + 1
        elif option == "Variadic":
            least = index + param.min_arity
    return least, most


def count_is_legal(schema, inputs, outputs):
    """The package does not list legal counts, but its checker names an illegal one."""
    node = onnx.helper.make_node(
        schema.name, ["x"] * inputs, [f"y{i}" for i in range(outputs)], domain=schema.domain
    )
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {schema.domain: schema.since_version}
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError as error:
        return not re.search(r"put size \d+ not in", str(error))
    return True


class RuntimeParam:
    """A parameter as ONNX Runtime declares it, with the members that those of onnx have."""

    def __init__(self, param, arity):
        self.name, self.type_str, self.option = param.name, param.typeStr, param.option
        self.is_homogeneous = param.isHomogeneous
        self.min_arity = arity
        self.differentiation_category = "Unknown"


class RuntimeAttribute:
    def __init__(self, attribute):
        self.name, self.type, self.required = attribute.name, attribute.type, attribute.required
        self.default_value = onnx.AttributeProto.FromString(attribute._default_value)


class RuntimeSchema:
    """A schema of ONNX Runtime, with the members that those of onnx have."""

    def __init__(self, schema):
        self.name, self.domain = schema.name, schema.domain
        self.since_version = schema.since_version
        self.deprecated, self.support_level = schema.deprecated, schema.support_level
        self.node_determinism = "Deterministic"
        self.min_input, self.max_input = schema.min_input, schema.max_input
        self.min_output, self.max_output = schema.min_output, schema.max_output
        self.inputs = self.params(schema.inputs, schema.min_input)
        self.outputs = self.params(schema.outputs, schema.min_output)
        attributes = [RuntimeAttribute(item) for item in schema.attributes.values()]
        self.attributes = {attribute.name: attribute for attribute in attributes}
        self.type_constraints = schema.type_constraints
        self.function_opset_versions = self.context_dependent_function_opset_versions = ()
        has_rule = schema.has_type_and_shape_inference_function
        self.has_type_and_shape_inference_function = has_rule
        self.has_data_propagation_function = False

    @staticmethod
    def params(params, least):
        """Only a last parameter repeats: as often as the least count says."""
        return [RuntimeParam(param, least - i) for i, param in enumerate(params)]


def counts_lines(schema):
    if implied_counts(schema.inputs) != (schema.min_input, schema.max_input):
        fail(f"{schema.name} {schema.since_version}: input counts do not follow from its inputs")
    if implied_counts(schema.outputs) != (schema.min_output, schema.max_output):
        fail(f"{schema.name} {schema.since_version}: output counts do not follow from its outputs")
    if schema.deprecated or schema.domain == MICROSOFT:
        return []
    lines = []
    inputs = range(schema.min_input, min(schema.max_input, 16) + 1)
    legal = [n for n in inputs if count_is_legal(schema, n, schema.min_output)]
    if legal != list(inputs):
        lines.append("  counts in " + " ".join(map(str, legal)))
    outputs = range(schema.min_output, min(schema.max_output, 16) + 1)
    legal = [n for n in outputs if count_is_legal(schema, schema.min_input, n)]
    if legal != list(outputs):
        lines.append("  counts out " + " ".join(map(str, legal)))
    return lines


def block(schema):
    head = [schema.name, str(schema.since_version)]
    if schema.deprecated:
        head.append("deprecated")
    if short_name(schema.support_level) == "EXPERIMENTAL":
        head.append("experimental")
    chance = {"NonDeterministic": ["random"], "Unknown": ["maybe_random"], "Deterministic": []}
    head += chance[short_name(schema.node_determinism)]

    lines = [" ".join(head)]
    lines += [param_line("in", param) for param in schema.inputs]
    lines += [param_line("out", param) for param in schema.outputs]
    lines += counts_lines(schema)
    lines += [attribute_line(schema, schema.attributes[name]) for name in sorted(schema.attributes)]
    lines += [
        f"  type {constraint.type_param_str}: {compress(constraint.allowed_type_strs)}"
        for constraint in sorted(schema.type_constraints, key=lambda c: c.type_param_str)
    ]
    for word, versions in (
        ("body", schema.function_opset_versions),
        ("context_body", schema.context_dependent_function_opset_versions),
    ):
        if versions:
            lines.append(f"  {word} " + " ".join(map(str, sorted(versions))))
    rules = ["shape"] if schema.has_type_and_shape_inference_function else []
    rules += ["value"] if schema.has_data_propagation_function else []
    if rules:
        lines.append("  rules " + " ".join(rules))
    return "\n".join(lines)


def used_groups(operators):
    """The groups these blocks need, in order of declaration."""
    used = set()
    for line in re.findall(r"^  type \w+: (.*)", operators, re.M):
        used.update(re.findall(r"\w+", line))
    for group in reversed(GROUPS):
        if group in used:
            used.update(GROUPS[group].split())
    return [group for group in GROUPS if group in used]


def file_text(domain, package, versions, schemas):
    schemas = sorted(schemas, key=lambda schema: (schema.name, -schema.since_version))
    text = HEADER.format(domain=domain, package=package)
    text += f"\ndomain {domain} {versions[0]} {versions[1]}\n"
    operators = "".join(f"\n{block(schema)}\n" for schema in schemas)
    groups = [f"group {group}: {GROUPS[group]}\n" for group in used_groups(operators)]
    return text + ("\n" + "".join(groups) if groups else "") + operators


def generate():
    """File name -> text, for every domain the packages know."""
    schemas = onnx.defs.get_all_schemas_with_history()
    files = {}
    for domain, versions in onnx.defs.C.schema_version_map().items():
        name = domain or "ai.onnx"
        own = [schema for schema in schemas if schema.domain == domain]
        files[f"{name}.txt"] = file_text(name, f"onnx {onnx.__version__}", versions, own)
    own = [
        RuntimeSchema(schema)
        for schema in get_all_operator_schema()
        if schema.domain == MICROSOFT and schema.name in MICROSOFT_OPERATORS
    ]
    package = f"onnxruntime {onnxruntime.__version__}"
    files[f"{MICROSOFT}.txt"] = file_text(MICROSOFT, package, (1, 1), own)
    return files


def pieces(text):
    """Block title ('Conv 22', or the file's head) -> block."""
    found = {}
    for part in text.strip("\n").split("\n\n"):
        words = part.split()
        is_operator = not part.startswith(("#", "domain ", "group ")) and len(words) > 1
        title = " ".join(words[:2]) if is_operator else "the head of the file"
        found[title] = found.get(title, "") + part
    return found


def compare(files, folder):
    differences = []
    for name, text in files.items():
        path = folder / name
        wanted = pieces(text)
        had = pieces(path.read_text()) if path.exists() else {}
        for title in sorted(wanted.keys() | had.keys()):
            if title not in had:
                differences.append(f"{name}: {title} is missing")
            elif title not in wanted:
                differences.append(f"{name}: {title} is not in the package")
            elif wanted[title] != had[title]:
                differences.append(f"{name}: {title} differs")
        if wanted == had and path.read_text() != text:
            differences.append(f"{name}: order or spacing differs")
    return differences


def main():
    parser = argparse.ArgumentParser(description="write or check the operator facts in data/")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    home = pathlib.Path(__file__).resolve().parent.parent / "data"
    parser.add_argument("--data", type=pathlib.Path, default=home, help="folder of the files")
    options = parser.parse_args()

    files = generate()
    if options.check:
        differences = compare(files, options.data)
        for line in differences:
            print(f"gen_operators: {line}")
        return 1 if differences else 0
    for name, text in files.items():
        (options.data / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
