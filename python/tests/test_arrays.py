# SPDX-License-Identifier: Apache-2.0
"""Arrays on their way in and out: types, layouts, strings, sequences, maps, optionals."""

import array
import ctypes
import struct
import sys
import unittest

import numpy

import cameo
from cameo import _cameo

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def identity(kind):
    """A session that gives back what it is fed, of this ONNX type."""
    return cameo.Session(f"""<ir_version: 10, opset_import: ["" : 21]>
same ({kind} x) => ({kind} y) {{ y = Identity(x) }}""")


def through(kind, value):
    return identity(kind).run(None, {"x": value})[0]


class PlainTest(unittest.TestCase):
    TYPES = {"float": "f4", "double": "f8", "float16": "f2", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
             "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "bool": "?", "complex64": "c8",
             "complex128": "c16"}

    def same(self, kind, value, expected=None):
        expected = value if expected is None else expected
        got = through(kind, value)
        self.assertEqual(got.dtype, expected.dtype.newbyteorder("="))
        self.assertEqual(got.shape, expected.shape)
        numpy.testing.assert_array_equal(got, expected)

    def test_every_type_and_layout(self):
        for kind, code in self.TYPES.items():
            whole = numpy.arange(24).reshape(2, 3, 4).astype(code)
            layouts = {"dense": whole, "fortran": numpy.asfortranarray(whole), "backwards": whole[::-1, :, ::-1],
                       "steps": whole[:, ::2, 1:], "turned": whole.transpose(2, 0, 1), "empty": whole[:, :0],
                       "big-endian": whole.astype(numpy.dtype(code).newbyteorder(">")), "scalar": whole[1, 2, 3, ...],
                       "spread": numpy.broadcast_to(whole[:, :1], (2, 5, 4))}
            for name, value in layouts.items():
                with self.subTest(kind=kind, layout=name):
                    self.same(f"{kind}[]", numpy.asarray(value))

    def test_elements_apart_by_parts_of_their_size(self):
        rows = numpy.zeros(4, numpy.dtype({"names": ["a"], "formats": ["<f4"], "offsets": [1], "itemsize": 6}))
        rows["a"] = [1, 2, 3, 4]
        self.same("float[N]", rows["a"])

    def test_read_only(self):
        value = numpy.arange(4, dtype=numpy.float32)
        value.flags.writeable = False
        self.same("float[N]", value)

    def test_subclasses_are_their_memory(self):
        value = numpy.arange(4, dtype=numpy.float32).view(numpy.recarray)
        self.same("float[N]", value, numpy.arange(4, dtype=numpy.float32))

    def test_python_numbers_become_what_is_declared(self):
        cases = [("float[N]", [1, 2.5], "f4"), ("float", 3, "f4"), ("double[N]", (1, 2), "f8"),
                 ("int64[N,M]", [[1, 2], [3, 4]], "i8"), ("uint8[N]", range(3), "u1"), ("bool[N]", [True, False], "?"),
                 ("float16[N]", [1.5], "f2"), ("complex64[N]", [1 + 2j], "c8"), ("int32[N]", [], "i4")]
        for kind, value, code in cases:
            with self.subTest(kind=kind):
                self.same(kind, value, numpy.array(value, code))

    def test_other_buffers(self):
        floats = numpy.array([1, 2], numpy.float32)
        self.same("float[N]", array.array("f", [1, 2]), floats)
        self.same("float[N]", memoryview(floats), floats)
        self.same("float[N]", memoryview(floats)[::-1], floats[::-1])
        self.same("uint8[N]", b"ab", numpy.array([97, 98], "u1"))
        self.same("uint8[N]", bytearray(b"ab"), numpy.array([97, 98], "u1"))

    def test_what_does_not_fit_is_refused(self):
        cases = [("float[N]", numpy.zeros(2), "is of type double, needs float"),
                 ("int64[N]", [1.5], "is of type double, needs int64"),
                 ("uint8[N]", [300], "a number that uint8 cannot hold"),
                 ("uint8[N]", [-1], "a number that uint8 cannot hold"),
                 ("float[N]", [[1], [2, 3]], "input 'x'"),
                 ("float[2]", numpy.zeros(3, "f4"), "has shape"),
                 ("float[N]", numpy.zeros((2, 2), "f4"), "has rank 2, needs 1"),
                 ("float[N]", numpy.array([object()]), "is an array of objects, needs float"),
                 ("float[N]", numpy.array(["a"]), "is an array of texts, needs float"),
                 ("float[N]", numpy.zeros(2, "M8[s]"), "elements of datetime64\\[s\\], which ONNX does not have"),
                 ("float[N]", None, "input 'x'")]
        for kind, value, sentence in cases:
            with self.subTest(kind=kind, value=value):
                with self.assertRaisesRegex((cameo.ArgumentError, TypeError), sentence):
                    through(kind, value)

    def test_names_are_told(self):
        session = identity("float[N]")
        value = numpy.zeros(2, "f4")
        for outputs, inputs, sentence in [(None, {"z": value}, "no input 'z'; the model has 'x'"),
                                          (["z"], {"x": value}, "no output 'z'; the model has 'y'"),
                                          (None, {}, "'x'")]:
            with self.assertRaisesRegex(cameo.ArgumentError, sentence):
                session.run(outputs, inputs)
        for outputs, inputs in [(None, [value]), ("y", {"x": value}), (None, {1: value}), ([1], {"x": value}), (3, {})]:
            with self.assertRaises(TypeError):
                session.run(outputs, inputs)
        self.assertEqual(session.run([], {"x": value}), [])


