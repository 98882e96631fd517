# SPDX-License-Identifier: Apache-2.0
"""Scripts in ONNX Runtime's habits: what they print is the same under both modules, with the import alone changed."""

import contextlib
import importlib.util
import io
import json
import os
import tempfile
import textwrap
import threading
import unittest
import warnings

import numpy

import cameo

HAS_ORT = importlib.util.find_spec("onnxruntime") is not None

MODELS = {
    "net.onnx": """<ir_version: 8, opset_import: ["" : 17], producer_name: "tests", model_version: 7, doc_string: "about",
        metadata_props: ["author": "somebody"]>
        net (float[batch,4] x, float[batch,1] scale) => (float[batch,2] scores, int64[batch] label)
        <float[4,2] w = {1, -1, 0.5, 2, -3, 1, 0.25, 0}> {
            products = MatMul(x, w)
            scores = Mul(products, scale)
            label = ArgMax <axis = 1, keepdims = 0> (scores)
        }""",
    "add.onnx": """<ir_version: 8, opset_import: ["" : 17]>
        add (float[N,3] a, float[N,3] b) => (float[N,3] sum) { sum = Add(a, b) }""",
    "default.onnx": """<ir_version: 8, opset_import: ["" : 17]>
        bias (float[3] x, float[3] b) => (float[3] y) <float[3] b = {1, 2, 3}> { y = Add(x, b) }""",
    "kinds.onnx": """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
        kinds (float[N,2] p, string[N] s) => (seq(map(int64, float)) z, string[N] t, seq(float[N,2]) q) {
            z = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1]> (p)
            t = Identity(s)
            q = SequenceConstruct(p, p)
        }""",
    "half.onnx": """<ir_version: 8, opset_import: ["" : 17]>
        half (float16[N] x) => (float16[N] y, double[N] d) { y = Neg(x) d = Cast <to = 11> (x) }""",
}

