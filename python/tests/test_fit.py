# SPDX-License-Identifier: Apache-2.0
"""Whole runs: how long, callbacks, checkpoints, Ctrl-C."""

import csv
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy

import cameo
from cameo.callbacks import (Callback, Checkpoint, CSVLogger, EarlyStopping, LambdaCallback, ProgressBar)
from test_trainer import mlp, samples


def same(test, first, second):
    test.assertEqual(set(first), set(second))
    for name, value in first.items():
        numpy.testing.assert_array_equal(value, second[name], err_msg=name)


class FitCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.data = samples(40)
        self.model = mlp("adam", lr=0.01)

    def path(self, name):
        return os.path.join(self.folder, name)

    def trainer(self):
        return cameo.Trainer(self.model, threads=1)


class LengthTest(FitCase):
    def test_epochs_steps_and_further_runs(self):
        trainer = self.trainer()
        history = trainer.fit(self.data, epochs=2, batch_size=16)
        self.assertEqual((trainer.steps, history.epochs, len(history.steps["loss"])), (6, [1, 2], 6))
        self.assertEqual(history.first_step, 1)
        history = trainer.fit(self.data, epochs=1, batch_size=16)
        self.assertEqual((trainer.steps, len(history["loss"]), history.first_step), (9, 1, 7))
        trainer.fit(self.data, steps=5)
        self.assertEqual(trainer.steps, 14)
        self.assertEqual(trainer.fit(self.data, epochs=0), {})
        self.assertEqual(trainer.steps, 14)

    def test_all_that_is_wrong_is_a_list_of_findings(self):
        trainer = self.trainer()
        with self.assertRaises(cameo.ArgumentError) as caught:
            trainer.fit(self.data, epochs=1, steps=2, patience=3, resume=True)
        self.assertEqual([row.rule for row in caught.exception.findings], ["train"] * 3)
        self.assertIn("resume needs a folder for checkpoints (checkpoint)", caught.exception.problems)

    def test_wrong_arguments(self):
        trainer = self.trainer()
        for options in ({"epochs": -1}, {"epochs": 2**70}, {"epochs": 1.5}, {"steps": 0}, {"batch_size": 0}, {"last": "none"}, {"patience": 0},
                        {"patience": 2}, {"best": "x.onnx"}, {"checkpoint_every": 3}, {"resume": True},
                        {"checkpoint": self.folder, "keep": 0}):
            with self.subTest(options), self.assertRaises(cameo.ArgumentError):
                trainer.fit(self.data, **options)
        with self.assertRaises(TypeError):
            trainer.fit(self.data, callbacks=[print])
        self.assertEqual(trainer.steps, 0)

    def test_last_batch(self):
        for last, steps in (("short", 3), ("drop", 2), ("wrap", 3)):
            trainer = self.trainer()
            trainer.fit(self.data, batch_size=16, last=last)
            self.assertEqual(trainer.steps, steps)

    def test_a_fixed_batch(self):
        model = cameo.load("""<ir_version: 8, opset_import: ["" : 17]>
            line (float[16,4] x) => (float[16,1] y) <float[4,1] w = {0, 0, 0, 0}> { y = MatMul(x, w) }""")
        model.prepare(loss="mse", optimizer="sgd", lr=0.1)
        x = self.data[0]
        trainer = cameo.Trainer(model)
        trainer.fit((x, x[:, :1]), validate=(x, x[:, :1]))
        self.assertEqual(trainer.steps, 2)
        with self.assertRaisesRegex(cameo.ArgumentError, "batches of 16 rows"):
            trainer.fit((x, x[:, :1]), batch_size=8)

    def test_history_is_what_happened(self):
        trainer, losses = self.trainer(), []
        history = trainer.fit(self.data, epochs=3, batch_size=20, validate=self.data,
                              callbacks=[LambdaCallback(on_step=lambda state: losses.append(state.loss))])
        self.assertEqual(history.steps["loss"], losses)
        for i in range(3):
            self.assertAlmostEqual(history["loss"][i], sum(losses[2 * i:2 * i + 2]) / 2, places=6)
        measure = trainer.evaluate(self.data)
        self.assertAlmostEqual(history["val_loss"][-1], measure["loss"], places=6)
        self.assertEqual(history["val_accuracy"][-1], measure["accuracy"])
        self.assertEqual(history.best_validation_loss, min(history["val_loss"]))
        self.assertIs(trainer.history, history)

    def test_train_in_one_call(self):
        plain = cameo.load(mlp().to_bytes())
        trained, history = cameo.train(plain, self.data, epochs=2)
        self.assertEqual(len(history["loss"]), 2)
        self.assertEqual(len(trained.run(x=self.data[0])["y"]), 40)

    def test_a_schedule_ends_with_the_run(self):
        plain = cameo.load(mlp().to_bytes())
        given = cameo.train(plain, self.data, epochs=2, batch_size=16, prepare={"schedule": "linear", "schedule_steps": 6})
        for data in (self.data, [self.data] * 3):  # three batches an epoch
            trained = cameo.train(plain, data, epochs=2, batch_size=16, prepare={"schedule": "linear"})
            self.assertEqual(trained[1].steps["lr"], given[1].steps["lr"])

    def test_a_limit_of_what_the_machine_has_left(self):
        trainer = cameo.Trainer(self.model, threads=1, memory_limit="free")
        trainer.fit(self.data)
        with self.assertRaisesRegex(cameo.ArgumentError, "memory_limit is 'much'"):
            cameo.Trainer(self.model, memory_limit="much")