class MemoryTest(unittest.TestCase):
    def test_a_hundred_megabytes_are_not_copied(self):
        """A run that may hold no more than the result reads its input in place; one that may hold next to nothing
        writes to the caller's memory directly."""
        x = numpy.ones(25_000_000, numpy.float32)
        session = cameo.Session("""<ir_version: 8, opset_import: ["" : 17]>
add (float[N] x) => (float[N] y) { y = Add(x, x) }""", memory_limit=(1 << 27) + (1 << 20))
        y, = session.run(None, {"x": x})
        self.assertIsInstance(y.base, cameo._cameo.Value)
        self.assertEqual(memoryview(y.base).nbytes, x.nbytes)
        self.assertEqual(y.__array_interface__["data"][0], numpy.asarray(y.base).__array_interface__["data"][0])
        self.assertFalse(numpy.shares_memory(x, y))
        self.assertEqual((y[0], y[-1]), (2, 2))
        out = numpy.zeros_like(x)
        none = cameo.Session(session.model, memory_limit=1 << 20)
        none.run_into({"y": out}, {"x": x})  # neither input nor output takes memory of the run's
        self.assertEqual((out[0], out[-1]), (2, 2))

    def test_results_never_share_the_callers_memory(self):
        text = """<ir_version: 8, opset_import: ["" : 17]>
views (float[N] x) => (float[N] a, float[M,1] b, float[N] c) <int64[2] shape = {-1, 1}> {
    a = Identity(x)
    b = Reshape(x, shape)
    c = Identity(a)
}"""
        session = cameo.Session(text)
        x = numpy.arange(4, dtype=numpy.float32)
        a, b, c = session.run(None, {"x": x})
        for result in (a, b, c):
            self.assertFalse(numpy.shares_memory(x, result))
        x[:] = 9
        del x
        for result in (a, b, c):
            self.assertEqual(result.reshape(-1).tolist(), [0, 1, 2, 3])

    def test_a_result_that_is_written_to_changes_nothing_else(self):
        session = cameo.Session("""<ir_version: 8, opset_import: ["" : 17]>
twice (float[N] x) => (float[N] a, float[N] b, float[2] w) <float[2] w = {5, 6}> {
    a = Neg(x)
    b = Identity(a)
}""")
        x = numpy.arange(2, dtype=numpy.float32)
        for _ in range(2):
            a, b, w = session.run(None, {"x": x})
            self.assertEqual((a.tolist(), b.tolist(), w.tolist()), ([0, -1], [0, -1], [5, 6]))
            for result in (a, w):
                if result.flags.writeable:
                    result[:] = 7
            self.assertEqual(b.tolist(), [0, -1])

    def test_results_outlive_everything(self):
        y = through("float[N]", numpy.arange(3, dtype=numpy.float32))
        self.assertEqual(y.tolist(), [0, 1, 2])

    def test_run_into(self):
        session = cameo.Session("""<ir_version: 8, opset_import: ["" : 17]>
add (float[N] x) => (float[N] y) { y = Add(x, x) }""")
        x = numpy.ones(3, numpy.float32)
        frozen = numpy.zeros(3, numpy.float32)
        frozen.flags.writeable = False
        for room, sentence in [(numpy.zeros(4, "f4"), "shape"), (numpy.zeros(3), "type"),
                               (numpy.zeros(6, "f4")[::2], "stride"), (frozen, "read-only|writ"), (x, "input 'x'"),
                               (numpy.zeros(3, ">f4"), "buffer of '>f'"), ([0, 0, 0], "bytes-like")]:
            with self.assertRaisesRegex((ValueError, TypeError, cameo.Error, BufferError), sentence):
                session.run_into({"y": room}, {"x": x})
        with self.assertRaisesRegex(cameo.ArgumentError, "no output 'z'"):
            session.run_into({"z": numpy.zeros(3, "f4")}, {"x": x})
        y = numpy.zeros(3, "f4")
        self.assertIsNone(session.run_into({"y": y}, {"x": x}))
        self.assertEqual(y.tolist(), [2, 2, 2])
        scalar = numpy.zeros((), "f4")
        with self.assertRaises(cameo.ArgumentError):
            session.run_into({"y": scalar}, {"x": x})


