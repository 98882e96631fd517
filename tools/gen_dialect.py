#!/usr/bin/env python3
# Writes the ONNX dialect as an operation description of MLIR (TableGen) from the facts in data/.
# SPDX-License-Identifier: Apache-2.0
"""Usage: gen_dialect.py [--check] [-o FILE]

Writes FILE (build/onnx.td): every version of every operator of ONNX's domains, with operands,
attributes, defaults, regions and type constraints. Without --check that is all. With --check the
file is then given to mlir-tblgen, which must accept it and find variants in it; exits 1 where it
does not, and 2 when there is no mlir-tblgen.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Domains whose operators share the dialect, as src/mlir/dialect/dialect_names.c has them.
DOMAINS = ("ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training")

ELEMENTS = {
    "float": "F32", "double": "F64", "float16": "F16", "bfloat16": "BF16",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "UI8", "uint16": "UI16", "uint32": "UI32", "uint64": "UI64",
    "bool": "I1", "string": "ONNX_String",
    "complex64": "Complex<F32>", "complex128": "Complex<F64>",
    "float8e4m3fn": "F8E4M3FN", "float8e4m3fnuz": "F8E4M3FNUZ",
    "float8e5m2": "F8E5M2", "float8e5m2fnuz": "F8E5M2FNUZ",
    "int4": "I<4>", "uint4": "UI<4>", "int2": "I<2>", "uint2": "UI<2>",
    # Types that MLIR has since version 20: named here by how MLIR prints them.
    "float4e2m1": "ONNX_F4E2M1FN", "float8e8m0": "ONNX_F8E8M0FNU",
    "float6e2m3": "ONNX_F6E2M3FN", "float6e3m2": "ONNX_F6E3M2FN",
}

ATTRIBUTES = {
    "float": "F32Attr", "int": "SI64Attr", "string": "StrAttr", "tensor": "ElementsAttr",
    "floats": "F32ArrayAttr", "ints": "I64ArrayAttr", "strings": "StrArrayAttr",
    "tensors": "ArrayAttr", "sparse_tensor": "AnyAttr", "sparse_tensors": "ArrayAttr",
    "type_proto": "TypeAttr", "type_protos": "TypeArrayAttr",
}
# Numbers that stand for types, printed as types.
TYPE_NUMBERS = {("Cast", "to")}

HEAD = '''// The ONNX dialect: operators of ONNX as operations of MLIR.
// Written by tools/gen_dialect.py from data/; do not edit.
//
// The newest version of an operator has its name; older ones end in V and their version. Operands
// that may be absent are optional: they are left out at the end, and of type none before others.
// docs/mlir-dialect.md tells how modules of this dialect are printed and read.

#ifndef ONNX_DIALECT
#define ONNX_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def ONNX_Dialect : Dialect {
  let name = "onnx";
  let summary = "models in the ONNX format";
  let cppNamespace = "::onnx";
  let useDefaultTypePrinterParser = 1;
}

class ONNX_Op<string mnemonic, list<Trait> traits = []> : Op<ONNX_Dialect, mnemonic, traits>;

class ONNX_TypeDef<string name, string typeMnemonic> : TypeDef<ONNX_Dialect, name> {
  let mnemonic = typeMnemonic;
}
class ONNX_Wrapper<string name, string typeMnemonic> : ONNX_TypeDef<name, typeMnemonic> {
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}
def ONNX_String : ONNX_TypeDef<"String", "String">;
def ONNX_Unknown : ONNX_TypeDef<"Unknown", "Unknown">;
def ONNX_Seq : ONNX_Wrapper<"Seq", "Seq">;
def ONNX_Opt : ONNX_Wrapper<"Opt", "Opt">;
def ONNX_Sparse : ONNX_Wrapper<"Sparse", "Sparse">;
def ONNX_Map : ONNX_TypeDef<"Map", "Map"> {
  let parameters = (ins "::mlir::Type":$key, "::mlir::Type":$value);
  let assemblyFormat = "`<` $key `,` $value `>`";
}

class ONNX_Element<string name>
    : Type<CPred<"::onnx::isElement($_self, \\"" # name # "\\")">, name>;
def ONNX_F4E2M1FN : ONNX_Element<"f4E2M1FN">;
def ONNX_F8E8M0FNU : ONNX_Element<"f8E8M0FNU">;
def ONNX_F6E2M3FN : ONNX_Element<"f6E2M3FN">;
def ONNX_F6E3M2FN : ONNX_Element<"f6E3M2FN">;

def ONNXReturnOp : ONNX_Op<"Return", [Pure, Terminator]> {
  let summary = "the results of a function";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}
def ONNXYieldOp : ONNX_Op<"Yield", [Pure, Terminator]> {
  let summary = "the results of a region";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}
def ONNXNoValueOp : ONNX_Op<"NoValue", [Pure]> {
  let summary = "an operand that is absent";
  let arguments = (ins UnitAttr:$value);
  let results = (outs NoneType:$none);
}
def ONNXEntryPointOp : ONNX_Op<"EntryPoint"> {
  let summary = "the function that is the model's graph";
  let arguments = (ins FlatSymbolRefAttr:$func);
}
def ONNXCustomOp : ONNX_Op<"Custom"> {
  let summary = "an operator of another domain, or a function of the model";
  let arguments = (ins Variadic<AnyType>:$inputs, OptionalAttr<StrAttr>:$domain_name,
                       OptionalAttr<StrAttr>:$function_name);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region VariadicRegion<AnyRegion>:$bodies);
}
'''


class Operator:
    """One version: what its block in data/ says."""

    def __init__(self, domain, name, version, words):
        self.domain, self.name, self.version = domain, name, version
        self.deprecated = "deprecated" in words
        self.random = "random" in words or "maybe_random" in words
        self.inputs, self.outputs, self.attrs, self.types = [], [], [], {}
        self.has_body = False


def read_types(text, groups):
    """Types of a line, groups in their place: (wrappers, element) pairs, maps as (.., (key, value))."""
    found = []
    for token in re.findall(r"(?:\w+\()*\w+(?:, ?\w+)?\)*", text):
        wrappers = re.findall(r"(\w+)\(", token)
        inside = token[sum(len(one) + 1 for one in wrappers):].rstrip(")")
        if "map" in wrappers:
            key, value = (part.strip() for part in inside.split(","))
            found.append((tuple(wrappers), (key, value)))
            continue
        for element in groups.get(inside, [inside]):
            found.append((tuple(one for one in wrappers if one != "tensor"), element))
    return found


def read_operators(domain):
    """All versions of a domain's file, newest first."""
    operators, groups = [], {}
    for line in (ROOT / f"data/{domain}.txt").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or line.startswith("#") or words[0] == "domain":
            continue
        if words[0] == "group":
            name, _, rest = line[6:].partition(":")
            groups[name] = [one for part in rest.split() for one in groups.get(part, [part])]
        elif not line.startswith(" "):
            operators.append(Operator(domain, words[0], int(words[1]), words[2:]))
        elif words[0] in ("in", "out"):
            name, kind, *more = line.split(None, 1)[1].split()
            parameter = {"name": name.rstrip(":"), "type": kind,
                         "kind": next((one for one in more if one in ("optional", "variadic")), "")}
            (operators[-1].inputs if words[0] == "in" else operators[-1].outputs).append(parameter)
        elif words[0] == "attr":
            name, kind, more = re.match(r"\s*attr (\w+): (\w+) ?(.*)", line).groups()
            operators[-1].attrs.append({"name": name, "kind": kind, "required": more == "required",
                                        "default": more[2:] if more.startswith("= ") else None})
        elif words[0] == "type":
            name, _, rest = line.strip()[5:].partition(":")
            operators[-1].types[name] = read_types(rest, groups)
        elif words[0] in ("body", "context_body"):
            operators[-1].has_body = True
    return operators


