"""A compiled training step, called through its C functions as a program in C would."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import re

import numpy as np

TYPES = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32,
         "bool": np.uint8}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def aligned(size):
    """size bytes at a multiple of 64."""
    memory = np.zeros(size + 64, np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip:skip + size]


class Step:
    """One whose C functions are called step_...; its outputs must be of one element."""

    def __init__(self, path):
        header = open(path.replace(".so", ".h")).read()
        self.inputs = re.findall(r"STEP_IN_\w+ = \d+, /\* ([^:]+):", header)
        outputs = re.findall(r"STEP_OUT_\w+ = \d+, /\* ([^:]+): (\w+)[\[,]", header)
        self.outputs = [(name, TYPES[kind]) for name, kind in outputs]
        places = re.findall(r"/\* at (\d+): (.*), \w+(?:\[[\d,]*\])?, (\d+) bytes \*/", header)
        self.places = {name: (int(at), int(size)) for at, name, size in places}
        self.library = ctypes.CDLL(path)
        self.library.step_error.restype = ctypes.c_char_p
        self.state = aligned(int(re.search(r"STEP_STATE_BYTES (\d+)", header)[1]))
        self.arena = aligned(1 << 26)
        self.library.step_initialize(self.address())

    def address(self):
        return ctypes.c_void_p(self.state.ctypes.data)

    def seed(self, number):
        self.library.step_seed(self.address(), ctypes.c_uint64(number))

    def variable(self, name):
        at, size = self.places[name]
        return self.state[at:at + size]

    def __call__(self, feeds):
        """What the step gives, by name."""
        arrays = [np.ascontiguousarray(feeds[name]) for name in self.inputs]
        shapes = [np.array(array.shape + (0,), np.int64) for array in arrays]
        results = [np.zeros(1, kind) for _, kind in self.outputs]
        inputs = (Tensor * max(len(arrays), 1))(
            *[Tensor(a.ctypes.data, s.ctypes.data, a.nbytes) for a, s in zip(arrays, shapes)]
        )
        outputs = (Tensor * max(len(results), 1))(
            *[Tensor(a.ctypes.data, None, a.nbytes) for a in results]
        )
        code = self.library.step_step(
            self.address(), inputs, outputs,
            ctypes.c_void_p(self.arena.ctypes.data), ctypes.c_size_t(self.arena.nbytes),
        )
        assert code == 0, self.library.step_error(code).decode()
        return {name: float(result[0]) for (name, _), result in zip(self.outputs, results)}
