"""Models compiled for other processors, run there, give what the interpreter gives.

usage: check_targets.py CAMEO [--target NAME].. [--match PATTERN] [--suite FOLDER [--every N]] [--keep FOLDER]

CAMEO is the command. Each model is compiled for each target: objects are linked to one program that has no C
library and run by qemu's emulation of one process (that of this machine as it is), modules of WebAssembly by
Node. With --suite every Nth case of ONNX's node suite is run too. A target whose emulator or linker is missing is
told, and its cases are not counted.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import base64
import fnmatch
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from fuzz_compiled import write_case  # noqa: E402  pylint: disable=wrong-import-position
from test_compiled import BY_DESIGN, values_of  # noqa: E402  pylint: disable=wrong-import-position

# name: triple, options of `cameo compile`, options of clang, what runs it
TARGETS = {
    "x86-64": ("x86_64-linux-gnu", [], [], []),
    "aarch64": ("aarch64-linux-gnu", [], [], ["qemu-aarch64"]),
    "riscv64": ("riscv64-linux-gnu", [], [], ["qemu-riscv64"]),
    "wasm32": ("wasm32", [], [], ["node"]),
    "wasm32-pure": ("wasm32", ["--pure"], [], ["node"]),
    "cortex-m4": ("thumbv7em-none-eabihf", ["--cpu", "cortex-m4"], ["-mcpu=cortex-m4", "-mfloat-abi=hard"],
                  ["qemu-arm", "-cpu", "max"]),
}
WASM_ARRAYS = {"f4", "f8", "i8", "u8", "i4", "u4", "i2", "u2", "i1", "u1"}
OPEN = ["finish_chains", "index_open", "loop_while_stack", "products_open", "recurrent_open", "reshape_open", "windows_open"]
ARENA = 16 << 20  # for all that have no fixed one


# ---- cases ----

class Case:
    """A model, what it is given in each turn, and what must come out of it."""

    def __init__(self, name, model, turns, expected, options=(), tolerance=1e-4):
        self.name, self.model, self.turns, self.expected = name, model, turns, expected
        self.options, self.tolerance = list(options), tolerance
        self.is_step = "--train-step" in self.options
        self.why = ""  # it cannot be compiled


def read(path):
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def case_of_folder(folder, name=None):
    """None where something in it is not a tensor."""
    data = folder / "test_data_set_0"
    try:
        arrays = [[read(data / f"{kind}_{i}.pb") for i in range(len(list(data.glob(f"{kind}_*.pb"))))]
                  for kind in ("input", "output")]
    except Exception:  # sequences and the like: not read as a tensor
        return None
    if any(a.dtype.kind in "OUS" for a in arrays[0] + arrays[1]):
        return None
    return Case(name or folder.name, folder / "model.onnx", [arrays[0]], [arrays[1]], tolerance=1e-3)


def text_model(cameo, text, work):
    (work / "model.onnxtxt").write_text(text)
    subprocess.run([cameo, "copy", str(work / "model.onnxtxt"), "-o", str(work / "model.onnx")], check=True,
                   capture_output=True)
    return onnx.load(work / "model.onnx")


def quantized_model():
    """Eight bits: a convolution, a pool, a product."""
    rng = np.random.default_rng(2)
    make = helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "sx", "zx"], ["qx"]),
        make("QLinearConv", ["qx", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"], ["c"], pads=[1, 1, 1, 1]),
        make("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        make("Flatten", ["p"], ["f"]),
        make("QLinearMatMul", ["f", "sy", "zy", "m", "sw", "zw", "sz", "zz"], ["q"]),
        make("DequantizeLinear", ["q", "sz", "zz"], ["y"]),
    ]
    values = {"sx": np.float32(0.02), "zx": np.uint8(128), "w": rng.integers(-90, 90, (6, 3, 3, 3), np.int8),
              "sw": np.float32(0.01), "zw": np.int8(0), "sy": np.float32(0.05), "zy": np.uint8(120),
              "b": rng.integers(-500, 500, 6, np.int32), "m": rng.integers(-90, 90, (96, 5), np.int8),
              "sz": np.float32(0.1), "zz": np.uint8(100)}
    graph = helper.make_graph(
        nodes, "quantized", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


HALF = """<ir_version: 8, opset_import: ["" : 17]>
half (float16[N,8] x, float16[8,8] w, float16[8] s) => (float16[N,8] y)
{
    a = MatMul(x, w)
    b = Tanh(a)
    c = LayerNormalization(b, s)
    y = Softmax(c)
}
"""
# Ends of 2^63 - 1 mean "to the end", also where an address has 32 bits.
SLICES = """<ir_version: 8, opset_import: ["" : 17]>
slices (float[N,M] x, int64[2] from, int64[2] to) => (float[A,B] y, int64[2] sizes)
{
    y = Slice(x, from, to)
    sizes = Shape(y)
}
"""
FUNCTIONS = """<ir_version: 8, opset_import: ["" : 18]>
functions (double[N] x, float[N] z) => (double[N] y, float[N] w, double[N] v)
{
    a = Sin(x)  b = Cos(a)  c = Tan(b)  d = Asinh(c)  e = Erf(d)  f = Mod<fmod = 1>(e, x)  y = Add(f, a)
    g = Sinh(z) h = Atan(g) i = Cosh(h) j = Acosh(i) k = Cos(j) w = Asin(k)
    l = Exp(a)  m = Pow(l, x) n = Log(m) v = Tanh(n)
}
"""


def own_cases(cameo, work, match):
    """Models of ours; what the interpreter computes of them is expected."""
    rng = np.random.default_rng(1)
    models = ROOT / "tests" / "models" / "train"

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    rows = {
        "mlp": lambda: (onnx.load(models / "mlp" / "model.onnx"), {"x": None}),
        "lenet": lambda: (onnx.load(models / "lenet" / "model.onnx"), {"x": None}),
        "lstm": lambda: (onnx.load(models / "lstm" / "model.onnx"), {"x": None}),
        "int8": lambda: (quantized_model(), {"x": normal(1, 3, 8, 8)}),
        "float16": lambda: (text_model(cameo, HALF, work), {
            "x": normal(3, 8).astype(np.float16), "w": normal(8, 8).astype(np.float16),
            "s": normal(8).astype(np.float16)}),
        "slices": lambda: (text_model(cameo, SLICES, work), {
            "x": normal(5, 7), "from": np.array([1, -3]), "to": np.array([2**63 - 1, 2**63 - 1])}),
        "functions": lambda: (text_model(cameo, FUNCTIONS, work), {
            "x": rng.uniform(0.1, 20, 9), "z": normal(9)}),
    }
    for name in OPEN:
        text = (ROOT / "tests" / "mlir" / f"{name}.onnxtxt").read_text()
        rows[name] = lambda text=text: (model := text_model(cameo, text, work), values_of(model, text))
    for name, make in rows.items():
        if not fnmatch.fnmatch(name, match):
            continue
        model, inputs = make()
        if inputs.get("x", 0) is None:
            inputs = {"x": np.load(models / name / "data.npz")["x"][:4]}
        why = write_case(work / name, model, inputs, cameo)
        if why:
            raise SystemExit(f"{name}: {why}")
        case = case_of_folder(work / name)
        case.tolerance = 1e-2 if name == "float16" else 1e-4
        yield case
    for name, optimizer, settings in (("mlp", "adam", ["--lr", "2e-3"]), ("lenet", "sgd", ["--lr", "0.05"])):
        if fnmatch.fnmatch(f"train_{name}", match):
            yield training_case(cameo, models / name, optimizer, settings, work)


def training_case(cameo, folder, optimizer, settings, work):
    """Losses of the first steps are PyTorch's."""
    told = json.loads((folder / "trajectory.json").read_text())
    data = np.load(folder / "data.npz")
    loss = {"ce": "cross-entropy", "mse": "mse"}[told["loss"]]
    model = work / f"train_{folder.name}.onnx"
    subprocess.run([cameo, "prepare", str(folder / "model.onnx"), "--loss", loss, "--optimizer", optimizer, *settings,
                    "-o", str(model)], check=True, capture_output=True)
    size, steps = told["batch"], 4
    rows = [np.arange(i * size, (i + 1) * size) % len(data["x"]) for i in range(steps)]
    wanted = [np.float32(value) for value in told["optimizers"][optimizer][:steps]]
    return Case(f"train_{folder.name}", model, [[data["x"][r], data["y"][r]] for r in rows],
                [[np.asarray(w)] for w in wanted], ["--train-step"], 1e-3)