def constraint(types):
    """A set of types as a constraint of MLIR."""
    tensors = [ELEMENTS[element] for wrappers, element in types if not wrappers]
    options = [f"TensorOf<[{', '.join(tensors)}]>"] if tensors else []
    for wrapper, name in (("seq", "ONNX_Seq"), ("optional", "ONNX_Opt"), ("sparse_tensor", "ONNX_Sparse"),
                          ("map", "ONNX_Map")):
        if any(wrappers and wrappers[0] == wrapper for wrappers, _ in types):
            options.append(name)
    return options


def parameters(operator, listed, taken):
    """Operands or results: (text of the constraint, name)."""
    lines = []
    for one in listed:
        variable = operator.types.get(one["type"])
        options = constraint(variable if variable is not None else read_types(one["type"], {}))
        if one["kind"] == "optional":
            options.append("NoneType")
        text = options[0] if len(options) == 1 else f"AnyTypeOf<[{', '.join(options)}]>"
        if one["kind"]:
            text = f"{one['kind'].capitalize()}<{text}>"
        name = re.sub(r"\W", "", one["name"])
        while name in taken:
            name = f"out_{name}"
        taken.add(name)
        lines.append(f"{text}:${name}")
    return lines


def attribute(operator, one, taken):
    kind = "TypeAttr" if (operator.name, one["name"]) in TYPE_NUMBERS else ATTRIBUTES[one["kind"]]
    default = one["default"]
    if one["required"]:
        text = kind
    elif default is None:
        text = f"OptionalAttr<{kind}>"
    elif one["kind"] == "string":
        text = f"DefaultValuedStrAttr<{kind}, {default}>"
    else:
        value = default.replace("[", "{").replace("]", "}").replace('"', '\\"')
        text = f'DefaultValuedAttr<{kind}, "{value}">'
    name = one["name"]
    while name in taken:
        name = f"attr_{name}"
    taken.add(name)
    return f"{text}:${name}"


