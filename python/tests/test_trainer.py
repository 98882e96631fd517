# SPDX-License-Identifier: Apache-2.0
"""Trainers: steps, halves of steps, variables, what they save; threads."""

import os
import tempfile
import threading
import unittest

import numpy

import cameo

MLP = """<ir_version: 8, opset_import: ["" : 17]>
mlp (float[N,4] x) => (float[N,3] y) <float[4,8] w1, float[8] b1, float[8,3] w2>
{ h = MatMul(x, w1) a = Add(h, b1) r = Relu(a) y = MatMul(r, w2) }"""


def mlp(optimizer="sgd", lr=0.1, **options):
    random = numpy.random.default_rng(1)
    text = MLP
    for name, shape in (("w1", (4, 8)), ("b1", (8,)), ("w2", (8, 3))):
        values = ", ".join(f"{value:.6f}" for value in random.normal(size=shape).reshape(-1) * 0.5)
        dims = ",".join(map(str, shape))
        text = text.replace(f"float[{dims}] {name}", f"float[{dims}] {name} = {{{values}}}")
    return cameo.load(text).prepare(loss="cross-entropy", optimizer=optimizer, lr=lr, **options)


def samples(count=32):
    random = numpy.random.default_rng(2)
    x = random.normal(size=(count, 4)).astype(numpy.float32)
    return x, (x[:, 0] > 0).astype(numpy.int64) + (x[:, 1] > 0)


class StepTest(unittest.TestCase):
    def setUp(self):
        self.model = mlp()
        self.trainer = cameo.Trainer(self.model, threads=1)
        self.x, self.y = samples()

    def test_forms_of_a_batch(self):
        class Batch:
            x, target = self.x, self.y
        losses = [cameo.Trainer(self.model, threads=1).step(batch) for batch in
                  ({"x": self.x, "target": self.y}, (self.x, self.y), [self.x, self.y], Batch())]
        self.assertEqual(len(set(losses)), 1)
        self.assertEqual(self.trainer.step(x=self.x, target=self.y), losses[0])
        self.assertEqual(self.trainer.scalars["loss"], losses[0])
        self.assertEqual(self.trainer.steps, 1)

    def test_class_weights(self):
        def loss(weights, rows=slice(None)):
            return cameo.Trainer(mlp(class_weights=weights), threads=1).step(x=self.x[rows], target=self.y[rows])
        self.assertAlmostEqual(loss(numpy.array([0, 2, 0], numpy.float32)), loss(None, self.y == 1), 6)
        for weights, reason in (([1, 2], "2 class weights, the prediction has 3 classes"), ([0, 0, 0], "all class weights are 0"),
                                ([1, -1, 1], "class_weights is -1, expected a number")):
            with self.subTest(reason), self.assertRaisesRegex(cameo.Error, reason):
                mlp(class_weights=weights)

    def test_mistakes_are_told_and_change_nothing(self):
        before = self.trainer.parameters
        wrong = [((self.x,), "a batch has 1 arrays, but there are 2 inputs: x, target"),
                 ({"x": self.x}, "inputs are missing: 'target'"),
                 ({"x": self.x, "target": self.y, "z": self.y}, "'z'"),
                 ({"x": self.x.astype(numpy.float64), "target": self.y}, "double"),
                 ({"x": self.x[:, :3], "target": self.y}, "4"),
                 ({"x": self.x, "target": self.y + 7}, "7|8|9"),
                 (5, "expected a dict")]
        for batch, reason in wrong:
            with self.subTest(reason), self.assertRaisesRegex(cameo.Error, reason):
                self.trainer.step(batch)
        for name, value in self.trainer.parameters.items():
            numpy.testing.assert_array_equal(value, before[name])
        self.assertEqual(self.trainer.steps, 0)
        self.trainer.step((self.x, self.y))

    def test_layouts_of_arrays(self):
        expected = cameo.Trainer(self.model, threads=1).step((self.x, self.y))
        read_only = self.x.copy()
        read_only.flags.writeable = False
        wide = numpy.zeros((32, 9), numpy.float32)
        wide[:, ::2][:, :4] = self.x
        for x in (numpy.asfortranarray(self.x), read_only, wide[:, ::2][:, :4], self.x[::-1].copy()[::-1],
                  self.x.astype(">f4"), memoryview(self.x)):
            self.assertEqual(cameo.Trainer(self.model, threads=1).step((x, self.y)), expected)

    def test_divergence_leaves_things_as_they_were(self):
        bad = self.x.copy()
        bad[0, 0] = numpy.nan
        before = self.trainer.parameters
        with self.assertRaises(cameo.DivergedError):
            self.trainer.step((bad, self.y))
        for name, value in self.trainer.parameters.items():
            numpy.testing.assert_array_equal(value, before[name])

    def test_evaluate_and_predict(self):
        measure = self.trainer.evaluate((self.x, self.y))
        scores = self.trainer.predict(self.x)["y"]
        self.assertEqual(measure["samples"], 32)
        self.assertAlmostEqual(measure["accuracy"], float((scores.argmax(1) == self.y).mean()))
        shifted = scores - scores.max(1, keepdims=True)
        log_sum = numpy.log(numpy.exp(shifted).sum(1))
        self.assertAlmostEqual(measure["loss"], float((log_sum - shifted[numpy.arange(32), self.y]).mean()), places=5)
        self.assertEqual(self.trainer.steps, 0)
        numpy.testing.assert_array_equal(self.trainer.predict(x=self.x, outputs=["y"])["y"], scores)
        with self.assertRaises(cameo.Error):
            self.trainer.predict(self.x, outputs=["nothing"])

    def test_memory(self):
        memory = self.trainer.memory((self.x, self.y))
        self.assertEqual(memory["batch"], self.x.nbytes + self.y.nbytes)
        self.assertEqual(memory["weights"], (32 + 8 + 24) * 4)
        self.assertEqual(self.trainer.steps, 0)

    def test_initialize(self):
        before = self.trainer.parameters
        self.trainer.step((self.x, self.y))
        self.trainer.initialize()
        self.assertEqual(self.trainer.steps, 0)
        for name, value in self.trainer.parameters.items():
            numpy.testing.assert_array_equal(value, before[name])


