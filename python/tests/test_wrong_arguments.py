# SPDX-License-Identifier: Apache-2.0
"""Whatever is passed to the extension, it answers with an exception: never a crash, never a SystemError.

The calls are made in a process of their own, which writes each down before it makes it; so a crash names its call.
"""

import os
import random
import subprocess
import sys
import tempfile
import unittest

CALLS = 600  # of each function
SECONDS = 240

LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }"""


def instances(cameo):
    """An object of each type of the extension that can be had."""
    model = cameo.load(LINE)
    trainable = cameo.load(LINE).prepare(loss="mse", optimizer="sgd", lr=0.1)
    return [model._inside, trainable._inside, cameo.Session(model)._inside, cameo.Trainer(trainable)._inside,
            cameo._cameo.value(1, (2,), bytes(8))]


def right(cameo, numpy):
    """Calls that are right, (end of the function's name, arguments..): each is made with one argument after the other
    exchanged. A function that is not here is called with anything."""
    model, trainable, session, trainer, value = instances(cameo)
    keys = cameo._cameo.value(7, (2,), bytes(8) + b"12345678")
    data = trainable.write(False)
    x = numpy.ones(2, numpy.float32)
    return [
        ("value", 1, (2, 3), bytes(24)), ("value", 8, (2,), ["a", b"b"]), ("value", 21, (3,), bytes(2)),
        ("sequence", [value, value]), ("map", keys, [value, value]), ("optional", value),
        ("load", data, 0, False, False), ("load", "in.onnx", 0, False, False), ("prepare", model),
        ("gradient", model, "y", ["x"], False), ("initializers", model), ("view_initializer", model, 0),
        ("Session", model), ("Trainer", trainable), (".run", ["y"], {"x": x}), (".step", {"x": x, "target": x}),
        (".save", "out.onnx", 0, None), (".write", True, 4), (".check", True),
    ]


class Liar:
    """Claims to be all sorts of things."""

    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        raise IndexError(index)

    def __index__(self):
        raise ZeroDivisionError

    def __fspath__(self):
        return 5

    def __dlpack__(self, **options):
        return object()


class Raiser:
    """Raises whenever something is asked of it."""

    def __getattr__(self, name):
        raise ZeroDivisionError(name)


def arguments(cameo, numpy):
    x = numpy.arange(6, dtype=numpy.float32)
    frozen = x.copy()
    frozen.flags.writeable = False
    released = memoryview(bytearray(8))
    released.release()
    loop = []
    loop.append(loop)
    return [
        None, True, 0, 1, -1, 7, 2**31 - 1, 2**31, -2**31 - 1, 2**63 - 1, 2**63, 2**64, -2**200, 0.5, float("nan"), 1j,
        "", "x", "y", "w", "mse", "sgd", "a\0b", "\ud800", "/nowhere/at/all", "x" * 5000, b"", b"x", b"a\0b", b"\xff" * 100,
        bytearray(b"12345678"), memoryview(b"12345678"), memoryview(x), released,
        [], [None], ["x"], ["y"], [b"y"], [1, 2], loop, (), (1,), (2, 3), (-1,), (2**62, 2**62), (0, 2**40), (1,) * 64, (1,) * 65,
        ("x", "y"), {}, {"x": x}, {"x": None}, {"x": x, "nothing": x}, {1: 2}, {None: x}, {"x": frozen}, {"x": x[::-1]},
        {"x": x.astype(">f4")}, {"x": numpy.zeros((0, 3), numpy.float32)}, {"x": numpy.array(1, numpy.float32)},
        {"x": numpy.asfortranarray(x.reshape(2, 3))}, {"x": numpy.broadcast_to(x[:1], (1 << 20,))}, {"x": Liar()},
        x, frozen, x[::2], x[::-1], x.astype(">f4"), x.reshape(2, 3).T, numpy.zeros(0, numpy.float32),
        numpy.array(["a", "b"], object), numpy.zeros(3, [("a", "f4"), ("b", "i8")]), numpy.datetime64("now"),
        numpy.zeros((1,) * 64, numpy.float32), object(), Liar(), Raiser(), Liar, int, lambda *given, **named: given, iter([1]),
        cameo.load(LINE), range(3), {1, 2}, slice(None), Ellipsis, NotImplemented, ValueError("x"),
        *instances(cameo),
    ]


KEYWORDS = ("model threads memory_limit backend seed without expand gradients with_passes source format copy links loss output "
            "target optimizer lr schedule warmup accumulate class_axis train max_version stream dl_device nothing").split()
FINE = (TypeError, ValueError, OverflowError, BufferError, LookupError, OSError, RuntimeError, MemoryError, AttributeError,
        ArithmeticError, StopIteration)


def functions(cameo):
    """(name, function) of the module, its types, and methods of an object of each."""
    from cameo import _cameo
    for name, value in sorted(vars(_cameo).items()):
        if not name.startswith("__") and callable(value) and not (isinstance(value, type)
                                                                  and issubclass(value, BaseException)):
            yield name, value
    for number, made in enumerate(instances(cameo)):
        kind = type(made).__name__
        for name in sorted(set(dir(type(made))) - set(dir(object)) | {"__init__", "__setattr__", "__reduce_ex__"}):
            value = getattr(made, name)
            if callable(value):
                yield f"{kind}{number}.{name}", value
        yield f"memoryview of {kind}{number}", lambda *given, made=made: memoryview(made)


def calls_of(name, table, good, dice):
    """(arguments, named arguments): one of a right call exchanged, then anything."""
    known = [given for end, *given in good if name == end or (end[0] == "." and name.endswith(end))]
    for given in known:
        for position in range(len(given)):
            for other in table:
                yield [*given[:position], other, *given[position + 1:]], {}
        for keyword in KEYWORDS:
            for other in table:
                yield given, {keyword: other}
    for _ in range(CALLS):
        given = [dice.choice(table) for _ in range(dice.randrange(7))]
        if given and known and dice.random() < 0.5:
            given[0] = dice.choice(known)[0]
        yield given, {dice.choice(KEYWORDS): dice.choice(table) for _ in range(dice.choice((0, 0, 1, 3)))}


def make_calls(only):
    """Run in the process of its own: one line on its output for each call that is wrong, and "end" at last."""
    import resource

    import numpy

    import cameo
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # the sanitizer reserves more
        resource.setrlimit(resource.RLIMIT_AS, (32 << 30, 32 << 30))
    table = arguments(cameo, numpy)
    good = right(cameo, numpy)
    dice = random.Random(5)
    log = os.open("last-call.txt", os.O_WRONLY | os.O_CREAT, 0o600)
    fine = (cameo.Error, *FINE)
    for name, function in functions(cameo):
        if only and only not in name:
            continue
        for given, named in calls_of(name, table, good, dice):
            os.pwrite(log, f"{name}(*{given!r:.3000}, **{named!r:.3000})\n".encode(errors="replace"), 0)
            try:
                function(*given, **named)
            except ZeroDivisionError:
                pass  # raised by an argument
            except fine:
                pass
            except BaseException as error:
                print(f"{name}(*{given!r:.500}, **{named!r:.500}): {type(error).__name__}: {error}")
    print("end")


class WrongArgumentsTest(unittest.TestCase):
    def test_are_answered_with_an_exception(self):
        import cameo
        with tempfile.TemporaryDirectory() as folder:
            path = [os.path.dirname(os.path.dirname(os.path.abspath(cameo.__file__))), os.environ.get("PYTHONPATH", "")]
            done = subprocess.run([sys.executable, "-X", "faulthandler", os.path.abspath(__file__), "--make-calls"], cwd=folder,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=SECONDS)
            last = os.path.join(folder, "last-call.txt")
            call = open(last, encoding="utf-8", errors="replace").readline() if os.path.exists(last) else ""
        self.assertEqual(done.returncode, 0, f"{call}\n{done.stderr[-3000:]}")
        self.assertEqual(done.stdout, "end\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make-calls"]:
        make_calls(sys.argv[2] if len(sys.argv) > 2 else "")
    else:
        unittest.main()