class StringTest(unittest.TestCase):
    def test_every_spelling(self):
        values = [numpy.array(["a", "ü\0é"], object), numpy.array(["a", "ü\0é"]), ["a", "ü\0é"],
                  numpy.array(["a".encode(), "ü\0é".encode()], object)]
        if hasattr(numpy.dtypes, "StringDType"):
            values.append(numpy.array(["a", "ü\0é"], numpy.dtypes.StringDType()))
        for value in values:
            with self.subTest(value=value):
                got = through("string[N]", value)
                self.assertEqual(got.dtype, object)
                self.assertEqual(got.tolist(), ["a", "ü\0é"])
        self.assertEqual(through("string[N]", numpy.array([b"a", b"bc"])).tolist(), ["a", "bc"])
        self.assertEqual(through("string", "word").item(), "word")
        self.assertEqual(through("string[N,M]", [["a"], ["b"]]).shape, (2, 1))
        self.assertEqual(through("string[N]", numpy.array([], object)).shape, (0,))

    def test_bytes_that_are_not_utf8_come_back(self):
        got = through("string[N]", numpy.array([b"\xff\x00\xfe", "ok"], object))
        self.assertEqual([item.encode("utf-8", "surrogateescape") for item in got], [b"\xff\x00\xfe", b"ok"])
        again = through("string[N]", got)
        self.assertEqual(again.tolist(), got.tolist())

    def test_what_utf8_cannot_say_is_refused(self):
        with self.assertRaisesRegex(cameo.ArgumentError, "input 'x'"):
            through("string[N]", ["\ud800"])