class GradientTest(unittest.TestCase):
    def setUp(self):
        self.model = mlp()
        self.x, self.y = samples()

    def test_halves_are_a_step(self):
        whole, halves = (cameo.Trainer(self.model, threads=1, gradients=given) for given in (False, True))
        for _ in range(3):
            loss = whole.step((self.x, self.y))
            self.assertEqual(halves.compute((self.x, self.y)), loss)
            halves.apply()
        for name, value in whole.parameters.items():
            numpy.testing.assert_array_equal(value, halves.parameters[name])

    def test_gradients_are_used_as_they_were_set(self):
        trainer = cameo.Trainer(self.model, threads=1, gradients=True)
        before = trainer.parameters
        trainer.compute((self.x, self.y))
        gradients = trainer.gradients
        self.assertEqual({name: value.shape for name, value in gradients.items()},
                         {"w1": (4, 8), "b1": (8,), "w2": (8, 3)})
        trainer.gradients = {"w1": 2 * gradients["w1"], "b1": numpy.zeros(8)}
        trainer.apply()
        after = trainer.parameters
        numpy.testing.assert_allclose(after["w1"], before["w1"] - 0.2 * gradients["w1"], rtol=1e-5, atol=1e-7)
        numpy.testing.assert_array_equal(after["b1"], before["b1"])
        numpy.testing.assert_allclose(after["w2"], before["w2"] - 0.1 * gradients["w2"], rtol=1e-5, atol=1e-7)

    def test_gradients_agree_with_differences(self):
        trainer = cameo.Trainer(self.model, threads=1, gradients=True)
        trainer.compute((self.x, self.y))
        gradient = trainer.gradients["w2"][1, 2]
        values = trainer.parameters["w2"]
        losses = []
        for shift in (0.01, -0.01):
            changed = values.copy()
            changed[1, 2] += shift
            trainer.parameters = {"w2": changed}
            losses.append(trainer.evaluate((self.x, self.y))["loss"])
        self.assertAlmostEqual((losses[0] - losses[1]) / 0.02, gradient, places=3)

    def test_mistakes(self):
        plain = cameo.Trainer(self.model)
        with self.assertRaises(cameo.Error):
            plain.compute((self.x, self.y))
        with self.assertRaises(cameo.Error):
            plain.gradients
        trainer = cameo.Trainer(self.model, gradients=True)
        with self.assertRaises(cameo.Error):
            trainer.apply()
        trainer.compute((self.x, self.y))
        with self.assertRaisesRegex(cameo.NotFoundError, "no parameter 'w9'"):
            trainer.gradients = {"w9": 1}
        with self.assertRaisesRegex(cameo.ArgumentError, r"parameter 'w1' has shape \(4, 8\), not \(2,\)"):
            trainer.gradients = {"w1": numpy.zeros(2)}


