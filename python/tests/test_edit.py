# SPDX-License-Identifier: Apache-2.0
"""Models made of models: edits and their reports, comparisons, checkpoints of other frameworks."""

import gc
import os
import tempfile
import threading
import unittest

import numpy

import cameo

NET = """<ir_version: 8, opset_import: ["" : 13, "my" : 1]>
net (float[N,4] x) => (float[N,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, float[2] b = {1,2}>
{
    h = MatMul(x, w)
    s = Add(h, b)
    y = my.Twice(s)
}
<domain: "my", opset_import: ["" : 13]>
Twice (v) => (r) { r = Add(v, v) }"""
LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {2}> { y = MatMul(x, w) }"""


class EditTest(unittest.TestCase):
    def setUp(self):
        self.model = cameo.load(NET)
        self.before = self.model.text()
        self.x = numpy.eye(4, dtype=numpy.float32)
        self.y = self.model.run(x=self.x)["y"]

    def tearDown(self):
        self.assertEqual(self.model.text(), self.before)

    def test_infer(self):
        made = self.model.infer()
        self.assertEqual(made.graph.values["h"].type, "float[N,2]")
        self.assertEqual(made.report.typed, made.report.values)
        self.assertEqual(self.model.graph.values["h"].type, "?")

    def test_infer_refuses_what_contradicts_itself(self):
        bad = cameo.load(NET.replace("float[4,2] w", "float[2,4] w"))
        with self.assertRaisesRegex(cameo.ModelError, "MatMul") as caught:
            bad.infer()
        self.assertEqual(len(caught.exception.problems), 1)
        found, = caught.exception.findings
        self.assertEqual((found.rule, found.severity), ("TY2", "violation"))
        self.assertEqual(caught.exception.problems, (f"{found.place}: {found.reason}",))
        self.assertEqual(bad.infer(partial=True).report.findings.violations, 1)

    def test_upgrade_and_downgrade(self):
        newest = self.model.upgrade()
        self.assertGreater(newest.opsets[""], 20)
        self.assertEqual(self.model.upgrade(17).opsets[""], 17)
        older = newest.downgrade({"": 13})
        self.assertEqual(older.opsets[""], 13)
        self.assertTrue(older.report.notes)
        numpy.testing.assert_array_equal(older.run(x=self.x)["y"], self.y)
        for wrong in (lambda: self.model.upgrade(11), lambda: self.model.downgrade(17)):
            with self.assertRaisesRegex(cameo.ArgumentError, "imports opset 13 of ai.onnx"):
                wrong()
        with self.assertRaises(cameo.Error):
            self.model.upgrade(10 ** 6)

    def test_what_an_old_opset_cannot_say_is_listed(self):
        model = cameo.load("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[4] x) => (float[4] y) { s = SequenceConstruct(x, x) i = Constant<value_int = 1>()
        y = SequenceAt(s, i) }""")
        with self.assertRaises(cameo.Error) as caught:
            model.downgrade(1)
        self.assertTrue(caught.exception.problems)

    def test_expand(self):
        made = self.model.expand()
        self.assertEqual(made.functions, [])
        self.assertEqual(made.report.calls, 1)
        numpy.testing.assert_array_equal(made.run(x=self.x)["y"], self.y)
        self.assertEqual(len(self.model.expand(except_=["my::Twice"]).functions), 1)
        with self.assertRaisesRegex(cameo.Error, "Nosuch"):
            self.model.expand("my::Nosuch")
        self.assertEqual(self.model.expand(core=True).operators["Add"], 2)

    def test_extract_and_expose(self):
        part = self.model.extract("h", "s")
        self.assertEqual([value.name for value in part.inputs + part.outputs], ["h", "s"])
        self.assertEqual(list(part.initializers), ["b"])
        more = self.model.expose(["h"])
        numpy.testing.assert_array_equal(more.run(["h"], x=self.x)["h"], self.model.initializers["w"])
        self.assertEqual(len(self.model.expose().outputs), 3)
        with self.assertRaisesRegex(cameo.Error, "nosuch"):
            self.model.extract(outputs="nosuch")

    def test_merge(self):
        a = cameo.load(LINE)
        b = cameo.load(LINE)
        both = cameo.merge(a, b, {"y": "x"}, prefix1="a.", prefix2="b.")
        b.initializers["w"] = [[5]]
        del a, b
        gc.collect()
        self.assertEqual(sorted(both.initializers), ["a.w", "b.w"])
        self.assertEqual(both.run({"a.x": numpy.float32([[3]])})["b.y"].item(), 12)
        same = cameo.load(LINE)
        self.assertEqual(len(cameo.merge(same, same, {"y": "x"}, prefix2="_").nodes), 2)
        with self.assertRaisesRegex(cameo.Error, "nosuch"):
            cameo.merge(same, same, {"nosuch": "x"}, prefix2="_")

    def test_rename_and_shapes(self):
        made = self.model.rename({"w": "weight", "h": "hidden"}, dims={"N": "rows"})
        self.assertEqual(made.inputs[0].shape, ("rows", 4))
        self.assertIn("weight", made.initializers)
        self.assertEqual(made.nodes[0].outputs, ["hidden"])
        numpy.testing.assert_array_equal(made.run(x=self.x)["y"], self.y)
        self.assertEqual(self.model.rename({"*": "net/*"}).outputs[0].name, "net/y")
        with self.assertRaises(cameo.Error):
            self.model.rename({"w": "b"})
        self.assertEqual(self.model.set_shapes(x=(3, 4)).outputs[0].shape, (3, 2))
        self.assertEqual(self.model.set_shapes({"N": 7}).inputs[0].shape, (7, 4))
        self.assertEqual(self.model.set_shapes(x=[None, 4]).inputs[0].shape, (None, 4))
        with self.assertRaises(cameo.Error) as caught:
            self.model.set_shapes(x=(3, 5))
        self.assertIn("MatMul", caught.exception.problems[0])

    def test_optimize(self):
        made = self.model.optimize(portable=True)
        numpy.testing.assert_allclose(made.run(x=self.x)["y"], self.y, rtol=1e-6)
        self.assertIn("fold", [row.name for row in made.report.passes])
        self.assertTrue(next(row for row in self.model.optimize(without="fold").report.passes
                             if row.name == "fold").skipped)
        with self.assertRaisesRegex(cameo.Error, "nosuch"):
            self.model.optimize(without=["nosuch"])

    def test_grad_and_gradcheck(self):
        made = self.model.grad("y", ["x", "w"])
        numpy.testing.assert_array_equal(made.run(["gradient.w"], x=self.x)["gradient.w"], numpy.full((4, 2), 2))
        checked = self.model.gradcheck({"x": self.x})
        self.assertTrue(checked)
        self.assertEqual({row.name for row in checked}, {"x", "w", "b"})
        self.assertFalse(self.model.gradcheck(tolerance=-1.0))
        with self.assertRaisesRegex(cameo.Error, "nosuch"):
            self.model.gradcheck({"nosuch": self.x})

    def test_many_threads_read_and_edit(self):
        problems = []

        def work():
            try:
                for _ in range(20):
                    self.model.infer().optimize().expand()
                    self.model.initializers["w"].sum()
                    str(self.model.nodes)
            except Exception as problem:  # pylint: disable=broad-except
                problems.append(problem)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    def test_what_it_was_made_of_may_go(self):
        made = cameo.load(cameo.load(NET).to_bytes()).infer().rename({"w": "v"}).optimize().grad("y", "v")
        gc.collect()
        self.assertEqual(made.run(x=self.x)["y"].tolist(), self.y.tolist())


