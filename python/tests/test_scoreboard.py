# SPDX-License-Identifier: Apache-2.0
"""The report in the form of ONNX's backend scoreboard."""

import csv
import json
import pathlib
import tempfile
import unittest

import cameo.backend
from cameo.backend import scoreboard

SUBSET = "^test_(abs|add|add_bcast|bernoulli|ai_onnx_ml_binarizer|squeezenet|expand_shape_model1|Softmin)_cpu$"


class ReportTest(unittest.TestCase):
    """The forms are those of the files in the scoreboard's own repository."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name, "made", "by", "it")
        cls.said = []
        for _ in range(3):
            cls.status = scoreboard.main([str(cls.out), "--include", SUBSET], cls.said.append)

    def read(self, name):
        return json.loads((self.out / name).read_text(encoding="utf-8"))

    def rows(self, name):
        with open(self.out / name, newline="", encoding="utf-8") as file:
            return list(csv.reader(file))

    def test_the_run(self):
        self.assertEqual(self.status, 0)
        self.assertEqual(self.said, ["7 passed, 1 failed, 0 skipped"] * 3)
        self.assertEqual({path.name for path in self.out.iterdir()},
                         {"report.json", "trend.json", "ops.json", "pip-list.json", "nodes.csv", "models.csv",
                          "metadata.csv", "scoreboard.md"})

    def test_report(self):
        told = self.read("report.json")
        self.assertRegex(told.pop("date"), r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d$")
        node = "OnnxBackendNodeModelTest::test_"
        self.assertEqual(told, {
            "failed": [node + "bernoulli_cpu"],
            "passed": [node + "abs_cpu", node + "add_bcast_cpu", node + "add_cpu", node + "ai_onnx_ml_binarizer_cpu",
                       "OnnxBackendPyTorchConvertedModelTest::test_Softmin_cpu",
                       "OnnxBackendRealModelTest::test_squeezenet_cpu",
                       "OnnxBackendSimpleModelTest::test_expand_shape_model1_cpu"],
            "skipped": []})

    def test_trend(self):
        trend = self.read("trend.json")
        self.assertEqual(len(trend), 2, "a run like the last of two replaces it")
        for row in trend:
            self.assertEqual(set(row), {"date", "failed", "passed", "skipped", "total_ops", "versions"})
            self.assertEqual((row["failed"], row["passed"], row["skipped"]), (1, 7, 0))
            self.assertEqual([package["name"] for package in row["versions"]], ["cameo", "onnx"])
            self.assertEqual(row["total_ops"], len(self.read("ops.json")))

    def test_operators(self):
        rows = self.read("ops.json")
        self.assertEqual([(row["domain"], row["op_type"]) for row in rows],
                         sorted((row["domain"], row["op_type"]) for row in rows))
        by_name = {row.pop("op_type"): row for row in rows}
        self.assertEqual(by_name["Add"], {"domain": "", "total_tests": 2, "passed_tests": 2, "failed_tests": 0,
                                          "skipped_tests": 0})
        self.assertEqual(by_name["Bernoulli"], {"domain": "", "total_tests": 1, "passed_tests": 0, "failed_tests": 1,
                                                "skipped_tests": 0})
        self.assertEqual(by_name["Binarizer"]["domain"], "ai.onnx.ml")

    def test_tables(self):
        nodes = self.rows("nodes.csv")
        self.assertEqual(nodes[0], ["Op", "None"])
        self.assertEqual([row[1] for row in nodes if row[0] in ("Abs", "Bernoulli", "Loop")],
                         ["Passed!", "Failed!", "Failed!"])
        self.assertRegex(nodes[-1][1], r"^\d+/\d+ node tests passed$")
        self.assertEqual(self.rows("models.csv"), [["Model", "None"], ["squeezenet_old", "8/8 nodes covered: Passed!"],
                                                   ["Summary", "1/1 model tests passed"]])
        self.assertEqual([row[0] for row in self.rows("metadata.csv")], ["Latest Update"])
        self.assertIn("onnx", [package["name"] for package in self.read("pip-list.json")])

    def test_page(self):
        text = (self.out / "scoreboard.md").read_text(encoding="utf-8")
        self.assertIn("| all | 7 | 1 | 0 |", text)
        self.assertRegex(text, r"\| OnnxBackendNodeModelTest::test_bernoulli_cpu \| failed \| AssertionError: ")
        self.assertIn("| ai.onnx | Add | 2 | 2 | 0 | 0 |", text)


class OtherBackendTest(unittest.TestCase):
    def test_a_backend_that_breaks(self):
        class Broken(cameo.backend.Backend):
            @classmethod
            def prepare(cls, model, device="CPU", **kwargs):
                raise RuntimeError("out of order\nsecond line | with a bar")
        (test,) = scoreboard.run(Broken, "^test_abs_cpu$")
        self.assertEqual((test.outcome, test.reason), ("failed", "RuntimeError: out of order"))
        self.assertEqual(test.operators, {("", "Abs")})


if __name__ == "__main__":
    unittest.main()