class NestedTest(unittest.TestCase):
    def test_sequences(self):
        parts = [numpy.arange(2, dtype="f4"), numpy.arange(3, dtype="f4")]
        objects = numpy.empty(2, object)
        objects[:] = parts
        for value in (parts, tuple(parts), objects, [[0, 1], [0, 1, 2]]):
            got = through("seq(float[N])", value)
            self.assertEqual([item.tolist() for item in got], [[0, 1], [0, 1, 2]])
            self.assertEqual(got[0].dtype, numpy.float32)
        self.assertEqual([item.tolist() for item in through("seq(float[N])", numpy.ones((2, 1), "f4"))], [[1], [1]])
        self.assertEqual([item.tolist() for item in through("seq(string[N])", [["a"], ["b", "c"]])],
                         [["a"], ["b", "c"]])
        for value in ("text", 3, {"a": 1}, [numpy.zeros(2)], None):
            with self.assertRaises(cameo.ArgumentError):
                through("seq(float[N])", value)

    def test_optionals(self):
        empty = numpy.array(None, dtype=object)
        for kind, value, expected in [("optional(float[N])", None, None), ("optional(float[N])", [1, 2], [1, 2]),
                                      ("optional(float[N])", empty, None),
                                      ("optional(float[N])", numpy.ones(1, "f4"), [1]),
                                      ("optional(seq(float[N]))", [[1], [2]], [[1], [2]]),
                                      ("optional(seq(float[N]))", None, None)]:
            with self.subTest(kind=kind, value=value):
                got = through(kind, value)
                if isinstance(got, list):
                    got = [item.tolist() for item in got]
                self.assertEqual(got.tolist() if isinstance(got, numpy.ndarray) else got, expected)

    def test_maps(self):
        model = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
zip (float[N,2] p) => (seq(map(string,float)) z) { z = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (p) }"""
        self.assertEqual(cameo.Session(model).run(None, {"p": [[0.25, 0.75]]})[0], [{"no": 0.25, "yes": 0.75}])
        model = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
pick (map(int64,float) m) => (float[1,3] v) { v = ai.onnx.ml.DictVectorizer <int64_vocabulary = [1, 2, 3]> (m) }"""
        session = cameo.Session(model)
        self.assertEqual(session.run(None, {"m": {1: 0.5, 3: 2}})[0].tolist(), [[0.5, 0, 2]])
        for value in ([1], {"a": 1.0}, None):
            with self.assertRaises(cameo.ArgumentError):
                session.run(None, {"m": value})


class NarrowTest(unittest.TestCase):
    def test_unsigned_numbers_stand_for_them(self):
        for kind, value in [("bfloat16[N]", numpy.array([0x3f80, 0x4000], "u2")),
                            ("float8e4m3fn[N]", numpy.array([0x38, 1], "u1")),
                            ("uint4[N]", numpy.array([1, 15, 7], "u1"))]:
            got = through(kind, value)
            self.assertEqual(numpy.asarray(got).view(value.dtype).tolist(), value.tolist())

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_ml_dtypes(self):
        for name, kind in [("bfloat16", "bfloat16"), ("float8_e4m3fn", "float8e4m3fn"), ("float8_e5m2", "float8e5m2"),
                           ("float8_e4m3fnuz", "float8e4m3fnuz"), ("float8_e5m2fnuz", "float8e5m2fnuz"),
                           ("int4", "int4"), ("uint4", "uint4"), ("float4_e2m1fn", "float4e2m1")]:
            if not hasattr(ml_dtypes, name):
                continue
            dtype = numpy.dtype(getattr(ml_dtypes, name))
            for value in (numpy.array([[1, 2, 3]]).astype(dtype), numpy.array(1).astype(dtype),
                          numpy.array([[1, 2], [3, 4]]).astype(dtype).T[::-1]):
                with self.subTest(name=name, shape=value.shape):
                    got = through(f"{kind}[]", value)
                    self.assertEqual(got.dtype, dtype)
                    self.assertEqual(got.astype("f4").tolist(), value.astype("f4").tolist())
        with self.assertRaisesRegex(cameo.ArgumentError, "is of type bfloat16, needs float8e4m3fn"):
            through("float8e4m3fn[N]", numpy.zeros(2, ml_dtypes.bfloat16))
        self.assertEqual(through("bfloat16[N]", [1.5, 2]).astype("f4").tolist(), [1.5, 2])