# ---- objects, one program ----

def compile_case(cameo, case, target, number, folder):
    triple, options, _, _ = TARGETS[target]
    ending = "wasm" if triple == "wasm32" else "o"
    path = folder / f"c{number}.{ending}"
    done = subprocess.run([cameo, "compile", str(case.model), "-o", str(path), "--name", f"c{number}", "--target", triple,
                           *options, *case.options], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def write_caller(number, case, folder, to):
    """C that runs a case and writes its code, then shapes and contents of its outputs."""
    name, big = f"c{number}", f"C{number}"
    losses = case.is_step
    for turn, inputs in enumerate(case.turns):
        for i, array in enumerate(inputs):
            (folder / f"{name}_{turn}_{i}").write_bytes(array.tobytes() + bytes(8))
            to.append(f'__asm__(".section .rodata\\n.balign 64\\n{name}_{turn}_{i}:\\n'
                      f'.incbin \\"{folder}/{name}_{turn}_{i}\\"\\n.globl {name}_{turn}_{i}\\n.previous\\n");\n'
                      f"extern unsigned char {name}_{turn}_{i}[];\n")
    to.append(f"static void run_{name}(void)\n{{\n    long long code = 0;\n")
    outputs = case.expected[0]
    if losses:
        to.append(f"    static unsigned char state[{big}_STATE_BYTES] __attribute__((aligned(64)));\n"
                  f"    static double values[{big}_OUTPUTS];\n    {name}_initialize(state);\n")
    else:
        for i, array in enumerate(outputs):
            to.append(f"    static unsigned char o{i}[{max(array.nbytes, 1)}] __attribute__((aligned(64)));\n"
                      f"    int64_t os{i}[] = {{{', '.join(map(str, array.shape + (0,)))}}};\n")
    for turn, inputs in enumerate(case.turns):
        to.append("    {\n")
        for i, array in enumerate(inputs):
            to.append(f"    int64_t is{i}[] = {{{', '.join(map(str, array.shape + (0,)))}}};\n")
        given = ", ".join(f"{{{name}_{turn}_{i}, is{i}, {array.nbytes}}}" for i, array in enumerate(inputs))
        to.append(f"    const struct {name}_tensor inputs[] = {{{given or '{0, 0, 0}'}}};\n")
        if losses:
            to.append(f"    struct {name}_tensor outputs[{big}_OUTPUTS];\n"
                      f"    for (int i = 0; i < {big}_OUTPUTS; i++)\n"
                      f"        outputs[i] = (struct {name}_tensor){{&values[i], 0, sizeof values[i]}};\n"
                      f"    code = {name}_step(state, inputs, outputs, arena, sizeof arena);\n"
                      f"    system_put(&code, 8);\n    system_put(&values[{big}_OUT_LOSS], 4);\n")
        else:
            taken = ", ".join(f"{{o{i}, os{i}, {array.nbytes}}}" for i, array in enumerate(outputs))
            to.append(f"    struct {name}_tensor outputs[] = {{{taken}}};\n"
                      f"    code = {name}_run(inputs, outputs, arena, sizeof arena);\n    system_put(&code, 8);\n")
            for i, array in enumerate(outputs):
                to.append(f"    system_put(os{i}, {8 * array.ndim});\n    system_put(o{i}, {array.nbytes});\n")
        to.append("    }\n")
    to.append("}\n\n")


def compiler_library(target):
    """What the compiler calls where the processor has no instruction: 64 bits on a Cortex-M."""
    return sorted(glob.glob("/usr/lib/gcc-cross/arm-linux-gnueabihf/*/libgcc.a"))[-1:] if target == "cortex-m4" else []


def run_objects(cases, target, folder):
    """For each case the outputs of each turn, or the reason why there are none."""
    triple, _, flags, runner = TARGETS[target]
    text = [f'#include "{HERE}/system.h"\n'] + [f'#include "c{n}.h"\n' for n, c in enumerate(cases) if not c.why]
    text.append(f"static unsigned char arena[{ARENA}];\n\n")
    for number, case in enumerate(cases):
        if not case.why:
            write_caller(number, case, folder, text)
    calls = "".join(f"    run_c{n}();\n" for n, c in enumerate(cases) if not c.why)
    (folder / "main.c").write_text("".join(text) + f"int run_all(void)\n{{\n{calls}    return 0;\n}}\n")
    clang = ["clang-19", f"--target={triple}", "-O1", "-ffreestanding", "-fno-math-errno", "-std=c17", *flags]
    subprocess.run([*clang, "-c", str(ROOT / "src/mlir/runtime/freestanding.c"), "-o", str(folder / "library.o")], check=True)
    subprocess.run([*clang, "-c", f"-I{folder}", str(folder / "main.c"), "-o", str(folder / "main.o")], check=True)
    libraries = compiler_library(target)
    objects = [str(folder / f"c{n}.o") for n, c in enumerate(cases) if not c.why]
    subprocess.run(["ld.lld-19", "-static", "--gc-sections", *objects, str(folder / "main.o"), str(folder / "library.o"), *libraries, "-o",
                    str(folder / "program")], check=True)
    done = subprocess.run([*runner, str(folder / "program")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        print(f"{target}: the program ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return [case.why or take(done.stdout, case) for case in cases_at(done.stdout, cases)]


def cases_at(stream, cases):
    """The cases, each with the place of its outputs in what the program wrote."""
    at = 0
    for case in cases:
        case.at = at
        if not case.why:
            for expected in case.expected:
                at += 8 + sum((0 if case.is_step else 8 * e.ndim) + e.nbytes for e in expected)
        yield case
    if at < len(stream):
        print(f"the program wrote {len(stream) - at} bytes too many")


def take(stream, case):
    at, turns = case.at, []
    for expected in case.expected:
        if at + 8 > len(stream):
            return "the program ended before"
        code = int.from_bytes(stream[at:at + 8], "little", signed=True)
        if code:
            return f"it gave {code:#x}"
        at += 8
        outputs = []
        for wanted in expected:
            shape = wanted.shape
            if not case.is_step:
                shape = tuple(np.frombuffer(stream, np.int64, wanted.ndim, at).tolist())
                at += 8 * wanted.ndim
            if shape != wanted.shape:
                return f"a shape is {shape}, not {wanted.shape}"
            outputs.append(np.frombuffer(stream[at:at + wanted.nbytes], wanted.dtype).reshape(shape))
            at += wanted.nbytes
        turns.append(outputs)
    return turns


# ---- modules of WebAssembly ----

def run_modules(cases, folder):
    manifest = []
    for number, case in enumerate(cases):
        item = {"file": str(folder / f"c{number}.wasm"), "turns": []}
        for turn, inputs in enumerate(case.turns if not case.why else []):
            row = []
            for i, array in enumerate(inputs):
                path = folder / f"c{number}_{turn}_{i}"
                path.write_bytes(array.tobytes())
                kind = array.dtype.str[1:]
                row.append({"file": str(path), "shape": list(array.shape),
                            "array": kind if kind in WASM_ARRAYS else f"u{array.itemsize}"})
            item["turns"].append(row)
        manifest.append(item)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    subprocess.run(["node", str(HERE / "run.mjs"), str(ROOT / "examples/web/model.mjs"), str(folder / "manifest.json"),
                    str(folder / "results.json")], check=True)
    results = []
    for case, told in zip(cases, json.loads((folder / "results.json").read_text())):
        results.append(case.why or told["error"] or [outputs_of(case, turn, expected)
                                                     for turn, expected in zip(told["outputs"], case.expected)])
    return results


def outputs_of(case, turn, expected):
    if case.is_step:
        turn = [output for output in turn if output["name"] == "loss"]
    return [np.frombuffer(base64.b64decode(output["bytes"]), wanted.dtype).reshape(output["shape"])
            for output, wanted in zip(turn, expected)]


# ---- comparing ----

def difference(case, results):
    """What is wrong, or ""."""
    if isinstance(results, str):
        return results
    for turn, (outputs, expected) in enumerate(zip(results, case.expected)):
        for i, (got, wanted) in enumerate(zip(outputs, expected)):
            if got.shape != wanted.shape:
                return f"output {i} has shape {got.shape}, not {wanted.shape}"
            exact = wanted.dtype.kind in "iub"
            a, b = (got, wanted) if exact else (got.astype(np.float64), wanted.astype(np.float64))
            same = (a == b) if exact else np.isclose(a, b, rtol=case.tolerance, atol=case.tolerance, equal_nan=True)
            if not np.all(same):
                place = np.unravel_index(np.argmin(same), same.shape)
                return f"turn {turn}, output {i}: {got[place]} at {tuple(map(int, place))}, not {wanted[place]}"
    return ""


def check(cameo, target, cases, folder):
    """How many passed and failed."""
    folder.mkdir()
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 2)) as pool:
        reasons = list(pool.map(lambda n: compile_case(cameo, cases[n], target, n, folder), range(len(cases))))
    for case, why in zip(cases, reasons):
        case.why = why
    results = run_modules(cases, folder) if TARGETS[target][0] == "wasm32" else run_objects(cases, target, folder)
    passed = failed = refused = 0
    for case, result in zip(cases, results):
        wrong = difference(case, result)
        if case.why and BY_DESIGN.search(case.why):
            refused += 1
        elif wrong:
            failed += 1
            print(f"FAIL {case.name} on {target}: {wrong}", flush=True)
        else:
            passed += 1
    print(f"{target}: {passed} passed, {failed} failed" + (f", {refused} refused" if refused else ""), flush=True)
    return passed, failed


def missing_tool(target):
    runner = TARGETS[target][3]
    tools = ["clang-19", "wasm-ld-19" if TARGETS[target][0] == "wasm32" else "ld.lld-19"] + runner[:1]
    if target == "x86-64" and os.uname().machine != "x86_64":
        return "a processor of this kind"
    if target == "cortex-m4" and not compiler_library(target):
        return "libgcc.a for arm-linux-gnueabihf"
    return next((tool for tool in tools if not shutil.which(tool)), "")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("cameo")
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--match", default="*")
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--every", type=int, default=60)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="cameo-targets-") as made:
        work = args.keep or Path(made)
        work.mkdir(exist_ok=True)
        cases = list(own_cases(args.cameo, work, args.match))
        if args.suite:
            folders = [f for f in sorted(args.suite.iterdir()) if fnmatch.fnmatch(f.name, args.match)
                       and "bernoulli" not in f.name]  # numbers that everybody draws otherwise
            cases += [case for case in map(case_of_folder, folders[::args.every]) if case]
        for target in args.target or TARGETS:
            tool = missing_tool(target)
            if tool:
                print(f"{target}: NOT TESTED, {tool} is missing")
                continue
            counts = check(args.cameo, target, cases, work / target)
            passed += counts[0]
            failed += counts[1]
    print(f"# counts: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
