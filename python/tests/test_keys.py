# What the command prints as JSON and what Python tells have the same names.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy

import cameo

NET = """<ir_version: 8, opset_import: ["" : 13], producer_name: "tests", producer_version: "1">
net (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, -2, 0.5, 3}, float[2] b = {0.25, 1}> {
  h = MatMul(x, w)
  s = Add(h, b)
  y = my.Twice(s)
}
<domain: "my", opset_import: ["" : 13]>
Twice (a) => (c) { c = Add(a, a) }
"""
ILL = """<ir_version: 8, opset_import: ["" : 13]>
ill (float[N] x) => (float[N] y) { y = Abs(nowhere) }
"""
# What only one of the two has.
OF_THE_COMMAND = {
    "model": "the path is what load() was given",
    "files": "what save() writes is what it is asked to",
    "findings": "check() is the list",
    "producer": "model.summary.producer_name",
    "violations": "report.findings.violations",
    "warnings": "report.findings.warnings",
    "cut": "report.findings.cut",
    "types": "model.graph.values",
    "steps": "trainer.steps",
    "loss": "history['loss']",
}
OF_PYTHON = {"preparation", "number", "kind", "initializer_count", "function_count", "training_count", "epochs",
             "first_step", "stopped"}


def members(thing):
    """Of an object what it tells: a dict, or None for a plain value."""
    if isinstance(thing, dict) and type(thing) is dict:
        return thing
    if isinstance(thing, tuple) and hasattr(thing, "_asdict"):
        return thing._asdict()
    if not type(thing).__module__.startswith("cameo"):
        return None
    names = [name for name in getattr(type(thing), "__slots__", None) or vars(thing) if not name.startswith("_")]
    names += [name for name in dir(type(thing)) if isinstance(getattr(type(thing), name), property)]
    return {name: getattr(thing, name) for name in names}


def empty(value):
    return value is None or not isinstance(value, (bool, numpy.ndarray)) and value in ("", [], {}, 0, False)


class KeysTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        cameo.load(NET).save("net.onnx")
        x = numpy.float32([[1, 2], [3, 4], [0, 1], [2, 2]])
        numpy.savez("data.npz", x=x, target=x @ numpy.float32([[2, 0], [0, 1]]))
        self.net().prepare("mse", "adam").save("trainable.onnx")

    def net(self):
        return cameo.load("net.onnx")

    def command(self, *words):
        done = subprocess.run([sys.executable, "-m", "cameo", *words, "--json"], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return json.loads(done.stdout.splitlines()[-1])

    def alike(self, told, thing, place="", free=(), python_only=()):
        """free: JSON objects under these names have names of the model as keys."""
        if isinstance(told, list):
            if told and isinstance(told[0], dict):
                rows = list(thing)
                self.assertEqual(len(told), len(rows), place)
                for one, other in zip(told, rows):
                    self.alike(one, other, place + "[]", free)
            return
        if not isinstance(told, dict):
            return
        has = members(thing)
        self.assertIsNotNone(has, f"{place}: the command tells {sorted(told)}, Python {thing!r}")
        for name, value in told.items():
            if name not in OF_THE_COMMAND or name in has:
                self.assertIn(name, has, f"{place}: the command tells '{name}', Python {sorted(has)}")
                if name not in free:
                    self.alike(value, has[name], f"{place}.{name}", free)
        for name, value in has.items():
            if name not in told and name not in OF_PYTHON and name not in python_only and not empty(value):
                self.fail(f"{place}: Python tells '{name}', the command {sorted(told)}")

    def test_check(self):
        with open("ill.onnxtxt", "w", encoding="ascii") as file:
            file.write(ILL)
        told, = self.command("check", "ill.onnxtxt")
        found = cameo.load(ILL).check()
        self.assertTrue(found)
        self.alike(told, found)
        self.alike(told["findings"], found)
        self.assertEqual((told["violations"], told["warnings"]), (found.violations, found.warnings))

    def test_info(self):
        told = self.command("info", "trainable.onnx")
        model = cameo.load("trainable.onnx")
        parts = ("inputs", "outputs", "costs", "training")
        elsewhere = ("initializers", "functions", "operators", "opsets", "metadata", "external_files",
                     "constant_parameters", "attribute_parameters", "nested_parameters", *parts)
        for name in elsewhere:
            self.assertTrue(name in parts or hasattr(model, name) or not told[name] or "parameters" in name, name)
        self.alike({name: value for name, value in told.items() if name not in elsewhere}, model.summary)
        for name in ("inputs", "outputs"):
            self.alike(told[name], [{key: getattr(row, key) for key in ("name", "type", "dtype", "shape", "has_default")}
                                    for row in getattr(model, name)])
        self.alike(told["costs"], model.costs())
        self.assertLessEqual({"inputs", "outputs", "states", "initialization_binding", "update_binding"},
                             told["training"][0].keys() & members(model.training[0]).keys())

    def test_evaluate(self):
        words = ["evaluate", "net.onnx", "--data", "classes.npz", "--metrics", "accuracy,confusion,f1-macro"]
        x = numpy.float32([[1, 2], [3, 4], [0, 1]])
        numpy.savez("classes.npz", x=x, target=numpy.int64([0, 1, 1]))
        found = self.net().evaluate("classes.npz", metrics=words[-1].split(","))
        told = self.command(*words)
        self.alike(told, {name: getattr(found, name) for name in ("samples", "metrics", "notes", "classes", "confusion")})
        self.assertEqual(told["metrics"], found.metrics)

    def test_train(self):
        told = self.command("train", "trainable.onnx", "--data", "data.npz", "--validate", "data.npz", "--epochs", "2",
                            "--batch-size", "2", "-o", "trained.onnx")
        trainer = cameo.Trainer(cameo.load("trainable.onnx"))
        history = trainer.fit("data.npz", validate="data.npz", epochs=2, batch_size=2)
        for name, value in told.items():
            if name not in OF_THE_COMMAND:
                self.assertAlmostEqual(getattr(history, name), value, 5, name)
        self.assertEqual(told["steps"], trainer.steps)

    def test_reports(self):
        for words, report in (
                (("prepare", "net.onnx", "--loss", "mse", "--optimizer", "sgd"), self.net().prepare("mse").report),
                (("optimize", "net.onnx", "-o", "o.onnx"), self.net().optimize().report),
                (("expand", "net.onnx", "-o", "e.onnx"), self.net().expand().report),
                (("upgrade", "net.onnx", "-o", "u.onnx"), self.net().upgrade().report),
                (("downgrade", "net.onnx", "--opset", "12", "-o", "d.onnx"), self.net().downgrade(12).report),
                (("infer", "net.onnx"), self.net().infer().report)):
            with self.subTest(words):
                self.alike(self.command(*words), report, words[0], python_only=("trained", "frozen", "originals"))

    def test_changes_of_versions(self):
        text = """<ir_version: 8, opset_import: ["" : 12]>
            net (float[N] x) => (float[1] y) { y = ReduceSum <axes = [0], keepdims = 1> (x) }"""
        with open("sum.onnxtxt", "w", encoding="ascii") as file:
            file.write(text)
        told = self.command("upgrade", "sum.onnxtxt", "--opset", "13", "-o", "u.onnx")
        report = cameo.load(text).upgrade(13).report
        self.assertEqual([(row["from"], row["to"]) for row in told["changes"]],
                         [(row["from"], row["to"]) for row in report.changes])
        self.assertTrue(report.changes)
        self.alike(told, report)

    def test_comparison(self):
        other = self.net()
        other.initializers["w"] = [[1, 1], [1, 1]]
        other.save("other.onnx")
        found = self.net().compare(other)
        told = self.command("compare", "net.onnx", "other.onnx")
        for part in ("structure", "weights", "results"):
            self.alike({name: told[part][name] for name in ("compared", "differing")}, getattr(found, part), part,
                       python_only=("rows",))
            for row, difference in zip(told[part]["rows"], getattr(found, part).rows):
                self.assertLessEqual(row.keys(), members(difference).keys())
        self.assertEqual(found.same, told["same"])

    def test_gradcheck(self):
        self.alike(self.command("gradcheck", "net.onnx"), self.net().gradcheck())

    def test_checkpoints(self):
        exported = cameo.load("trainable.onnx").export_checkpoint("net.pt", "pytorch")
        self.alike(self.command("export", "trainable.onnx", "--to", "pytorch", "-o", "again.pt"), exported, "export")
        saved = cameo.checkpoint("net.pt")
        told = self.command("checkpoint", "info", "net.pt")
        self.alike(told["tensors"], saved.tensors.rows.values(), "tensors")
        del told["tensors"]
        self.alike(told, saved, "checkpoint", free=("facts",), python_only=("tensors",))
        report = self.net().import_checkpoint("net.pt", loss="mse").report
        self.alike(self.command("import", "net.onnx", "net.pt", "--loss", "mse", "-o", "i.onnx"), report, "import")


if __name__ == "__main__":
    unittest.main()