class PrepareTest(unittest.TestCase):
    def test_report_says_what_is_trained_and_why(self):
        model = cameo.load(NET)
        self.assertIs(model.prepare("mse", "adamw", lr=1e-3, freeze="b"), model)
        self.assertEqual(list(model.report.trained), ["w"])
        self.assertIn("b", model.report.frozen)
        self.assertEqual(model.report.target, "target")
        self.assertIn("trained:\n  w: ", str(model.report))
        step = model.step(portable=True)
        self.assertIn("w.next", [value.name for value in step.outputs])
        model.strip()
        self.assertEqual(model.training, [])

    def test_training_mode_is_turned_off(self):
        text = """<ir_version: 8, opset_import: ["" : 17]>
        net (float[N] x) => (float[N] y) <float half = {0.5}, bool on = {1}> { [drop] y = Dropout(x, half, on) }"""
        x = numpy.ones(64, numpy.float32)
        model = cameo.load(text)
        self.assertTrue((model.run(x=x)["y"] != x).any())
        for made in (cameo.load(text).strip(), model.optimize(), model.upgrade(18)):
            self.assertIn("training mode and is turned off: Dropout 'drop'", (made.report.changes + getattr(made.report, "notes", []))[0])
            numpy.testing.assert_array_equal(made.run(x=x)["y"], x)
        for made in (model.optimize(as_is=True), model.upgrade(18, as_is=True)):
            self.assertTrue((made.run(x=x)["y"] != x).any())
        self.assertEqual(model.evaluate((x, x), metrics="mae"), {"mae": 0.0})
        self.assertIn("Dropout 'drop'", model.evaluate((x, x), metrics="mae").notes[0])
        self.assertGreater(model.evaluate((x, x), metrics="mae", as_is=True)["mae"], 0)
        numpy.testing.assert_array_equal(model.predict({"x": x})["y"], x)
        self.assertEqual([finding.rule for finding in model.check()], ["ST30"])

    def test_what_is_wrong_is_refused_and_changes_nothing(self):
        model = cameo.load(NET)
        before = model.to_bytes()
        for options in (dict(loss="nosuch"), dict(loss="mse", optimizer="nosuch"), dict(loss="mse", lr=-1),
                        dict(loss="mse", schedule="nosuch"), dict(loss="mse", output="nosuch"),
                        dict(loss="mse", train="["), dict(loss="mse", lr=float("nan")),
                        dict(loss="mse", accumulate=-1), dict(loss="mse", warmup=-1), dict(loss="mse", clip_norm=-1)):
            with self.subTest(options=options), self.assertRaises(cameo.Error):
                model.prepare(**options)
            self.assertEqual(model.to_bytes(), before)
        with self.assertRaises(TypeError):
            model.prepare("mse", learning_rate=1)
        with self.assertRaises(cameo.Error):
            model.step()