# Each is run in a folder with the models, with `ort` and `np` there, and numbers in results rounded.
SCRIPTS = {
    "first steps": """
        session = ort.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        result = session.run(None, {name: x, "scale": np.ones((2, 1), np.float32)})
        print(len(result), result[0].dtype, result[0].tolist(), result[1].tolist())
    """,
    "what a model is": """
        session = ort.InferenceSession("net.onnx", providers=ort.get_available_providers()[-1:])
        for arg in session.get_inputs() + session.get_outputs():
            print(arg.name, arg.shape, arg.type)
        print(session.get_inputs()[0])
        meta = session.get_modelmeta()
        print(meta.producer_name, meta.graph_name, meta.version, meta.description, meta.custom_metadata_map, repr(meta.domain))
        print(session.get_providers(), ort.get_device() in ("CPU",))
    """,
    "outputs by name": """
        session = ort.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
        feed = {"x": np.ones((1, 4), np.float32), "scale": np.full((1, 1), 2, np.float32)}
        for names in (["label"], ["label", "scores"], [], None, [output.name for output in session.get_outputs()]):
            print([value.tolist() for value in session.run(names, feed)])
    """,
    "bytes, options": """
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        with open("add.onnx", "rb") as file:
            session = ort.InferenceSession(file.read(), sess_options=options, providers=["CPUExecutionProvider"])
        print(session.run(["sum"], {"a": np.ones((1, 3), np.float32), "b": np.zeros((1, 3), np.float32)}))
        print(session.get_session_options().intra_op_num_threads, int(options.graph_optimization_level))
    """,
    "a default that may be fed": """
        session = ort.InferenceSession("default.onnx", providers=["CPUExecutionProvider"])
        print([arg.name for arg in session.get_inputs()], [arg.name for arg in session.get_overridable_initializers()])
        x = np.zeros(3, np.float32)
        print(session.run(None, {"x": x})[0], session.run(None, {"x": x, "b": x + 5})[0])
    """,
    "maps, strings, sequences": """
        session = ort.InferenceSession("kinds.onnx", providers=["CPUExecutionProvider"])
        print([(arg.name, arg.type) for arg in session.get_inputs() + session.get_outputs()])
        z, t, q = session.run(None, {"p": np.array([[0.25, 0.75]], np.float32), "s": np.array(["é"], dtype=object)})
        print(z, type(z[0][0]).__name__, t, t.dtype, [item.tolist() for item in q], type(q).__name__)
        print(session.run(["t"], {"p": np.zeros((2, 2), np.float32), "s": np.array(["a", "b"])})[0])
    """,
    "caller's memory": """
        session = ort.InferenceSession("add.onnx", providers=["CPUExecutionProvider"])
        a, b, out = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32), np.zeros((2, 3), np.float32)
        binding = session.io_binding()
        binding.bind_cpu_input("a", a)
        binding.bind_input(name="b", device_type="cpu", device_id=0, element_type=np.float32, shape=b.shape,
                           buffer_ptr=b.ctypes.data)
        binding.bind_output(name="sum", device_type="cpu", device_id=0, element_type=np.float32, shape=out.shape,
                            buffer_ptr=out.ctypes.data)
        session.run_with_iobinding(binding)
        print(out.tolist(), binding.get_outputs()[0].shape(), binding.copy_outputs_to_cpu()[0].tolist())
        b[:] = 5
        session.run_with_iobinding(binding)
        print(out.tolist())
        binding.clear_binding_outputs()
        binding.bind_output("sum")
        session.run_with_iobinding(binding)
        result = binding.get_outputs()[0]
        print(result.numpy().tolist(), result.device_name(), result.is_tensor(), result.data_ptr() != out.ctypes.data)
        binding.synchronize_inputs()
        binding.synchronize_outputs()
    """,
    "values": """
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        value = ort.OrtValue.ortvalue_from_numpy(x)
        print(value.shape(), value.data_type(), value.has_value(), value.is_tensor(), value.is_tensor_sequence(),
              value.element_type(), value.data_ptr() == x.ctypes.data, value.device_name())
        room = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "cpu", 0)
        print(room.shape(), room.data_type())
        session = ort.InferenceSession("add.onnx", providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        binding.bind_ortvalue_input("a", value)
        binding.bind_ortvalue_input("b", value)
        binding.bind_ortvalue_output("sum", room)
        session.run_with_iobinding(binding)
        first, copied = room.numpy(), binding.copy_outputs_to_cpu()[0]
        value.update_inplace(np.ones((2, 3), np.float32))
        session.run_with_iobinding(binding)
        print(first.tolist(), copied.tolist(), room.numpy().tolist(), value.numpy().tolist())
        outputs = session.run_with_ort_values(["sum"], {"a": value, "b": value})
        print(type(outputs[0]).__name__, outputs[0].numpy().tolist())
    """,
    "sizes that are open": """
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("batch", 2)
        session = ort.InferenceSession("net.onnx", options, providers=["CPUExecutionProvider"])
        print(session.get_inputs()[0].shape)
    """,
    "half precision": """
        session = ort.InferenceSession("half.onnx", providers=["CPUExecutionProvider"])
        y, d = session.run(None, {"x": np.array([1.5, -2], np.float16)})
        print(y, y.dtype, d, d.dtype, session.get_inputs()[0].type, session.get_outputs()[1].type)
    """,
    "weights of the caller's": """
        options = ort.SessionOptions()
        weights = ort.OrtValue.ortvalue_from_numpy(np.zeros((4, 2), np.float32))
        options.add_initializer("w", weights)
        session = ort.InferenceSession("net.onnx", options, providers=["CPUExecutionProvider"])
        print(session.run(["scores"], {"x": np.ones((1, 4), np.float32), "scale": np.ones((1, 1), np.float32)})[0].tolist())
    """,
    "a profile": """
        import json, os
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = "profile"
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession("net.onnx", options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": np.ones((1, 4), np.float32), "scale": np.ones((1, 1), np.float32)})
        path = session.end_profiling()
        events = json.load(open(path))
        print(path.startswith("profile"), "model_run" in [event["name"] for event in events],
              {"dur", "ts", "ph", "name", "args"} <= set(events[0]), session.get_profiling_start_time_ns() > 0)
    """,
    "mistakes": """
        session = ort.InferenceSession("add.onnx", providers=["CPUExecutionProvider"])
        a = np.ones((1, 3), np.float32)
        for names, feed in [(None, {"a": a}), (["nothing"], {"a": a, "b": a}), (None, {"a": a, "b": a.astype(np.float64)}),
                            (None, {"a": a, "b": np.ones((1, 4), np.float32)}), (None, {"a": a, "b": a, "c": a})]:
            try:
                session.run(names, feed)
                print("ran")
            except Exception as error:
                print("refused")
        for source in ("missing.onnx", b"not a model"):
            try:
                ort.InferenceSession(source, providers=["CPUExecutionProvider"])
            except Exception as error:
                print("refused")
        from {module}.capi.onnxruntime_pybind11_state import InvalidArgument
        try:
            session.run(None, {"a": a, "b": a.astype(np.float64)})
        except InvalidArgument as error:
            print("argument")
    """,
    "stopped before it begins": """
        session = ort.InferenceSession("add.onnx", providers=["CPUExecutionProvider"])
        options = ort.RunOptions()
        a = np.ones((1, 3), np.float32)
        options.terminate = True
        try:
            session.run(None, {"a": a, "b": a}, options)
        except Exception as error:
            print("stopped")
        options.terminate = False
        print(session.run(None, {"a": a, "b": a}, run_options=options))
    """,
    "other threads": """
        import threading
        session = ort.InferenceSession("add.onnx", providers=["CPUExecutionProvider"])
        done, results = threading.Event(), []
        def finished(outputs, data, error):
            results.append((outputs[0].tolist(), data, error))
            done.set()
        a = np.ones((1, 3), np.float32)
        session.run_async(None, {"a": a, "b": a}, finished, "mine")
        done.wait(10)
        print(results)
    """,
}


