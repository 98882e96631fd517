# SPDX-License-Identifier: Apache-2.0
"""The training interface: Cameo in its own conformance suite, backends that are wrong, refusals."""

import contextlib
import doctest
import io
import json
import pathlib
import tempfile
import unittest

import numpy
import onnx
import onnx.parser

import cameo
import cameo.backend
from cameo.backend import _cases, scoreboard, training, training_tests
from cameo.backend.training_tests import TrainingBackendTest

globals().update(TrainingBackendTest(cameo.backend, __name__).test_cases)

LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }"""
MADE_UP = ["0.827698", "0.012759", "0.282886", "0.127497", "0.455219", "0.954470", "0.743330", "0.037122", "0.568785"]
CASES = [case for cases in _cases.all_cases().values() for case in cases]

NAMED = {case.name: case for case in CASES}


def line():
    return onnx.parser.parse_model(LINE)


def batch(x=1, target=0):
    return {"x": numpy.array([x], numpy.float32), "target": numpy.array([target], numpy.float32)}


class SuiteTest(unittest.TestCase):
    def test_what_there_is(self):
        groups = {file: len(cases) for file, cases in _cases.all_cases().items()}
        self.assertEqual(groups, {**dict.fromkeys(("linear", "mlp", "dropout", "conv", "lstm", "gru", "attention"), 49),
                                  "options": 42, "information": 16})
        self.assertEqual(len({case.name for case in CASES}), len(CASES))

    def test_each_optimizer_with_each_loss_on_each_network(self):
        names = {case.name for case in CASES}
        for network in ("linear", "mlp", "dropout", "conv", "lstm", "gru", "attention"):
            for loss in training.LOSSES:
                for optimizer in training.OPTIMIZERS:
                    self.assertIn(f"{network}_{loss.replace('-', '_')}_{optimizer}", names)

    def test_made_up_numbers(self):
        """The rule by which others make the same numbers, on an example that was worked out by hand with sha256sum."""
        self.assertEqual([f"{u:.6f}" for u in _cases.fractions("linear/x/0", 9)], MADE_UP)
        self.assertEqual(_cases.make("k", ["int64", [2, 3], 0, 3]).shape, (2, 3))
        self.assertEqual(_cases.make("k", ["float", [], [7], [8]], 3).tolist(), 8)

    def test_models_are_legal(self):
        for case in CASES:
            with self.subTest(case.name):
                onnx.checker.check_model(case.model())


class Wrong:
    """Backends with a mistake: each test of the suite must see it."""

    class Rep:
        def __init__(self, rep):
            self.rep = rep

        def __getattr__(self, name):
            return getattr(self.rep, name)

    @classmethod
    def backend(cls, rep=None, change=lambda options: options):
        class Backend(cameo.backend.Backend):
            @classmethod
            def prepare_training(cls, model, loss=None, optimizer=None, device="CPU", **options):
                made = super().prepare_training(model, loss, optimizer, device, **change(options) if loss else options)
                return rep(made) if rep else made
        return Backend


class MistakeTest(unittest.TestCase):
    """A suite that everything passes would be worth nothing."""

    def outcomes(self, backend, cases, run=training_tests.run_case):
        seen = {}
        for case in cases:
            try:
                run(case, backend, "CPU")
            except AssertionError as problem:
                seen[case.name] = str(problem)
        return seen

    def test_a_wrong_learning_rate_fails_everywhere(self):
        made = [case for case in CASES if case.optimizer]
        self.assertGreater(len(made), 350)
        wrong = Wrong.backend(change=lambda options: {**options, "lr": options.get("lr", 1e-2) * 1.01})
        seen = self.outcomes(wrong, made)
        self.assertEqual([case.name for case in made if case.name not in seen], [])
        self.assertRegex(seen["linear_mse_sgd"], r"the loss of step 1 is [0-9.]+, expected [0-9.]+ \(tolerance 1e-05\)")

    def test_the_loss_after_the_update(self):
        class After(Wrong.Rep):
            def step(self, inputs):
                self.rep.step(inputs)
                return self.rep.evaluate(inputs)
        seen = self.outcomes(Wrong.backend(After), [NAMED["mlp_mse_sgd"]])
        self.assertIn("the loss of step 0", seen["mlp_mse_sgd"])

    def test_an_evaluation_that_trains(self):
        class Trains(Wrong.Rep):
            def evaluate(self, inputs):
                return self.rep.step(inputs)
        seen = self.outcomes(Wrong.backend(Trains), [NAMED["linear_mse_sgd"]])
        self.assertIn("the loss of evaluate", seen["linear_mse_sgd"])

    def test_an_export_without_the_state(self):
        class Forgets(Wrong.Rep):
            def export(self):
                model = self.rep.export()
                for tensor in model.training_info[0].algorithm.initializer:
                    if tensor.name.endswith(("exp_avg", "exp_avg_sq")):
                        zeros = numpy.zeros_like(onnx.numpy_helper.to_array(tensor))
                        tensor.CopyFrom(onnx.numpy_helper.from_array(zeros, tensor.name))
                return model
        adam = [NAMED["mlp_mse_adam"]]
        self.assertEqual(self.outcomes(Wrong.backend(Forgets), adam), {})
        self.assertIn("mlp_mse_adam", self.outcomes(Wrong.backend(Forgets), adam, training_tests.run_resumed))

    def test_an_export_of_the_first_values(self):
        first = line()

        class First(Wrong.Rep):
            def export(self):
                return first
        seen = self.outcomes(Wrong.backend(First), [NAMED["linear_mse_sgd"]])
        self.assertIn("has no training info", seen["linear_mse_sgd"])


class RunnerTest(unittest.TestCase):
    def names(self, runner):
        return sorted(name for case in runner.test_cases.values() for name in vars(case) if name.startswith("test_"))

    def test_include_exclude_and_report(self):
        runner = TrainingBackendTest(cameo.backend).include("^test_linear_mse_sgd").exclude("resumed").enable_report()
        self.assertEqual(self.names(runner), ["test_linear_mse_sgd_cpu", "test_linear_mse_sgd_resumed_cpu"])
        result = unittest.TestResult()
        runner.test_suite.run(result)
        self.assertEqual((result.testsRun, len(result.skipped), result.wasSuccessful()), (2, 1, True))
        report = runner.report
        self.assertRegex(report.pop("date"), r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d$")
        group = "TrainingBackendLinearTest::"
        self.assertEqual(report, {"passed": [group + "test_linear_mse_sgd_cpu"], "failed": [],
                                  "skipped": [group + "test_linear_mse_sgd_resumed_cpu"]})

    def test_expected_failures(self):
        runner = TrainingBackendTest(cameo.backend).include("^test_linear_mse_sgd_cpu").xfail("sgd")
        result = unittest.TestResult()
        runner.test_suite.run(result)
        self.assertEqual(len(result.unexpectedSuccesses), 1)

    def test_devices(self):
        runner = TrainingBackendTest(cameo.backend, devices=("CPU:0", "CUDA")).include("^test_linear_mse_sgd_c")
        self.assertEqual(self.names(runner), ["test_linear_mse_sgd_cpu_0", "test_linear_mse_sgd_cuda"])
        result = unittest.TestResult()
        runner.test_suite.run(result)
        self.assertEqual([reason for _, reason in result.skipped], ["the backend does not support device CUDA"])

    def test_the_command(self):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
            path = pathlib.Path(folder, "report.json")
            status = training_tests.main(["cameo.backend", "--include", "linear_l1_sgd_cpu", "--report", str(path)])
            report = json.loads(path.read_text(encoding="utf-8"))
            listed = training_tests.main(["cameo.backend", "--include", "linear_l1_sgd_cpu", "--list"])
        self.assertEqual((status, listed), (0, 0))
        self.assertEqual(report["passed"], ["TrainingBackendLinearTest::test_linear_l1_sgd_cpu"])
        self.assertIn("1 passed, 0 failed, 0 skipped\nTrainingBackendLinearTest::test_linear_l1_sgd_cpu\n", said.getvalue())


    def test_wrong_arguments_of_the_commands(self):
        for main, first in ((training_tests.main, []), (scoreboard.main, ["unused", "--backend"])):
            for arguments, words in ((["no_such_module"], "module 'no_such_module' cannot be imported"),
                                     (["json"], "module 'json' is not a backend: it has no function 'prepare"),
                                     (["cameo.backend", "--include", "("], "'(' is not a regular expression")):
                said = io.StringIO()
                with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
                    main(first + arguments)
                self.assertEqual(ended.exception.code, 2)
                self.assertIn(words, said.getvalue())


class InterfaceTest(unittest.TestCase):
    def test_steps_evaluate_state_and_scalars(self):
        rep = cameo.backend.prepare_training(line(), "mse", "sgd", lr=0.1)
        self.assertIsInstance(rep, training.TrainingBackendRep)
        self.assertEqual(rep.scalars, {})
        self.assertEqual(rep.evaluate(batch()), 4)
        self.assertEqual(rep.step(batch()), 4)
        self.assertEqual(rep.scalars["loss"], 4)
        before = rep.state["w"]
        self.assertEqual(rep.step([numpy.ones(1, numpy.float32), [0.]]), numpy.float32(1.6) ** 2)
        self.assertAlmostEqual(float(before[0]), 1.6, 6, "an array of the state does not change with later steps")
        self.assertAlmostEqual(float(rep.state["w"][0]), 1.28, 6)

    def test_the_model_stays_as_it_is(self):
        for model in (line(), cameo.load(LINE)):
            first = model.SerializeToString() if hasattr(model, "SerializeToString") else model.to_bytes()
            rep = cameo.backend.prepare_training(model, "mse", "sgd", lr=0.1)
            rep.step(batch())
            now = model.SerializeToString() if hasattr(model, "SerializeToString") else model.to_bytes()
            self.assertEqual(now, first)

    def test_export_goes_on(self):
        rep = cameo.backend.prepare_training(line(), "mse", "adam", lr=0.1)
        rep.step(batch())
        model = rep.export()
        onnx.checker.check_model(model)
        self.assertAlmostEqual(float(cameo.backend.run_model(model, [batch()["x"]])[0][0]), 1.9, 6)
        other = cameo.backend.prepare_training(model)
        for _ in range(3):
            self.assertEqual(other.step(batch()), rep.step(batch()))

    def test_initialize(self):
        rep = cameo.backend.prepare_training(line(), "mse", "adam", lr=0.1)
        losses = [rep.step(batch()) for _ in range(3)]
        rep.initialize()
        self.assertEqual([rep.step(batch()) for _ in range(3)], losses)

    def test_options_of_the_trainer(self):
        rep = cameo.backend.prepare_training(line(), "mse", "sgd", threads=1, seed=3)
        self.assertEqual(rep.step(batch()), 4)

    def test_names_to_train_are_names(self):
        model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
            two (float[1] x) => (float[1] y) <float[1] w = {2}, float[1] ww = {3}> { a = Mul(x, w) y = Mul(a, ww) }""")
        for tensor, name in zip(model.graph.initializer, ("w.(1)", "w.(1)+")):
            tensor.name = name
        for node, name in zip(model.graph.node, ("w.(1)", "w.(1)+")):
            node.input[1] = name
        rep = cameo.backend.prepare_training(model, "mse", "sgd", train=["w.(1)"], lr=0.1)
        rep.step(batch())
        self.assertEqual(set(rep.state) & {"w.(1)", "w.(1)+"}, {"w.(1)"})

    def test_refusals(self):
        trainable = cameo.backend.prepare_training(line(), "mse", "sgd").export()
        prepare = cameo.backend.prepare_training
        for call, words in ((lambda: prepare(line()), "training info"),
                            (lambda: prepare(line(), "mse"), "one of them is missing"),
                            (lambda: prepare(line(), None, "sgd"), "one of them is missing"),
                            (lambda: prepare(line(), "msee", "sgd"), "msee"),
                            (lambda: prepare(line(), "mse", "sgdd"), "sgdd"),
                            (lambda: prepare(trainable, lr=0.1), "'lr'"),
                            (lambda: prepare(trainable, "mse", "sgd"), "training"),
                            (lambda: prepare(line(), "mse", "sgd", "CUDA"), "device 'CUDA' is not supported")):
            with self.assertRaisesRegex(cameo.Error, words):
                call()
        rep = prepare(line(), "mse", "sgd")
        for inputs, words in (({"x": batch()["x"]}, "target"), ([1., 2., 3.], "3 inputs are given, the model has 2"),
                              ({**batch(), "z": 1}, "'z'"), ({**batch(), "x": numpy.zeros((1, 2), numpy.float32)}, "'x'")):
            with self.assertRaisesRegex(cameo.Error, words):
                rep.step(inputs)
            with self.assertRaisesRegex(cameo.Error, words):
                rep.evaluate(inputs)
        self.assertEqual(rep.step(batch()), 4, "after refusals all is as before")


class PageTest(unittest.TestCase):
    def test_examples_of_the_page(self):
        page = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "backend.md"
        result = doctest.testfile(str(page), module_relative=False)
        self.assertEqual(result.failed, 0)
        self.assertGreater(result.attempted, 10)


class BaseTest(unittest.TestCase):
    """The base classes promise nothing by themselves."""

    def test_they_are_abstract(self):
        rep = training.TrainingBackendRep()
        for call in (rep.initialize, rep.export, lambda: rep.step({}), lambda: rep.evaluate({}), lambda: rep.state,
                     lambda: rep.scalars, lambda: training.TrainingBackend.prepare_training(line()),
                     lambda: training.TrainingBackend.supports_device("CPU")):
            self.assertRaises(NotImplementedError, call)


if __name__ == "__main__":
    unittest.main()
