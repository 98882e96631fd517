# SPDX-License-Identifier: Apache-2.0
"""Many threads at once: sessions, models, views and values are shared, and results stay right."""

import sys
import threading
import unittest

import numpy

import cameo

NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N,16] x) => (float[N,4] y) <float[16,4] w, float[4] b> { a = MatMul(x, w)
    c = Add(a, b)
    y = Relu(c) }"""
THREADS = 8
ROUNDS = 25


def make_model():
    generator = numpy.random.default_rng(3)
    w = generator.random((16, 4), numpy.float32)
    b = generator.random(4, numpy.float32)
    text = NET.replace("float[16,4] w", "float[16,4] w = {" + ", ".join(map(repr, w.reshape(-1).tolist())) + "}")
    return cameo.load(text.replace("float[4] b", "float[4] b = {" + ", ".join(map(repr, b.tolist())) + "}"))


class ThreadTest(unittest.TestCase):
    def setUp(self):
        self.model = make_model()
        self.x = numpy.random.default_rng(4).random((10, 16), numpy.float32)
        self.want = self.model.run(x=self.x)["y"].tolist()
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-5)

    def together(self, *works):
        """Runs each of the works ROUNDS times in several threads that start at once."""
        failures = []
        gate = threading.Barrier(THREADS)

        def run(number):
            work = works[number % len(works)]
            gate.wait()
            try:
                for _ in range(ROUNDS):
                    work()
            except BaseException as error:
                failures.append(error)
        threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertFalse(any(thread.is_alive() for thread in threads), "threads wait for each other")
        if failures:
            raise failures[0]

    def check_run(self, run):
        self.assertEqual(run()["y"].tolist(), self.want)

    def test_one_session(self):
        session = cameo.Session(self.model, threads=2)
        self.together(lambda: self.assertEqual(session.run(["y"], {"x": self.x})[0].tolist(), self.want),
                      lambda: self.assertEqual(session.run(None, {"x": self.x})[0].tolist(), self.want))

    def test_one_dict_of_inputs_that_changes(self):
        session = cameo.Session(self.model)
        feeds = {"x": self.x}

        def change():
            for number in range(40):
                feeds[f"other{number}"] = self.x
            for number in range(40):
                feeds.pop(f"other{number}", None)

        def run():
            try:
                session.run(["y"], feeds)
            except (cameo.Error, RuntimeError):
                pass  # an input that the model does not have
        self.together(run, change)

    def test_a_models_first_run(self):
        for _ in range(5):
            model = make_model()
            self.together(lambda model=model: self.check_run(lambda: model.run(x=self.x)))

    def test_models_loaded_checked_and_written(self):
        data = self.model.to_bytes()

        def work():
            model = cameo.load(data)
            self.assertEqual(model.check(), [])
            self.assertEqual(len(model.inputs), 1)
            self.assertEqual(model.to_bytes(), data)
            self.check_run(lambda: model.run(x=self.x))
        self.together(work)

    def test_a_model_is_changed_while_others_use_it(self):
        session = cameo.Session(self.model)
        data = self.model.to_bytes()
        models = [cameo.load(data) for _ in range(2)]

        one = threading.Lock()  # a model is changed by one thread at a time

        def change():
            for model in models:
                with one:
                    model.prepare(loss="mse", optimizer="sgd", lr=0.1)
                    model._become(cameo.load(data)._inside)
        self.together(change, lambda: self.assertEqual(session.run(None, {"x": self.x})[0].tolist(), self.want),
                      lambda: [len(model.outputs) for model in models],
                      lambda: [self.check_run(lambda model=model: model.run(("y",), x=self.x)) for model in models])

    def test_values_and_their_memory(self):
        value = cameo._cameo.value(1, (2, 3), numpy.arange(6, dtype=numpy.float32).tobytes())

        def work():
            self.assertEqual(memoryview(value).tolist(), [[0, 1, 2], [3, 4, 5]])
            self.assertEqual(numpy.asarray(value).sum(), 15)
            self.assertEqual(numpy.from_dlpack(numpy.asarray(value)).shape, (2, 3))
            self.assertEqual(value.shape, (2, 3))
        self.together(work)

    def test_gradients_and_trainers(self):
        prepared = make_model().prepare(loss="mse", optimizer="sgd", lr=0.01)
        target = numpy.zeros((10, 4), numpy.float32)
        losses = set()

        def work():
            trainer = cameo.Trainer(prepared)
            losses.add((float(trainer.step(x=self.x, target=target)), float(trainer.step(x=self.x, target=target))))
            self.model.grad("y", ["x"]).run(x=self.x)
        self.together(work)
        self.assertEqual(len(losses), 1)

    def test_one_trainer_refuses_a_second_thread_or_works(self):
        trainer = cameo.Trainer(make_model().prepare(loss="mse", optimizer="sgd", lr=0.01))
        target = numpy.zeros((10, 4), numpy.float32)
        done = []

        def step():
            try:
                trainer.step(x=self.x, target=target)
                done.append(1)
            except RuntimeError as error:
                self.assertIn("thread", str(error))
        self.together(step)
        self.assertEqual(trainer.steps, len(done))


if __name__ == "__main__":
    unittest.main()
