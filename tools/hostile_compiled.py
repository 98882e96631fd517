#!/usr/bin/env python3
# What a compiled model does with run-time values that nobody should give it, against the interpreter.
# SPDX-License-Identifier: Apache-2.0
"""usage: hostile_compiled.py BUILD [--match PATTERN,..] [--pairs N] [--pure] [--verbose]

Each model of CASES is compiled with open sizes and with those of its operands. One operand at a time is then
given other numbers (below zero, zero, the ends of its type, huge), another length or other sizes; N times for
each model, two operands at once. Compiled code must refuse what the interpreter refuses, compute what it
computes, and touch no memory but its own: tensors, results and arena end where a page ends that cannot be
read. A result that does not fit into memory may be refused by either. The last line is `N passed, N failed`,
counted in models. Needs onnx and numpy, and a system with mprotect.
"""

import argparse
import ctypes
import fnmatch
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from hostile_models import CASES

PAGE = os.sysconf("SC_PAGE_SIZE")
ARENA = 16 << 20
ROOM = 1 << 20  # for each result
TYPES = {"float32": "float", "float64": "double", "float16": "float16", "int64": "int64", "int32": "int32",
         "int8": "int8", "uint8": "uint8", "bool": "bool"}
TOO_SMALL, BAD_INPUT, BAD_OUTPUT, CHECK_FAILED = 1, 65536, 131072, 196608
TOO_LARGE = ("memory", "too large", "too many", "limit", "bytes", "overflow")


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Guarded:
    """Memory whose last byte lies before a page that nobody may touch."""

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def __init__(self, size):
        pages = (size + PAGE - 1) // PAGE
        self.length = (pages + 1) * PAGE
        self.base = self.libc.mmap(None, self.length, 3, 0x22, -1, 0)
        if self.base == ctypes.c_void_p(-1).value or self.libc.mprotect(self.base + pages * PAGE, PAGE, 0):
            raise MemoryError
        self.size = size
        self.address = self.base + pages * PAGE - size

    def bytes(self, size):
        return ctypes.string_at(self.address, size)

    def free(self):
        self.libc.munmap(self.base, self.length)


def text_of(case, kind, lie):
    """The model in the text form; lie: a size that is declared of the first result."""
    def port(name, array):
        def is_open(axis):
            is_list = axis == array.ndim - 1 and array.dtype.kind == "i"
            return kind == "open" or (kind == "lists closed" and not is_list)

        sizes = ",".join(f"{name}_{i}" if is_open(i) else str(d) for i, d in enumerate(array.shape))
        return f"{TYPES[array.dtype.name]}[{sizes}] {name}" if array.ndim else f"{TYPES[array.dtype.name]} {name}"

    outputs = []
    for name, (dtype, rank) in case.results.items():
        sizes = [f"{name}_{i}" for i in range(rank)]
        if lie is not None and sizes and not outputs:
            sizes[0] = str(lie)
        outputs.append(f"{dtype}[{','.join(sizes)}] {name}" if rank else f"{dtype} {name}")
    inputs = [port(name, array) for name, array in case.operands.items()]
    opsets = f'["": {case.opset}, "ai.onnx.ml": 5, "com.microsoft": 1]'
    return (f"<ir_version: 10, opset_import: {opsets}>\nhostile ({', '.join(inputs)}) => ({', '.join(outputs)})\n"
            f"{{\n{case.body}\n}}\n")


def extremes(array):
    if array.dtype.kind == "f":
        return [0.0, -1.0, 0.5, 3.0, 1e9, -1e30, np.inf, np.nan]
    info = np.iinfo(array.dtype)
    some = [0, 1, -1, 2, -2, 3, -3, 4, 5, -5, 7, -8, 100, info.min, info.min + 1, info.max, info.max - 1,
            2**31 - 1, 2**31, -2**31, 2**32, 2**61, 2**62, -2**62]
    return [x for x in some if info.min <= x <= info.max]


def variants(name, array, most):
    """Other arrays in the place of one; most: none of its numbers is larger, None: they stay."""
    numbers = [x for x in extremes(array) if not x > most] if most is not None and array.size else []
    for x in numbers:
        for at in sorted({0, array.size - 1}):
            other = array.copy()
            other.reshape(-1)[at] = x
            yield name, other
    for axis in range(array.ndim):
        for size in sorted({0, 1, array.shape[axis] - 1, array.shape[axis] + 1, array.shape[axis] + 9}):
            if size >= 0 and size != array.shape[axis]:
                shape = list(array.shape)
                shape[axis] = size
                yield name, np.resize(array, shape) if array.size else np.ones(shape, array.dtype)