class VariablesTest(unittest.TestCase):
    def test_reading_and_assigning(self):
        trainer = cameo.Trainer(mlp("adam"), threads=1)
        variables = trainer.variables
        self.assertIn("w1", variables)
        self.assertIn("w1.exp_avg", variables)
        self.assertNotIn("w1.exp_avg", trainer.parameters)
        variables["w1"] = numpy.arange(32).reshape(4, 8)
        numpy.testing.assert_array_equal(trainer.variables["w1"], numpy.arange(32, dtype=numpy.float32).reshape(4, 8))
        variables["w1"] = variables["w1"][::-1]
        self.assertEqual(variables["w1"][0, 0], 24)
        with self.assertRaisesRegex(cameo.ArgumentError, r"variable 'w1' has shape \(4, 8\), not \(2, 2\)"):
            variables["w1"] = numpy.zeros((2, 2))
        with self.assertRaisesRegex(cameo.NotFoundError, "no variable 'nothing'"):
            variables["nothing"]
        with self.assertRaises(TypeError):
            del variables["w1"]
        self.assertEqual(len(variables), len(list(variables)))

    def test_state_moves_between_trainers(self):
        model, batch = mlp("adam"), samples()
        first, second = cameo.Trainer(model, threads=1), cameo.Trainer(model, threads=1)
        for _ in range(3):
            first.step(batch)
        for name, value in first.variables.items():
            second.variables[name] = value
        self.assertEqual(first.step(batch), second.step(batch))


class SavingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = mlp("adam")
        self.trainer = cameo.Trainer(self.model, threads=1)
        self.batch = samples()
        for _ in range(2):
            self.trainer.step(self.batch)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_saved_and_to_model_are_the_same(self):
        self.trainer.save(self.path("trained.onnx"))
        made = self.trainer.to_model()
        with open(self.path("trained.onnx"), "rb") as file:
            self.assertEqual(file.read(), made.to_bytes())
        expected = self.trainer.predict(self.batch[0])["y"]
        numpy.testing.assert_array_equal(made.run(x=self.batch[0])["y"], expected)
        loss = self.trainer.step(self.batch)
        del self.trainer
        again = cameo.Trainer(made, threads=1)  # the moments came along
        self.assertEqual(again.step(self.batch), loss)
        self.assertNotEqual(self.model.run(x=self.batch[0])["y"].tolist(), expected.tolist())

    def test_external_data(self):
        self.trainer.save(self.path("outside.onnx"), external="weights.bin")
        other = cameo.load(self.path("outside.onnx"))
        numpy.testing.assert_array_equal(other.run(x=self.batch[0])["y"], self.trainer.predict(self.batch[0])["y"])
        trainer = cameo.Trainer(other, threads=1)
        trainer.step(self.batch)
        made = trainer.to_model()
        made.save(self.path("again.onnx"), inline=True)
        numpy.testing.assert_array_equal(cameo.load(self.path("again.onnx")).run(x=self.batch[0])["y"],
                                         trainer.predict(self.batch[0])["y"])

    def test_a_failed_save_leaves_nothing(self):
        with self.assertRaisesRegex(cameo.Error, "its folder does not exist"):
            self.trainer.save(self.path("no/such/folder/x.onnx"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_checkpoints(self):
        self.trainer.save_checkpoint(self.path("c.safetensors"), {"epoch": 3, "who": "Zoë"})
        self.assertEqual(cameo.checkpoint_notes(self.path("c.safetensors")), {"epoch": "3", "who": "Zoë"})
        with self.assertRaisesRegex(cameo.ArgumentError, "NUL"):
            self.trainer.save_checkpoint(self.path("c.safetensors"), {"a\0b": 1})
        expected = [self.trainer.step(self.batch) for _ in range(2)]
        other = cameo.Trainer(self.model, threads=1)
        self.assertEqual(other.load_checkpoint(self.path("c.safetensors")), [])
        self.assertEqual(other.steps, 2)
        self.assertEqual([other.step(self.batch) for _ in range(2)], expected)
        more = cameo.Trainer(self.model, threads=2)
        with self.assertRaisesRegex(cameo.Error, "threads"):
            more.load_checkpoint(self.path("c.safetensors"))
        self.assertIn("threads: 1, now 2", more.load_checkpoint(self.path("c.safetensors"), anyway=True))
        with self.assertRaises(cameo.Error):
            cameo.Trainer(mlp("sgd")).load_checkpoint(self.path("c.safetensors"))

    def test_a_changed_model_leaves_the_trainer_alone(self):
        loss = cameo.Trainer(self.model, threads=1).step(self.batch)
        trainer = cameo.Trainer(self.model, threads=1)
        self.model._become(mlp(lr=5.0)._inside)
        self.assertEqual(trainer.step(self.batch), loss)


class ThreadTest(unittest.TestCase):
    def test_two_trainers_at_once(self):
        model, batch = mlp("adam"), samples(64)
        expected = cameo.Trainer(model, threads=1)
        for _ in range(40):
            expected.step(batch)
        results, failures = [], []

        def work():
            try:
                trainer = cameo.Trainer(model, threads=1)
                for _ in range(40):
                    trainer.step(batch)
                results.append(trainer.parameters)
            except Exception as error:  # told by the test
                failures.append(error)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        for parameters in results:
            for name, value in expected.parameters.items():
                numpy.testing.assert_array_equal(parameters[name], value)

    def test_two_runs_at_once(self):
        model, (x, y) = mlp("adam"), samples(64)
        results = []

        def batches(epoch):
            for i in range(0, 64, 8):
                yield x[i:i + 8], y[i:i + 8]

        def work(data):
            trainer = cameo.Trainer(model, threads=1)
            trainer.fit(data, epochs=10, validate=data, batch_size=8, shuffle=False, progress=False,
                        callbacks=[cameo.callbacks.LambdaCallback(on_step=lambda state: state.trainer.parameters and None)])
            results.append(trainer.parameters)
        threads = [threading.Thread(target=work, args=(data,)) for data in (batches, (x, y), batches, (x, y))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 4)
        for parameters in results:
            for name, value in results[0].items():
                numpy.testing.assert_array_equal(parameters[name], value)

    def test_one_trainer_in_two_threads_is_refused(self):
        trainer = cameo.Trainer(mlp(), threads=1)
        x, y = samples()
        refused, inside, go_on = [], threading.Event(), threading.Event()

        def wait(_):
            inside.set()
            go_on.wait(20)
        run = threading.Thread(target=lambda: trainer.fit(
            (x, y), callbacks=[cameo.callbacks.LambdaCallback(on_step=wait)], progress=False))
        run.start()
        self.assertTrue(inside.wait(20))
        for use in (lambda: trainer.step((x, y)), lambda: trainer.parameters, lambda: trainer.fit((x, y)),
                    lambda: trainer.save("never.onnx"), lambda: trainer.to_model()):
            try:
                use()
            except RuntimeError as error:
                refused.append(str(error))
        go_on.set()
        run.join()
        self.assertEqual(refused, ["another thread is using this trainer"] * 5)
        trainer.step((x, y))


if __name__ == "__main__":
    unittest.main()