def run_script(module, text):
    """What the script prints."""
    out = io.StringIO()
    names = {"ort": importlib.import_module(module), "np": numpy}
    with contextlib.redirect_stdout(out):
        exec(textwrap.dedent(text.replace("{module}", module)), names)
    return out.getvalue()


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for name, text in MODELS.items():
            cameo.load(text).save(name)

    def test_ours(self):
        for name, text in SCRIPTS.items():
            with self.subTest(name):
                self.assertNotEqual(run_script("cameo", text), "")

    @unittest.skipUnless(HAS_ORT, "onnxruntime is not installed")
    def test_both_print_the_same(self):
        import onnxruntime
        onnxruntime.set_default_logger_severity(4)
        for name, text in SCRIPTS.items():
            with self.subTest(name):
                self.assertEqual(run_script("cameo", text), run_script("onnxruntime", text))


class OptionTest(unittest.TestCase):
    def setUp(self):
        self.model = cameo.load(MODELS["add.onnx"])

    def test_what_changes_results_is_told(self):
        options = cameo.SessionOptions()
        with self.assertWarnsRegex(UserWarning, "session.set_denormal_as_zero"):
            options.add_session_config_entry("session.set_denormal_as_zero", "1")
        with self.assertWarnsRegex(UserWarning, "CUDAExecutionProvider"):
            session = cameo.InferenceSession(self.model, providers=[("CUDAExecutionProvider", {"device_id": 0}),
                                                                    "CPUExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        with self.assertRaisesRegex(cameo.UnsupportedError, "cameo.operators"):
            options.register_custom_ops_library("ops.so")
        with self.assertRaises(AttributeError):
            options.intra_op_threads = 3
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            options.add_session_config_entry("session.disable_prepacking", "1")
            cameo.InferenceSession(self.model, options)

    def test_seed(self):
        model = cameo.load("""<ir_version: 8, opset_import: ["" : 17]>
            noise () => (float[4] y) { y = RandomNormal <shape = [4]> () }""")
        results = []
        for seed in (3, 3, 4):
            cameo.set_seed(seed)
            results.append(cameo.InferenceSession(model).run(None, {})[0].tolist())
        cameo.set_seed(0)
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0], results[2])

    def test_the_optimized_model_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            options = cameo.SessionOptions()
            options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
            cameo.InferenceSession(self.model, options)
            a = numpy.ones((1, 3), numpy.float32)
            self.assertEqual(cameo.load(options.optimized_model_filepath).run(a=a, b=a)["sum"].tolist(), [[2, 2, 2]])

    def test_terminate_from_another_thread(self):
        from test_session import LONG, LOOP
        session, options = cameo.InferenceSession(cameo.load(LOOP)), cameo.RunOptions()
        threading.Timer(0.1, lambda: setattr(options, "terminate", True)).start()
        with self.assertRaises(cameo.CancelledError):
            session.run(None, LONG, options)

    def test_bindings_that_make_no_sense(self):
        session = cameo.InferenceSession(self.model)
        binding = session.io_binding()
        a = numpy.ones((1, 3), numpy.float32)
        calls = [lambda: binding.bind_cpu_input("z", a), lambda: binding.bind_output("z"),
                 lambda: binding.bind_output("sum", "cuda"), lambda: binding.bind_input("a", "cuda", 0, numpy.float32, [1], 1),
                 lambda: binding.bind_input("a", "cpu", 0, numpy.float32, [1, 3], 0),
                 lambda: binding.bind_input("a", "cpu", 0, numpy.float32, [-1, 3], a.ctypes.data),
                 lambda: binding.bind_output("sum", "cpu", 0, None, None, a.ctypes.data),
                 lambda: session.run_with_iobinding(binding)]
        for call in calls:
            with self.assertRaises(cameo.Error):
                call()
        value = cameo.OrtValue.ortvalue_from_numpy(a)
        with self.assertRaises(cameo.Error):
            value.update_inplace(numpy.ones((2, 3), numpy.float32))

    def test_dlpack(self):
        a = numpy.ones((1, 3), numpy.float32)
        value = cameo.OrtValue.from_dlpack(a)
        self.assertEqual(value.data_ptr(), a.ctypes.data)
        self.assertTrue(numpy.shares_memory(numpy.from_dlpack(cameo.OrtValue.ortvalue_from_numpy(a)), a))

    def test_a_profile_of_every_step(self):
        with tempfile.TemporaryDirectory() as folder:
            options = cameo.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(folder, "profile")
            session = cameo.InferenceSession(self.model, options)
            a = numpy.ones((1, 3), numpy.float32)
            session.run(None, {"a": a, "b": a})
            with open(session.end_profiling(), encoding="utf-8") as file:
                events = json.load(file)
            self.assertEqual([event["args"]["op_name"] for event in events if event["cat"] == "Node"], ["Add"])
            self.assertEqual(session.end_profiling(), "")


if __name__ == "__main__":
    unittest.main()