def all_inputs(case, rng, pairs):
    base = case.operands
    changes = [v for n, a in base.items()
               for v in variants(n, a, case.most if n in case.hostile else None)]
    yield base
    for name, array in changes:
        yield {**base, name: array}
    for _ in range(pairs):
        yield {**base, **dict(rng.sample(changes, 2))}


def interpret(program, model, inputs, folder):
    """('ok', arrays) or ('refused', why)."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    command = [str(program), "run", str(model), "--memory", str(64 << 20), "--threads", "1", "-o", str(folder / "out")]
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        command += ["-i", f"{name}={folder / name}.npy"]
    done = subprocess.run(command, text=True, capture_output=True, check=False, errors="replace")
    if done.returncode < 0:
        return "crashed", f"signal {-done.returncode}"
    if done.returncode:
        return "refused", done.stderr.strip()
    return "ok", {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


class Compiled:
    def __init__(self, path, case, shapes):
        library = ctypes.CDLL(str(path))
        self.run_function = library.hostile_run
        self.run_function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t]
        self.error = library.hostile_error
        self.error.restype = ctypes.c_char_p
        self.case = case
        self.shapes = shapes  # of results: known ones must be given
        self.arena = Guarded(ARENA)

    def call(self, inputs, rooms):
        """A code and, for each result, its sizes and the memory it is in."""
        memory, tensors, shapes = [], (Tensor * max(len(inputs), 1))(), []
        for tensor, array in zip(tensors, inputs.values()):
            memory.append(Guarded(array.nbytes))
            ctypes.memmove(memory[-1].address, np.ascontiguousarray(array).tobytes(), array.nbytes)
            shapes.append((ctypes.c_int64 * max(array.ndim, 1))(*array.shape))
            tensor.data, tensor.shape, tensor.size = memory[-1].address, ctypes.addressof(shapes[-1]), array.nbytes
        results, sizes, places = (Tensor * len(rooms))(), [], []
        for tensor, room, shape in zip(results, rooms, self.shapes):
            places.append(Guarded(room))
            sizes.append((ctypes.c_int64 * max(len(shape), 1))(*shape))
            tensor.data, tensor.shape, tensor.size = places[-1].address, ctypes.addressof(sizes[-1]), room
        code = self.run_function(ctypes.addressof(tensors), ctypes.addressof(results), self.arena.address, ARENA)
        for one in memory:
            one.free()
        return code, [tuple(s)[:rank] for s, (_, rank) in zip(sizes, self.case.results.values())], places

    def run(self, inputs):
        code, shapes, places = self.call(inputs, [ROOM] * len(self.case.results))
        for place in places:
            place.free()
        if code == TOO_SMALL or BAD_OUTPUT <= code < CHECK_FAILED:
            return "large", self.error(code).decode()
        if code:
            return "refused", self.error(code).decode()
        dtypes = [np.dtype({v: k for k, v in TYPES.items()}[t]) for t, _ in self.case.results.values()]
        counts = [int(np.prod(s, dtype=object)) * d.itemsize for s, d in zip(shapes, dtypes)]
        again, _, places = self.call(inputs, counts)  # into memory that has just enough room
        if again:
            return "differs", f"with just enough memory: {self.error(again).decode()}"
        arrays = {name: np.frombuffer(place.bytes(n), d).reshape(s)
                  for name, place, n, d, s in zip(self.case.results, places, counts, dtypes, shapes)}
        for place in places:
            place.free()
        return "ok", arrays


def same(expected, got):
    for name, array in got.items():
        other = expected[name]
        if other.shape != array.shape:
            return False
        if array.dtype.kind == "f":
            with np.errstate(all="ignore"):
                if not np.allclose(array.astype(np.float64), other.astype(np.float64), 1e-3, 1e-4, equal_nan=True):
                    return False
        elif not np.array_equal(array, other):
            return False
    return True


def is_known(case, inputs, expected, got):
    """Is it a difference that is written down?"""
    sizes = any(inputs[n].shape != a.shape for n, a in case.operands.items())
    if expected[0] != "ok" or got[0] != "refused":
        return False
    other_rank = any(expected[1][n].ndim != rank for n, (_, rank) in case.results.items())
    empty = any(a.size == 0 for a in inputs.values())
    return other_rank or (sizes and (empty or case.name in case.NARROW))


def agree(expected, got):
    """Is what the interpreter says what compiled code says?"""
    if got[0] == "large":
        return expected[0] == "refused" or sum(a.nbytes for a in expected[1].values()) > ROOM // 2
    if expected[0] == "refused":
        return got[0] == "refused" or any(word in expected[1] for word in TOO_LARGE)
    return got[0] == "ok" and same(expected[1], got[1])


def in_child(library, case, shapes, inputs):
    """What compiled code says to each of the inputs; after a crash there is no more."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(300)
        with os.fdopen(writer, "wb") as pipe:
            compiled = Compiled(library, case, shapes)
            for one in inputs:
                pickle.dump(compiled.run(one), pipe)
                pipe.flush()
        os._exit(0)
    os.close(writer)
    said = []
    with os.fdopen(reader, "rb") as pipe:
        try:
            while True:
                said.append(pickle.load(pipe))  # our own child wrote it
        except EOFError:
            pass
    _, status = os.waitpid(child, 0)
    if status:
        said.append(("crashed", f"signal {status & 127}"))
    return said