class CompareTest(unittest.TestCase):
    def test_same(self):
        model = cameo.load(NET)
        found = model.compare(cameo.load(NET))
        self.assertTrue(found.same)
        # The node of the function counts.
        self.assertEqual((found.structure.compared, found.weights.compared, found.results.compared), (4, 2, 1))

    def test_weights_and_results(self):
        model, other = cameo.load(LINE), cameo.load(LINE)
        other.initializers["w"] = [[3]]
        found = model.compare(other, {"x": numpy.float32([[2], [4]])})
        self.assertFalse(found)
        self.assertEqual((found.weights[0].name, found.weights[0].max_abs), ("w", 1))
        self.assertEqual((found.results[0].name, found.results[0].differing, found.results[0].max_abs), ("y", 2, 4))
        self.assertFalse(found.structure)
        self.assertIn("w: 1 of 1 differ", str(found))
        self.assertTrue(model.compare(other, rtol=0.6, only=["weights", "results"]))

    def test_structure(self):
        model = cameo.load(NET)
        found = model.compare(model.upgrade(17), only="structure")
        self.assertEqual([(row.kind, row.name) for row in found.structure], [("changed", "opset ai.onnx")])
        found = model.compare(cameo.load(NET.replace("Add(h, b)", "Sub(h, b)")))
        self.assertEqual([(row.kind, row.text) for row in found.structure], [("changed", "operator is Sub, was Add")])
        self.assertIn("operator is Sub, was Add", str(found))
        self.assertEqual([(row.kind, row.name) for row in found.results][-1], ("first", "s"))

    def test_wrong_questions(self):
        model = cameo.load(NET)
        with self.assertRaisesRegex(cameo.ArgumentError, "only has 'nosuch'"):
            model.compare(model, only=["nosuch"])
        with self.assertRaises(cameo.ArgumentError):
            model.compare(model, rtol=-1)


class CheckpointTest(unittest.TestCase):
    def test_written_looked_into_and_read(self):
        model = cameo.load(NET).prepare("mse", "adam", lr=0.5)
        trainer = cameo.Trainer(model)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.pt")
            report = model.export_checkpoint(path, "pytorch")
            self.assertEqual({row.name for row in report.tensors if not row.slot}, {"w", "b"})
            saved = cameo.checkpoint(path)
            self.assertEqual(saved.system, "PyTorch")
            self.assertIn("w/exp_avg", saved.tensors)
            self.assertEqual(saved.tensors.rows["w/exp_avg"].role, "slot")
            self.assertEqual(saved.groups[0].lr, 0.5)
            numpy.testing.assert_array_equal(saved.tensors["b"], numpy.float32([1, 2]))
            other = cameo.load(NET)
            other.initializers["b"] = [7, 7]
            other.import_checkpoint(path, loss="mse")
            self.assertEqual(other.report.system, "PyTorch")
            numpy.testing.assert_array_equal(other.initializers["b"], numpy.float32([1, 2]))
            self.assertEqual(len(other.training), 1)
            plain = cameo.load(NET).import_checkpoint(path, weights_only=True)
            self.assertEqual(plain.training, [])
            self.assertIsNone(plain.report.preparation)
            renamed = cameo.load(NET).rename({"w": "v"})
            with self.assertRaises(cameo.Error) as caught:
                renamed.import_checkpoint(path, weights_only=True, map={"v": "nosuch"})
            self.assertTrue(caught.exception.problems or str(caught.exception))
            renamed.import_checkpoint(path, weights_only=True, map={"v": "w"})
        del trainer

    def test_refusals(self):
        model = cameo.load(NET)
        with self.assertRaisesRegex(cameo.NotFoundError, "nosuch"):
            cameo.checkpoint("/nosuch")
        with self.assertRaises(cameo.Error):
            model.export_checkpoint("/nosuch/file", "nosuch")
        with tempfile.NamedTemporaryFile() as file, self.assertRaises(cameo.Error):
            file.write(b"not a checkpoint")
            file.flush()
            model.import_checkpoint(file.name)
        self.assertIn("pytorch", cameo.export_formats())


if __name__ == "__main__":
    unittest.main()