class Other:
    """A tensor of another library: DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Elsewhere:
    """A tensor that cannot be had."""

    def __dlpack__(self, **options):
        raise BufferError("it is somewhere else")

    def __dlpack_device__(self):
        return (1, 0)


class Made:
    """A tensor made by hand, whose deleter runs Python, as those of other libraries may."""

    FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

    def __init__(self, dims, strides=None, device=1):
        self.memory = (ctypes.c_float * 4)(1, 2, 3, 4)
        self.dims = (ctypes.c_int64 * len(dims))(*dims)
        self.strides = (ctypes.c_int64 * len(dims))(*strides) if strides else None
        self.seen = []
        self.deleter = self.FUNCTION(self.delete)
        # DLManagedTensor: data, device, ndim, dtype (code, bits, lanes), shape, strides, byte_offset, context, deleter
        self.tensor = ctypes.create_string_buffer(struct.pack(
            "<QiiiBBHQQQQQ", ctypes.addressof(self.memory), device, 0, len(dims), 2, 32, 1, ctypes.addressof(self.dims),
            ctypes.addressof(self.strides) if strides else 0, 0, 0, ctypes.cast(self.deleter, ctypes.c_void_p).value), 64)

    def delete(self, tensor):
        self.seen.append(sum(range(10)))  # fails where an exception is set

    def __dlpack__(self, **options):
        if options:
            raise TypeError
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)


class DlpackTest(unittest.TestCase):
    def test_strides_that_overflow_are_refused(self):
        for strides in ([2**62, 1], [-2**63, 1], [2**63 - 1, 2**63 - 1], [2**61, 1]):
            with self.assertRaisesRegex(cameo.ArgumentError, "lead out of all memory"):
                _cameo.from_dlpack(Made([2, 2], strides))
        made = Made([2, 2], [1, 2])
        self.assertEqual(numpy.asarray(_cameo.from_dlpack(made)).tolist(), [[1, 3], [2, 4]])
        self.assertEqual(made.seen, [45])

    def test_deleters_do_not_meet_an_exception(self):
        made = Made([4])
        model = cameo.load('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, float[2] z) => (float[2] y) '
                           '{ y = Add(x, z) }')
        for _ in range(2):
            with self.assertRaisesRegex(cameo.Error, "x"):
                model.run(x=made, z=numpy.zeros(2, "float32"))
            self.assertEqual(made.seen, [45])
            made.seen.clear()

    def test_memory_of_a_model_is_not_given_away(self):
        model = cameo.load('<ir_version: 8, opset_import: ["" : 17]> '
                           'g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }')
        view = _cameo.view_initializer(model._inside, 0)
        for options in ({}, {"max_version": (1, 1)}):
            with self.assertRaisesRegex(BufferError, "not given away"):
                view.__dlpack__(**options)
        self.assertEqual(numpy.asarray(view).tolist(), [1, 2])

    def test_what_is_fed_is_given_back(self):
        session = cameo.Session('<ir_version: 8, opset_import: ["" : 17]> g (float[10] x) => (float[10] y) { y = Neg(x) }')
        array = numpy.zeros(10, "float32")
        before = sys.getrefcount(array)
        for _ in range(10):
            session.run(None, {"x": Other(array)})
        self.assertEqual(sys.getrefcount(array), before)

    def test_in_and_out(self):
        x = numpy.arange(3, dtype=numpy.float32)
        y = through("float[N]", Other(x))
        x[:] = 9
        self.assertEqual(y.tolist(), [0, 1, 2])
        seen = numpy.from_dlpack(y.base)
        self.assertTrue(numpy.shares_memory(seen, y))
        with self.assertRaisesRegex(cameo.ArgumentError, "input 'x': it is somewhere else"):
            through("float[N]", Elsewhere())
        room = numpy.zeros(3, numpy.float32)
        identity("float[N]").run_into({"y": Other(room)}, {"x": y})
        self.assertEqual(room.tolist(), [0, 1, 2])
        with self.assertRaisesRegex(cameo.ArgumentError, "output 'y': it is somewhere else"):
            identity("float[N]").run_into({"y": Elsewhere()}, {"x": y})
        self.assertEqual(struct.unpack("f", bytes(memoryview(y.base))[4:8]), (1.0,))


if __name__ == "__main__":
    unittest.main()