def several(listed):
    return sum(bool(one["kind"]) for one in listed) > 1


def definition(operator, newest):
    name = operator.name if newest else f"{operator.name}V{operator.version}"
    traits = [] if operator.random else ["Pure"]
    traits += ["AttrSizedOperandSegments"] if several(operator.inputs) else []
    traits += ["AttrSizedResultSegments"] if several(operator.outputs) else []
    taken = set()
    ins = parameters(operator, operator.inputs, taken)
    regions = sorted((one["name"] for one in operator.attrs if one["kind"].startswith("graph")), reverse=True)
    ins += [attribute(operator, one, taken) for one in operator.attrs if not one["kind"].startswith("graph")]
    outs = parameters(operator, operator.outputs, taken)
    facts = [f"version {operator.version} of {operator.name} in {operator.domain}"]
    facts += ["a function of other operators"] if operator.has_body else []
    lines = [f"def ONNX{name}Op : ONNX_Op<\"{name}\", [{', '.join(traits)}]> {{",
             f"  let summary = \"{', '.join(facts)}\";"]
    for word, key, items in (("arguments", "ins", ins), ("results", "outs", outs)):
        if items:
            lines.append(f"  let {word} = ({key} " + ",\n    ".join(items) + ");")
    if regions:
        lines.append("  let regions = (region " + ", ".join(f"SizedRegion<1>:${one}" for one in regions) + ");")
    return "\n".join(lines + ["}"])


def write(path):
    texts, newest = [HEAD], set()
    for domain in DOMAINS:
        for operator in read_operators(domain):
            first = operator.name not in newest
            newest.add(operator.name)
            if not operator.deprecated:
                texts.append(definition(operator, first))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(texts) + "\n\n#endif // ONNX_DIALECT\n", encoding="utf-8")
    return len(texts) - 1


def generate(tool, path, action):
    done = subprocess.run([tool, f"-I{pathlib.Path(tool).resolve().parent.parent / 'include'}", action, str(path)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"gen_dialect: mlir-tblgen {action}: {done.stderr.strip()[:2000]}")
    return done.stdout if done.returncode == 0 else None


def require(text, pattern, what):
    """Does the generated text have it?"""
    if text is not None and re.search(pattern, text):
        return True
    print(f"gen_dialect: {what}: not found in what mlir-tblgen wrote")
    return False


def check(path, count):
    tool = shutil.which("mlir-tblgen-19") or shutil.which("/usr/lib/llvm-19/bin/mlir-tblgen")
    if not tool:
        print("mlir-tblgen-19 is not installed (apt-get install mlir-19-tools)")
        return 2
    decls, dialect, docs, types, defs = (
        generate(tool, path, f"--gen-{one}") for one in
        ("op-decls", "dialect-decls", "op-doc", "typedef-decls", "op-defs"))
    if any(text is None for text in (decls, dialect, docs, types, defs)):
        return 1
    classes = len(set(re.findall(r"^class ONNX\w+Op :", decls, re.M)))
    found = [
        # Conv with and without a bias: the third operand may be there or not.
        require(docs, r"(?s)### `onnx\.Conv` \(::onnx::ONNXConvOp\)(?:(?!\n### ).)*`B` [^\n]* or none type", "operand B of Conv"),
        require(decls, r"class ONNXConvOp : public ::mlir::Op<ONNXConvOp,[^{]*AtLeastNOperands<2>",
                "Conv of two operands"),
        require(decls, r"class ONNXReduceSumV11Op\b", "version 11 of ReduceSum"),
        require(decls, r"class ONNXIfOp : public ::mlir::Op<ONNXIfOp,[^{]*NRegions<2>", "the two regions of If"),
    ]
    if classes != count + 5:
        print(f"gen_dialect: {classes} classes for {count} operator versions and 5 operations of the dialect")
        return 1
    return 0 if all(found) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "build/onnx.td")
    given = parser.parse_args()
    count = write(given.output)
    if not given.check:
        print(f"{given.output}: {count} operator versions")
        return 0
    return check(given.output, count)


if __name__ == "__main__":
    sys.exit(main())
