# cameo.sklearn by scikit-learn's own checks, and by what its estimators find.
# SPDX-License-Identifier: Apache-2.0
"""Estimators: scikit-learn's checks of them, networks of the caller's, labels, probabilities, going on."""

import importlib.util
import os
import pickle
import tempfile
import unittest
import warnings

import numpy

if importlib.util.find_spec("sklearn") is None:
    raise unittest.SkipTest("sklearn is not installed")
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import cameo
from cameo.sklearn import Classifier, Regressor

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def network(last="y = Identity(p)", columns=3):
    """A linear network over four features; last makes the output y of p."""
    zeros = ", ".join(["0"] * 4 * columns)
    return (f"{HEAD}net (float[N,4] x) => (float[N,{columns}] y) <float[4,{columns}] w = {{{zeros}}}, "
            f"float[{columns}] b = {{{', '.join(['0'] * columns)}}}> {{ p = Gemm(x, w, b) {last} }}")


def flowers():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(0)) / X.std(0), y


class Checks(unittest.TestCase):
    def test_scikit_learn_has_nothing_to_say(self):
        for estimator in (Classifier(random_state=0), Regressor(random_state=0)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = check_estimator(estimator, on_fail=None, on_skip=None)
            self.assertGreater(len(rows), 45)
            for row in rows:
                with self.subTest(type(estimator).__name__, check=row["check_name"]):
                    if row["status"] == "skipped":  # asks for a setting of SciPy's that is made before it is imported
                        self.assertIn("SCIPY_ARRAY_API", str(row["exception"]))
                    else:
                        self.assertEqual(row["status"], "passed", row["exception"])


class Networks(unittest.TestCase):
    def test_a_line_is_what_least_squares_find(self):
        random = numpy.random.default_rng(0)
        X = random.normal(size=(60, 4)).astype(numpy.float32)
        y = X @ [1, -2, 3, 0.5] + 0.7 + 0.1 * random.normal(size=60)
        mine = Regressor(network(columns=1), optimizer="sgd", lr=0.1, epochs=300, batch_size=60).fit(X, y)
        theirs = LinearRegression().fit(X, y)
        self.assertLess(abs(mine.network_.initializers["w"].ravel() - theirs.coef_).max(), 1e-4)
        self.assertEqual(mine.predict(X).shape, (60,))
        self.assertGreater(mine.loss_curve_[0], mine.loss_curve_[-1])
        self.assertEqual((mine.n_iter_, len(mine.loss_curve_)), (300, 300))

    def test_classes_are_what_logistic_regression_finds(self):
        X, y = flowers()
        mine = Classifier(network(), optimizer="adam", lr=0.1, epochs=300, batch_size=150, weight_decay=1e-3).fit(X, y)
        theirs = LogisticRegression(C=10).fit(X, y)
        self.assertGreater((mine.predict(X) == theirs.predict(X)).mean(), 0.97)
        self.assertTrue(numpy.allclose(mine.predict_proba(X).sum(1), 1))

    def test_fit_begins_with_the_weights_of_the_model(self):
        X, y = flowers()
        model = cameo.load(network())
        first = Classifier(model, epochs=20, lr=0.05, random_state=1).fit(X, y)
        self.assertFalse(model.initializers["w"].any())  # the model of the caller stays as it is
        self.assertFalse(model.training)
        again = Classifier(model, epochs=20, lr=0.05, random_state=1).fit(X, y)
        self.assertTrue(numpy.array_equal(first.predict_proba(X), again.predict_proba(X)))
        trained = Classifier(first.network_, epochs=0).fit(X, y)
        self.assertTrue(numpy.array_equal(first.predict_proba(X), trained.predict_proba(X)))

    def test_models_come_from_files(self):
        X, y = flowers()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.onnx")
            cameo.load(network()).save(path)
            estimator = Classifier(path, epochs=30, lr=0.05).fit(X, y)
            estimator.export(os.path.join(folder, "trained.onnx"))
            trained = cameo.load(os.path.join(folder, "trained.onnx"))
            self.assertFalse(trained.training)
            found = trained.run(x=X.astype(numpy.float32))["y"].argmax(1)
        self.assertTrue(numpy.array_equal(found, estimator.predict(X)))
        self.assertGreater(estimator.score(X, y), 0.9)

    def test_images_are_made_of_rows(self):
        X, y = load_digits(return_X_y=True)
        X = X[:300] / 16
        random = numpy.random.default_rng(0)
        numbers = ", ".join(map(str, random.normal(size=4 * 9).round(3)))
        more = ", ".join(map(str, (random.normal(size=4 * 36 * 10) * 0.1).round(3)))
        image = Classifier(HEAD + "net (float[N,1,8,8] x) => (float[N,10] y) <float[4,1,3,3] w = {" + numbers + "}, "
                           "float[144,10] v = {" + more + "}> { c = Conv(x, w) r = Relu(c) f = Flatten(r) "
                           "y = MatMul(f, v) }", epochs=20, lr=0.01, random_state=0)
        self.assertGreater(image.fit(X, y[:300]).score(X, y[:300]), 0.9)
        self.assertTrue(numpy.array_equal(image.predict(X), image.predict(X)))
        as_images = clone(image).fit(X.reshape(-1, 1, 8, 8), y[:300])
        self.assertTrue(numpy.array_equal(as_images.predict(X.reshape(-1, 1, 8, 8)), image.predict(X)))
        with self.assertRaisesRegex(cameo.ArgumentError, "sample of X has shape"):
            clone(image).fit(X[:, :60], y[:300])

    def test_several_numbers_are_predicted(self):
        random = numpy.random.default_rng(0)
        X = random.normal(size=(200, 3))
        y = numpy.stack([X[:, 0] - X[:, 1], 100 + 30 * X[:, 2]], axis=1)
        found = Regressor(epochs=60, lr=0.01, random_state=0).fit(X, y)
        self.assertEqual(found.predict(X).shape, (200, 2))
        self.assertGreater(found.score(X, y), 0.95)


class Labels(unittest.TestCase):
    def test_labels_of_any_kind(self):
        X, y = flowers()
        for labels in (numpy.array(["setosa", "versi", "virginica"]), numpy.array([10, 20, 40]),
                       numpy.array(["a", "b", "c"], object), numpy.array([-1, 0, 1])):
            estimator = Classifier(network(), epochs=30, lr=0.05, random_state=0).fit(X, labels[y])
            self.assertEqual(list(estimator.classes_), list(labels))
            self.assertGreater(estimator.score(X, labels[y]), 0.9)

    def test_numbers_of_columns(self):
        X, y = flowers()
        part = y != 1
        estimator = Classifier(network(), epochs=20, lr=0.05).fit(X[part], y[part])
        self.assertEqual(estimator.classes_.tolist(), [0, 1, 2])
        self.assertEqual(estimator.predict_proba(X).shape, (150, 3))
        self.assertEqual(set(estimator.predict(X[part])), {0, 2})
        with self.assertRaisesRegex(cameo.ArgumentError, "y has 2 classes, output 'y' of the model has 3 columns"):
            Classifier(network()).fit(X[part], numpy.array(["a", "-", "b"])[y[part]])

    def test_probabilities_whatever_the_network_gives(self):
        X, y = flowers()
        wanted = Classifier(network(), epochs=10, lr=0.05, random_state=0).fit(X, y).predict_proba(X)
        for last, loss in (("y = Softmax(p)", "cross-entropy"), ("s = Softmax(p) y = Identity(s)", "cross-entropy"),
                           ("y = LogSoftmax(p)", "nll")):
            with self.subTest(last):
                found = Classifier(network(last), loss=loss, epochs=10, lr=0.05, random_state=0).fit(X, y)
                self.assertLess(abs(found.predict_proba(X) - wanted).max(), 1e-5)

    def test_one_column_for_two_classes(self):
        X, y = flowers()
        X, y = X[y > 0], numpy.array(["no", "yes"])[y[y > 0] - 1]
        logits = Classifier(network(columns=1), loss="bce-logits", epochs=40, lr=0.05, random_state=0).fit(X, y)
        sigmoid = Classifier(network("y = Sigmoid(p)", 1), loss="bce", epochs=40, lr=0.05, random_state=0).fit(X, y)
        self.assertEqual(logits.predict_proba(X).shape, (100, 2))
        self.assertLess(abs(logits.predict_proba(X) - sigmoid.predict_proba(X)).max(), 1e-4)
        self.assertGreater(logits.score(X, y), 0.85)
        self.assertGreater(Classifier(loss="bce-logits", epochs=40).fit(X, y).score(X, y), 0.85)


class GoingOn(unittest.TestCase):
    def test_partial_fit(self):
        X, y = flowers()
        estimator = Classifier(network(), lr=0.05, random_state=0, batch_size=150)
        losses = []
        for _ in range(30):
            estimator.partial_fit(X, y)
            losses = estimator.loss_curve_
        self.assertEqual((estimator.n_iter_, len(losses)), (30, 30))
        self.assertLess(losses[-1], 0.5 * losses[0])
        with self.assertRaisesRegex(cameo.ArgumentError, "y has the label '7'"):
            estimator.partial_fit(X[:2], [0, 7])
        with self.assertRaisesRegex(ValueError, "classes must be passed"):
            Classifier().partial_fit(X, y)
        self.assertEqual(Classifier().partial_fit(X[:60], y[:60], classes=[0, 1, 2]).predict_proba(X).shape, (150, 3))

    def test_a_pickled_one_goes_on_as_if_it_had_not_been(self):
        X, y = flowers()
        one = Classifier(network(), lr=0.05, random_state=0, shuffle=False).fit(X, y)
        other = pickle.loads(pickle.dumps(one))
        self.assertTrue(numpy.array_equal(one.predict_proba(X), other.predict_proba(X)))
        for estimator in (one, other):  # Adam's moments come along
            estimator.partial_fit(X, y)
        self.assertTrue(numpy.array_equal(one.predict_proba(X), other.predict_proba(X)))

    def test_warm_start(self):
        X, y = flowers()
        one = Classifier(network(), lr=0.05, random_state=0, warm_start=True, epochs=5).fit(X, y).fit(X, y)
        self.assertEqual(one.n_iter_, 10)
        cold = Classifier(network(), lr=0.05, random_state=0, epochs=5).fit(X, y).fit(X, y)
        self.assertEqual(cold.n_iter_, 5)


class Company(unittest.TestCase):
    """Together with other parts of scikit-learn."""

    def test_pipelines_and_searches(self):
        X, y = load_iris(return_X_y=True)
        line = make_pipeline(StandardScaler(), Classifier(cameo.load(network()), epochs=5, random_state=0))
        self.assertGreater(cross_val_score(line.set_params(classifier__lr=0.1), X, y, cv=3).mean(), 0.85)
        search = GridSearchCV(line, {"classifier__lr": [1e-4, 0.1]}, cv=3).fit(X, y)
        self.assertEqual(search.best_params_, {"classifier__lr": 0.1})
        copy = clone(search.best_estimator_)
        with self.assertRaises(NotFittedError):
            copy.predict(X)

    def test_random_state(self):
        X, y = flowers()
        one, two, three = (Classifier(epochs=2, random_state=seed).fit(X, y).predict_proba(X) for seed in (0, 0, 1))
        self.assertTrue(numpy.array_equal(one, two))
        self.assertFalse(numpy.array_equal(one, three))

    def test_refusals(self):
        X, y = flowers()
        two = HEAD + "net (float[N,4] x, float[N,4] z) => (float[N,4] y) { y = Add(x, z) }"
        with self.assertRaisesRegex(cameo.UnsupportedError, "the model has 2 inputs"):
            Regressor(two).fit(X, y)
        with self.assertRaisesRegex(cameo.ArgumentError, "output is 'q', the model has y"):
            Classifier(network(), output="q").fit(X, y)
        with self.assertRaises(cameo.Error):
            Classifier(network(), optimizer="none").fit(X, y)
        for hidden in ((0,), (-1,), ("a",), "a", None):
            with self.assertRaisesRegex(cameo.ArgumentError, "hidden is"):
                Classifier(hidden=hidden).fit(X, y)
        for hidden in ((), 3, [2, 2]):
            self.assertEqual(Classifier(hidden=hidden, epochs=1).fit(X, y).predict(X).shape, (150,))
        with self.assertRaises(cameo.Error):
            Classifier("no such file.onnx").fit(X, y)
        with self.assertRaisesRegex(ValueError, "features"):
            Classifier(epochs=1).fit(X, y).predict(X[:, :2])
        with self.assertRaisesRegex(ValueError, "NaN"):
            Classifier(network()).fit(numpy.full((3, 4), numpy.nan), [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