class CallbackTest(FitCase):
    def test_order_and_stopping(self):
        seen = []

        class Recorder(Callback):
            def on_start(self, state):
                seen.append("start")

            def on_step(self, state):
                seen.append(state.step)
                return state.step < 3

            def on_epoch(self, state):
                seen.append(f"epoch {state.epoch}")

            def on_checkpoint(self, state):
                seen.append(os.path.basename(state.checkpoint))

            def on_end(self, state):
                seen.append("end")
        trainer = self.trainer()
        history = trainer.fit(self.data, epochs=5, batch_size=20, checkpoint=self.path("c"), callbacks=[Recorder()])
        self.assertEqual(seen[:-2], ["start", 1, 2, "epoch 1", 3])
        self.assertEqual(seen[-1], "end")
        self.assertTrue(history.stopped)
        self.assertEqual(trainer.steps, 3)

    def test_an_exception_reaches_the_caller_and_leaves_the_trainer_usable(self):
        for moment in ("on_start", "on_step", "on_epoch", "on_checkpoint", "on_end"):
            def fail(state):
                raise ZeroDivisionError(moment)
            trainer, ended = self.trainer(), []
            with self.subTest(moment), self.assertRaisesRegex(ZeroDivisionError, moment):
                trainer.fit(self.data, checkpoint=self.path(moment), batch_size=20, callbacks=[
                    LambdaCallback(**{moment: fail}), LambdaCallback(on_end=lambda state: ended.append(1))])
            self.assertEqual(ended, [1])
            trainer.step(self.data)
            self.assertEqual(trainer.fit(self.data, batch_size=20).epochs, [1])

    def test_the_trainer_may_be_looked_at_but_not_trained(self):
        told = []

        def look(state):
            trainer = state.trainer
            told.append((trainer.evaluate(self.data)["loss"], trainer.parameters["w1"].sum(),
                         trainer.predict(self.data[0])["y"].shape, trainer.to_model().to_bytes()[:1]))
            trainer.save(self.path("epoch.onnx"))
            trainer.save_checkpoint(self.path("epoch.safetensors"))
            with self.assertRaisesRegex(RuntimeError, "in a run"):
                trainer.step(self.data)
            with self.assertRaisesRegex(RuntimeError, "in a run"):
                trainer.fit(self.data)
        trainer, plain = self.trainer(), self.trainer()
        trainer.fit(self.data, epochs=2, batch_size=20, validate=self.data, callbacks=[LambdaCallback(on_epoch=look)])
        plain.fit(self.data, epochs=2, batch_size=20)
        self.assertEqual(len(told), 2)
        same(self, trainer.parameters, plain.parameters)

    def test_a_callback_may_assign(self):
        def halve(state):
            state.trainer.variables["b1"] = numpy.zeros(8)
        trainer = self.trainer()
        trainer.fit(self.data, batch_size=40, callbacks=[LambdaCallback(on_epoch=halve)])
        self.assertEqual(trainer.variables["b1"].tolist(), [0] * 8)

    def test_early_stopping(self):
        trainer = self.trainer()
        history = trainer.fit(self.data, epochs=50, validate=self.data,
                              callbacks=[EarlyStopping("val_loss", patience=2, min_delta=10)])
        self.assertEqual(len(history.epochs), 3)
        history = self.trainer().fit(self.data, epochs=9, validate=self.data,
                                     callbacks=[EarlyStopping("val_accuracy", patience=1, min_delta=2)])
        self.assertEqual(len(history.epochs), 2)
        with self.assertRaisesRegex(cameo.ArgumentError, "no 'val_f1' to monitor"):
            self.trainer().fit(self.data, callbacks=[EarlyStopping("val_f1")])
        with self.assertRaises(ValueError):
            EarlyStopping(mode="best")

    def test_patience_and_best_of_the_library(self):
        trainer = cameo.Trainer(mlp("sgd", lr=5.0), threads=1)
        try:
            history = trainer.fit(self.data, epochs=60, validate=self.data, patience=2, best=self.path("best.onnx"))
            self.assertTrue(history.stopped_early)
        except cameo.DivergedError:
            history = trainer.history
        best = cameo.load(self.path("best.onnx"))
        self.assertAlmostEqual(best.evaluate(self.data, metrics="loss")["loss"], min(history["val_loss"]), places=4)

    def test_checkpoint_callback_saves_models(self):
        trainer = self.trainer()
        trainer.fit(self.data, epochs=2, validate=self.data, callbacks=[
            Checkpoint(self.path("e{epoch}.onnx")), Checkpoint(self.path("best.onnx"), monitor="val_loss")])
        self.assertEqual(sorted(os.listdir(self.folder)), ["best.onnx", "e1.onnx", "e2.onnx"])
        numpy.testing.assert_array_equal(cameo.load(self.path("e2.onnx")).run(x=self.data[0])["y"],
                                         trainer.predict(self.data[0])["y"])

    def test_csv(self):
        trainer = self.trainer()
        history = trainer.fit(self.data, epochs=2, validate=self.data, callbacks=[CSVLogger(self.path("log.csv"))])
        trainer.fit(self.data, validate=self.data, callbacks=[CSVLogger(self.path("log.csv"), append=True)])
        with open(self.path("log.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["epoch"] for row in rows], ["1", "2", "1"])
        self.assertEqual([float(row["val_loss"]) for row in rows[:2]], history["val_loss"])

    def test_progress_bar(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True
        terminal, pipe, always = Terminal(), io.StringIO(), io.StringIO()
        self.trainer().fit(self.data, epochs=2, progress=False, callbacks=[
            ProgressBar(file=terminal, interval=0), ProgressBar(file=pipe), ProgressBar(file=always, always=True)])
        self.assertIn("2/4  epoch 1  loss", terminal.getvalue())
        self.assertEqual(pipe.getvalue(), "")
        self.assertEqual(len(always.getvalue().splitlines()), 2)
        self.assertTrue(always.getvalue().startswith("epoch 1  loss "))


class ResumeTest(FitCase):
    def options(self, name):
        return {"epochs": 4, "batch_size": 7, "validate": self.data, "checkpoint": self.path(name)}

    def test_every_place_of_stopping_ends_in_the_same_bits(self):
        whole = self.trainer()
        history = whole.fit(self.data, **self.options("whole"))
        for stop in (1, 5, 6, 7, 12, 17, 23):
            name = f"stopped{stop}"
            trainer = self.trainer()
            trainer.fit(self.data, **self.options(name), callbacks=[
                LambdaCallback(on_step=lambda state: state.step < stop)])
            self.assertEqual(trainer.steps, stop)
            other = self.trainer()
            rest = other.fit(self.data, **self.options(name), resume=True)
            same(self, whole.variables, other.variables)
            self.assertEqual(rest["val_loss"], history["val_loss"][-len(rest["val_loss"]):])
            self.assertEqual(rest["loss"], history["loss"][-len(rest["loss"]):])

    def test_batches_of_an_iterable_resume_too(self):
        def batches(epoch):
            order = numpy.random.default_rng(epoch).permutation(40)
            for i in range(0, 40, 7):
                yield {"x": self.data[0][order[i:i + 7]], "target": self.data[1][order[i:i + 7]]}
        whole = self.trainer()
        whole.fit(batches, epochs=3, validate=batches)
        for stop in (1, 6, 8):
            options = {"epochs": 3, "validate": batches, "checkpoint": self.path(f"c{stop}")}
            self.trainer().fit(batches, **options, callbacks=[LambdaCallback(on_step=lambda state: state.step < stop)])
            other = self.trainer()
            other.fit(batches, **options, resume=True)
            same(self, whole.variables, other.variables)

    def test_files_that_cannot_be_written_do_not_end_the_run(self):
        whole = self.trainer()
        whole.fit(self.data, epochs=2, batch_size=16)
        trainer, folder = self.trainer(), self.path("gone")

        class Remove(Callback):
            def on_start(self, state):
                os.remove(os.path.join(folder, ".lock"))
                os.rmdir(folder)

        with self.assertRaisesRegex(cameo.Error, "its folder does not exist .the run went on without it"):
            trainer.fit(self.data, epochs=2, batch_size=16, checkpoint=folder, checkpoint_every=2, callbacks=Remove())
        self.assertEqual(trainer.steps, whole.steps)
        same(self, dict(trainer.variables), dict(whole.variables))

    def test_a_second_run_on_the_folder_is_refused(self):
        folder, refused = self.path("folder"), []

        class Second(Callback):
            def on_start(callback, state):
                with self.assertRaisesRegex(cameo.ArgumentError, f"in use by process {os.getpid()}") as caught:
                    self.trainer().fit(self.data, epochs=1, checkpoint=folder, resume=True)
                refused.append(caught.exception)

        self.trainer().fit(self.data, epochs=1, batch_size=16, checkpoint=folder, callbacks=Second())
        self.assertEqual(len(refused), 1)
        self.assertEqual([name for name in os.listdir(folder) if "lock" in name], [])

    def test_fewer_steps_than_an_epoch_are_validated(self):
        history = self.trainer().fit(self.data, steps=2, batch_size=16, validate=self.data, best=self.path("best.onnx"))
        self.assertEqual(len(history["val_loss"]), 1)
        self.assertTrue(os.path.exists(self.path("best.onnx")))

    def test_an_exception_of_the_loader_leaves_a_checkpoint(self):
        broken = []

        def batches(epoch):
            for i in range(0, 40, 10):
                if epoch == 1 and i == 20 and not broken:
                    broken.append(1)
                    raise OSError("the disk is gone")
                yield self.data[0][i:i + 10], self.data[1][i:i + 10]
        trainer, whole = self.trainer(), self.trainer()
        with self.assertRaisesRegex(OSError, "the disk is gone"):
            trainer.fit(batches, epochs=3, checkpoint=self.path("c"))
        self.assertEqual(trainer.steps, 6)
        trainer.fit(batches, epochs=3, checkpoint=self.path("c"), resume=True)
        whole.fit(batches, epochs=3)
        same(self, whole.variables, trainer.variables)

    def test_an_exception_of_the_loader_with_everything_logged(self):
        def batches(epoch):
            yield self.data
            raise KeyError("mine")

        logger = logging.getLogger("cameo")
        self.addCleanup(mlp, "sgd", lr=0.01)  # the library hears of the level when a model is loaded
        with self.assertLogs(logger, logging.DEBUG) as logs, self.assertRaisesRegex(KeyError, "mine"):
            cameo.Trainer(mlp("sgd", lr=0.01)).fit(batches, checkpoint=self.path("logged"))
        self.assertTrue(logs.output)

    def test_refusals(self):
        self.trainer().fit(self.data, **self.options("c"))
        with self.assertRaisesRegex(cameo.ArgumentError, "holds checkpoints of another run"):
            self.trainer().fit(self.data, **self.options("c"))
        with self.assertRaisesRegex(cameo.Error, "batch size"):
            self.trainer().fit(self.data, **{**self.options("c"), "batch_size": 8}, resume=True)
        trainer = self.trainer()
        trainer.fit(self.data, **{**self.options("c"), "epochs": 5}, resume="anyway")
        self.assertEqual(trainer.steps, 30)
        self.assertEqual(os.path.basename(cameo.newest_checkpoint(self.path("c"))).count("30"), 1)

    def test_a_further_run_resumes_to_its_own_end(self):
        whole, other = self.trainer(), self.trainer()
        for trainer in (whole, other):
            trainer.step(self.data)
        whole.fit(self.data, **self.options("whole"))
        other.fit(self.data, **self.options("c"), callbacks=[LambdaCallback(on_step=lambda state: state.step < 9)])
        fresh = self.trainer()
        fresh.fit(self.data, **self.options("c"), resume=True)
        self.assertEqual((whole.steps, fresh.steps), (25, 25))
        same(self, whole.variables, fresh.variables)


SCRIPT = """
import sys, time, numpy
sys.path.insert(0, {tests!r})
import cameo
from test_trainer import mlp, samples
trainer = cameo.Trainer(mlp("adam", lr=0.01), threads=1)
data = samples(400)
def tell(state):
    if state.step == 60:
        print("ready", flush=True)
    if state.step >= 60 and {slow}:
        time.sleep(0.003)
def batches(epoch):
    for i in range(0, 400, 4):
        yield data[0][i:i + 4], data[1][i:i + 4]
try:
    trainer.fit({form}, epochs={epochs}, batch_size=4, checkpoint={checkpoint!r}, resume={resume}, progress=False,
                checkpoint_every=50,
                validate=data, callbacks=[cameo.callbacks.LambdaCallback(on_step=tell)])
except KeyboardInterrupt:
    print("interrupted", trainer.steps, flush=True)
    trainer.step((data[0][:4], data[1][:4]))  # still usable
    sys.exit(7)
numpy.savez({out!r}, **trainer.variables)
"""


class InterruptTest(FitCase):
    def run_script(self, **options):
        script = textwrap.dedent(SCRIPT).format(tests=os.path.dirname(os.path.abspath(__file__)), **options)
        return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)

    def whole(self, **options):
        process = self.run_script(**options, slow=False)
        process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        return dict(numpy.load(self.path("out.npz")))

    def test_a_run_that_was_interrupted_or_killed_ends_in_the_same_bits(self):
        for form in ("data", "batches"):
            options = {"form": form, "epochs": 4, "out": self.path("out.npz")}
            expected = self.whole(**options, checkpoint=self.path(form), resume=False)
            for number in (signal.SIGINT, signal.SIGKILL):
                options["checkpoint"] = self.path(form + number.name)
                process = self.run_script(**options, resume=False, slow=True)
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(number)
                told = process.stdout.read().split()
                process.stdout.close()
                if number == signal.SIGINT:
                    self.assertEqual((process.wait(), told[0]), (7, "interrupted"))
                    self.assertIn(told[1], cameo.newest_checkpoint(options["checkpoint"]))
                else:
                    self.assertEqual(process.wait(), -number)
                self.assertLess(int(cameo.newest_checkpoint(options["checkpoint"]).split("-")[-1].split(".")[0]), 400)
                same(self, self.whole(**options, resume=True), expected)


class CommandTest(FitCase):
    COMMAND = os.environ.get("CAMEO") or os.path.join(os.path.dirname(cameo.__file__), "cameo")

    @unittest.skipUnless(os.access(COMMAND, os.X_OK), "the command cameo is not beside the package")
    def test_the_command_and_fit_train_alike(self):
        self.model.save(self.path("model.onnx"))
        numpy.savez(self.path("data.npz"), x=self.data[0], target=self.data[1])
        for options, words in (({"epochs": 2}, "--epochs 2"), ({"steps": 7, "batch_size": 9}, "--steps 7 -b 9"),
                               ({"shuffle": False, "last": "drop", "batch_size": 12},
                                "--no-shuffle --last-batch drop -b 12"), ({"seed": 5, "batch_size": 7}, "--seed 5 -b 7")):
            subprocess.run([self.COMMAND, "train", self.path("model.onnx"), "--data", self.path("data.npz"), "-o",
                            self.path("command.onnx"), "--threads", "1", *words.split()], check=True, capture_output=True)
            trainer = cameo.Trainer(self.path("model.onnx"), threads=1, seed=options.pop("seed", 0))
            trainer.fit(self.data, **options)
            trainer.save(self.path("fit.onnx"))
            with open(self.path("command.onnx"), "rb") as first, open(self.path("fit.onnx"), "rb") as second:
                self.assertEqual(first.read(), second.read(), words)


if __name__ == "__main__":
    unittest.main()