def show(inputs):
    return ", ".join(f"{n}={a.tolist() if a.size <= 8 else a.shape}" for n, a in inputs.items())


def try_model(args, folder, case, kind, lie):
    """Lines about what is wrong."""
    what = kind + (f", first result declared as {lie}" if lie is not None else "")
    model = folder / "model.onnxtxt"
    model.write_text(text_of(case, kind, lie))
    library = folder / "model.so"
    done = subprocess.run([str(args.build / "cameo"), "compile", str(model), "-o", str(library), "--name", "hostile"]
                          + (["--pure"] if args.pure else []), text=True, capture_output=True, check=False)
    if done.returncode:
        if done.returncode == 1 and kind == "open":
            return try_model(args, folder, case, "lists closed", lie)
        return [] if lie is not None and done.returncode == 1 else [f"{what}: not compiled: {done.stderr.strip()}"]
    inputs = list(all_inputs(case, random.Random(case.name), args.pairs))
    if kind == "closed":
        inputs = [one for one in inputs if all(one[n].shape == a.shape for n, a in inputs[0].items())]
    expected = [interpret(args.build / "cameo", model, one, folder) for one in inputs]
    if expected[0][0] != "ok" and lie is None:
        return [f"{what}: the interpreter refuses what is right: {expected[0][1]}"]
    shapes = [expected[0][1][name].shape if expected[0][0] == "ok" else (lie,) * rank
              for name, (_, rank) in case.results.items()]
    got = []
    while len(got) < len(inputs):
        got += in_child(library, case, shapes, inputs[len(got):])
    args.runs += len(inputs)
    return [f"{what}: {show(one)}: interpreter {said[0]} {short(said)}; compiled {answer[0]} {short(answer)}"
            for one, said, answer in zip(inputs, expected, got)
            if not agree(said, answer) and not is_known(case, one, said, answer)]


def short(answer):
    if isinstance(answer[1], str):
        return f"({answer[1].rsplit(': ', 1)[-1][:90]})"
    return str({n: f"{a.shape} {a.reshape(-1)[:4].tolist()}" for n, a in answer[1].items()})[:150]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--match", default="*")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    args.runs = 0
    passed = failed = 0
    with tempfile.TemporaryDirectory() as root:
        for case in CASES:
            if not any(fnmatch.fnmatch(case.name, one) for one in args.match.split(",")):
                continue
            wrong = []
            for kind, lie in (("open", None), ("closed", None), ("open", 7)):
                if kind == "open" and case.name in case.FIXED:
                    continue
                wrong += try_model(args, Path(root), case, kind, lie)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            for line in wrong if args.verbose else wrong[:4]:
                print(f"FAIL {case.name}, {line}", flush=True)
            if len(wrong) > 4 and not args.verbose:
                print(f"     {case.name}: {len(wrong) - 4} more", flush=True)
    print(f"{args.runs} runs\n# counts: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
