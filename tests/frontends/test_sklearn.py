"""scikit-learn by skl2onnx: estimators, transformers, pipelines; against ONNX Runtime and scikit-learn's own results."""
# SPDX-License-Identifier: Apache-2.0
import os
import warnings

import numpy as np
import skl2onnx
import sklearn
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (base, calibration, cluster, compose, cross_decomposition, decomposition, discriminant_analysis,
                     ensemble,
                     feature_extraction, feature_selection, gaussian_process, impute, isotonic, kernel_approximation,
                     linear_model, mixture, multiclass, multioutput, naive_bayes, neighbors, neural_network, pipeline,
                     preprocessing, random_projection, svm, tree)

import common

warnings.filterwarnings("ignore")
COUNT, WIDTH = 120, 5


def numbers(kind="normal", seed=0):
    """Rows that float and double hold alike, so that a threshold of a tree parts them alike."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((COUNT, WIDTH)).astype(np.float32)
    if kind == "positive":
        x = np.abs(x)
    elif kind == "counts":
        x = random.integers(0, 6, x.shape).astype(np.float32)
    elif kind == "bits":
        x = (x > 0).astype(np.float32)
    elif kind == "missing":
        x[random.random(x.shape) < 0.15] = np.nan
    return x


def labels(x, classes):
    score = np.nan_to_num(x) @ np.arange(1, WIDTH + 1)
    return np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))


def truth(x, kind):
    """What is learned, by the kind of estimator."""
    y = np.nan_to_num(x) @ np.linspace(-1, 1, WIDTH) + 0.3 * np.sin(3 * np.nan_to_num(x[:, 0]))
    return {"classes2": labels(x, 2), "classes3": labels(x, 3), "texts": np.array(["low", "mid", "high"])[labels(x, 3)],
            "number": y, "numbers": np.stack([y, -y + x[:, 1]], 1), "positive": np.exp(y / 3),
            "counts": np.round(np.exp(y / 4)),
            "many_labels": np.stack([labels(x, 2), 1 - labels(x[:, ::-1], 2)], 1), None: None}[kind]


def own_results(model, x):
    """What scikit-learn gives where skl2onnx writes one or two outputs."""
    if hasattr(model, "predict_proba") and not isinstance(model, multioutput.MultiOutputClassifier):
        return [model.predict(x), model.predict_proba(x)]
    if isinstance(model, base.ClassifierMixin):  # scores come in another form
        return [model.predict(x)]
    if isinstance(model, (cluster.KMeans, cluster.MiniBatchKMeans)):
        return [model.predict(x), model.transform(x)]
    if isinstance(model, (ensemble.IsolationForest, svm.OneClassSVM, neighbors.LocalOutlierFactor)):
        return [model.predict(x), model.decision_function(x)]
    return [model.transform(x) if hasattr(model, "transform") and not hasattr(model, "predict") else model.predict(x)]


def to_onnx(model, types, options=None, opset=None):
    """The model converted; probabilities come as an array, where the converter would write maps unless it is told."""
    if options is None and isinstance(model, (base.ClassifierMixin, pipeline.Pipeline)):
        try:
            return skl2onnx.convert_sklearn(model, initial_types=types, options={id(model): {"zipmap": False}},
                                            target_opset=opset)
        except NameError:  # it has no such option
            pass
    return skl2onnx.convert_sklearn(model, initial_types=types, options={id(model): options} if options else None,
                                    target_opset=opset)


class Estimator:
    """A row: what it is, the kind of rows it sees and of what it learns; options are skl2onnx's."""

    def __init__(self, name, model, target=None, data="normal", *, double=False, tolerance=1.0, own_tolerance=4.0,
                 options=None, own=None,
                 opset=None):
        self.name, self.model, self.target, self.data, self.double, self.own = name, model, target, data, double, own
        self.tolerance, self.own_tolerance, self.options, self.opset = tolerance, own_tolerance, options, opset

    def row(self):
        return common.Row("skl2onnx", self.name, self.run)

    def run(self, folder):
        x = numbers(self.data)
        model = self.model() if callable(self.model) else self.model
        y = truth(x, self.target)
        model.fit(x) if y is None else model.fit(x, y)
        fresh = numbers(self.data, 1)[:40]
        kind = DoubleTensorType if self.double else FloatTensorType
        fresh = fresh.astype(np.float64) if self.double else fresh
        made = common.convert(to_onnx, model, [("X", kind([None, WIDTH]))], self.options, self.opset)
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as to:
            to.write(made.SerializeToString())
        own = (self.own or own_results)(model, fresh)
        return common.check(path, {"X": fresh}, common.alike(own, path), self.tolerance, self.own_tolerance)


def pipe(*steps):
    return pipeline.make_pipeline(*steps)


LINEAR = linear_model.LogisticRegression
REGRESSORS = {
    "LinearRegression": linear_model.LinearRegression(), "Ridge": linear_model.Ridge(),
    "RidgeCV": linear_model.RidgeCV(),
    "Lasso": linear_model.Lasso(0.01), "LassoCV": linear_model.LassoCV(), "LassoLars": linear_model.LassoLars(0.01),
    "LassoLarsCV": linear_model.LassoLarsCV(), "LassoLarsIC": linear_model.LassoLarsIC(), "Lars": linear_model.Lars(),
    "LarsCV": linear_model.LarsCV(), "ElasticNet": linear_model.ElasticNet(0.01),
    "ElasticNetCV": linear_model.ElasticNetCV(),
    "BayesianRidge": linear_model.BayesianRidge(), "ARDRegression": linear_model.ARDRegression(),
    "HuberRegressor": linear_model.HuberRegressor(),
    "TheilSenRegressor": linear_model.TheilSenRegressor(random_state=0),
    "RANSACRegressor": linear_model.RANSACRegressor(random_state=0),
    "SGDRegressor": linear_model.SGDRegressor(random_state=0),
    "OrthogonalMatchingPursuit": linear_model.OrthogonalMatchingPursuit(),
    "OrthogonalMatchingPursuitCV": linear_model.OrthogonalMatchingPursuitCV(),
    "PassiveAggressiveRegressor": lambda: linear_model.PassiveAggressiveRegressor(random_state=0),
    "QuantileRegressor": linear_model.QuantileRegressor(alpha=0.01), "LinearSVR": svm.LinearSVR(random_state=0),
    "SVR": svm.SVR(), "SVR_poly": svm.SVR(kernel="poly"), "SVR_linear": svm.SVR(kernel="linear"),
    "SVR_sigmoid": svm.SVR(kernel="sigmoid"),
    "NuSVR": svm.NuSVR(), "DecisionTreeRegressor": tree.DecisionTreeRegressor(random_state=0),
    "ExtraTreeRegressor": tree.ExtraTreeRegressor(random_state=0),
    "RandomForestRegressor": ensemble.RandomForestRegressor(10, random_state=0),
    "ExtraTreesRegressor": ensemble.ExtraTreesRegressor(10, random_state=0),
    "GradientBoostingRegressor": ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0),
    "HistGradientBoostingRegressor": ensemble.HistGradientBoostingRegressor(max_iter=10, random_state=0),
    "AdaBoostRegressor": ensemble.AdaBoostRegressor(n_estimators=8, random_state=0),
    "BaggingRegressor": ensemble.BaggingRegressor(n_estimators=5, random_state=0),
    "VotingRegressor": lambda: ensemble.VotingRegressor([("a", linear_model.Ridge()),
                                                         ("b", tree.DecisionTreeRegressor(max_depth=3))]),
    "StackingRegressor": lambda: ensemble.StackingRegressor([("a", linear_model.Ridge()),
                                                             ("b", tree.DecisionTreeRegressor(max_depth=3))]),
    "KNeighborsRegressor": neighbors.KNeighborsRegressor(),
    "KNeighborsRegressor_distance": neighbors.KNeighborsRegressor(weights="distance"),
    "RadiusNeighborsRegressor": neighbors.RadiusNeighborsRegressor(4.0),
    "MLPRegressor": neural_network.MLPRegressor(hidden_layer_sizes=[12], max_iter=80, random_state=0),
    "MLPRegressor_tanh": neural_network.MLPRegressor(hidden_layer_sizes=[8, 6], activation="tanh", max_iter=80,
                                                     random_state=0),
    "TransformedTargetRegressor": lambda: compose.TransformedTargetRegressor(linear_model.Ridge()),
    "PLSRegression": cross_decomposition.PLSRegression(2),
    "Pipeline_scaled_svr": lambda: pipe(preprocessing.StandardScaler(), svm.SVR()),
    "Pipeline_polynomial": lambda: pipe(preprocessing.PolynomialFeatures(2), linear_model.Ridge()),
    "Pipeline_spline": lambda: pipe(preprocessing.SplineTransformer(4), linear_model.Ridge()),
}
COUNT_REGRESSORS = {
    "PoissonRegressor": linear_model.PoissonRegressor(), "GammaRegressor": linear_model.GammaRegressor(),
    "TweedieRegressor": linear_model.TweedieRegressor(power=1.5),
    "HistGradientBoostingRegressor_poisson": ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=10),
}
MANY_REGRESSORS = {
    "MultiTaskLasso": linear_model.MultiTaskLasso(0.01), "MultiTaskLassoCV": linear_model.MultiTaskLassoCV(),
    "MultiTaskElasticNet": linear_model.MultiTaskElasticNet(0.01),
    "MultiTaskElasticNetCV": linear_model.MultiTaskElasticNetCV(),
    "LinearRegression_two": linear_model.LinearRegression(),
    "DecisionTreeRegressor_two": tree.DecisionTreeRegressor(random_state=0),
    "RandomForestRegressor_two": ensemble.RandomForestRegressor(5, random_state=0),
    "KNeighborsRegressor_two": neighbors.KNeighborsRegressor(),
    "MultiOutputRegressor": lambda: multioutput.MultiOutputRegressor(linear_model.Ridge()),
    "RegressorChain": lambda: multioutput.RegressorChain(linear_model.Ridge()),
    "MLPRegressor_two": neural_network.MLPRegressor(hidden_layer_sizes=[8], max_iter=60, random_state=0),
    "PLSRegression_two": cross_decomposition.PLSRegression(2),
}
CLASSIFIERS = {
    "LogisticRegression": LINEAR(), "LogisticRegressionCV": linear_model.LogisticRegressionCV(Cs=3),
    "SGDClassifier": linear_model.SGDClassifier(random_state=0),
    "SGDClassifier_log": linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "SGDClassifier_huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "Perceptron": linear_model.Perceptron(random_state=0), "RidgeClassifier": linear_model.RidgeClassifier(),
    "RidgeClassifierCV": linear_model.RidgeClassifierCV(),
    "PassiveAggressiveClassifier": lambda: linear_model.PassiveAggressiveClassifier(random_state=0),
    "LinearSVC": svm.LinearSVC(random_state=0), "SVC": svm.SVC(), "SVC_poly": svm.SVC(kernel="poly"),
    "SVC_linear": svm.SVC(kernel="linear"),
    "SVC_sigmoid": svm.SVC(kernel="sigmoid"), "SVC_probability": lambda: svm.SVC(probability=True, random_state=0),
    "NuSVC": svm.NuSVC(nu=0.3), "NuSVC_probability": lambda: svm.NuSVC(nu=0.3, probability=True, random_state=0),
    "DecisionTreeClassifier": tree.DecisionTreeClassifier(max_depth=4, random_state=0),
    "ExtraTreeClassifier": tree.ExtraTreeClassifier(max_depth=4, random_state=0),
    "RandomForestClassifier": ensemble.RandomForestClassifier(10, max_depth=5, random_state=0),
    "ExtraTreesClassifier": ensemble.ExtraTreesClassifier(10, max_depth=5, random_state=0),
    "GradientBoostingClassifier": ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0),
    "HistGradientBoostingClassifier": ensemble.HistGradientBoostingClassifier(max_iter=8, random_state=0),
    "AdaBoostClassifier": ensemble.AdaBoostClassifier(n_estimators=8, random_state=0),
    "BaggingClassifier": ensemble.BaggingClassifier(n_estimators=5, random_state=0),
    "VotingClassifier_soft": lambda: ensemble.VotingClassifier([("a", LINEAR()), ("b", naive_bayes.GaussianNB())],
                                                               voting="soft",
        flatten_transform=False),
    "VotingClassifier_hard": lambda: ensemble.VotingClassifier([("a", LINEAR()),
                                                                ("b", tree.DecisionTreeClassifier(max_depth=3)),
                                                                ("c", naive_bayes.GaussianNB())], flatten_transform=False),
    "StackingClassifier": lambda: ensemble.StackingClassifier([("a", LINEAR()),
                                                               ("b", tree.DecisionTreeClassifier(max_depth=3))]),
    "CalibratedClassifierCV": lambda: calibration.CalibratedClassifierCV(LINEAR(), cv=2),
    "CalibratedClassifierCV_isotonic": lambda: calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(),
                                                                      method="isotonic", cv=2),
    "KNeighborsClassifier": neighbors.KNeighborsClassifier(),
    "KNeighborsClassifier_distance": neighbors.KNeighborsClassifier(weights="distance"),
    "KNeighborsClassifier_manhattan": neighbors.KNeighborsClassifier(metric="manhattan"),
    "RadiusNeighborsClassifier": neighbors.RadiusNeighborsClassifier(4.0),
    "NearestCentroid": neighbors.NearestCentroid(),
    "GaussianNB": naive_bayes.GaussianNB(),
    "LinearDiscriminantAnalysis": discriminant_analysis.LinearDiscriminantAnalysis(),
    "QuadraticDiscriminantAnalysis": discriminant_analysis.QuadraticDiscriminantAnalysis(),
    "MLPClassifier": neural_network.MLPClassifier(hidden_layer_sizes=[10], max_iter=80, random_state=0),
    "MLPClassifier_logistic": neural_network.MLPClassifier(hidden_layer_sizes=[8, 6], activation="logistic",
                                                           max_iter=80, random_state=0),
    "OneVsRestClassifier": lambda: multiclass.OneVsRestClassifier(LINEAR()),
    "OneVsOneClassifier": lambda: multiclass.OneVsOneClassifier(LINEAR()),
    "OutputCodeClassifier": lambda: multiclass.OutputCodeClassifier(LINEAR(), random_state=0),
    "Pipeline_scaled_logistic": lambda: pipe(preprocessing.StandardScaler(), LINEAR()),
    "Pipeline_pca_svc": lambda: pipe(decomposition.PCA(3), svm.SVC()),
    "Pipeline_selected_forest": lambda: pipe(feature_selection.SelectKBest(k=3),
                                             ensemble.RandomForestClassifier(5, max_depth=4, random_state=0)),
    "Pipeline_union": lambda: pipe(pipeline.make_union(preprocessing.StandardScaler(), decomposition.PCA(2)), LINEAR()),
}
COUNT_CLASSIFIERS = {
    "MultinomialNB": (naive_bayes.MultinomialNB(), "counts"), "ComplementNB": (naive_bayes.ComplementNB(), "counts"),
    "BernoulliNB": (naive_bayes.BernoulliNB(), "bits"),
    "CategoricalNB": (naive_bayes.CategoricalNB(min_categories=6), "counts"),
    "HistGradientBoostingClassifier_missing": (ensemble.HistGradientBoostingClassifier(max_iter=8), "missing"),
    "DecisionTreeClassifier_missing": (tree.DecisionTreeClassifier(max_depth=4, random_state=0), "missing"),
    "RandomForestClassifier_missing": (ensemble.RandomForestClassifier(5, max_depth=4, random_state=0), "missing"),
}
TRANSFORMERS = {
    "StandardScaler": (preprocessing.StandardScaler(), "normal"),
    "StandardScaler_no_mean": (preprocessing.StandardScaler(with_mean=False), "normal"),
    "MinMaxScaler": (preprocessing.MinMaxScaler(), "normal"),
    "MinMaxScaler_clip": (preprocessing.MinMaxScaler(clip=True), "normal"),
    "MaxAbsScaler": (preprocessing.MaxAbsScaler(), "normal"), "RobustScaler": (preprocessing.RobustScaler(), "normal"),
    "Normalizer": (preprocessing.Normalizer(), "normal"), "Normalizer_l1": (preprocessing.Normalizer("l1"), "normal"),
    "Normalizer_max": (preprocessing.Normalizer("max"), "normal"),
    "Binarizer": (preprocessing.Binarizer(threshold=0.2), "normal"),
    "PolynomialFeatures": (preprocessing.PolynomialFeatures(3), "normal"),
    "PolynomialFeatures_interaction": (preprocessing.PolynomialFeatures(2, interaction_only=True, include_bias=False),
                                       "normal"),
    "PowerTransformer": (preprocessing.PowerTransformer(), "normal"),
    "PowerTransformer_box_cox": (preprocessing.PowerTransformer("box-cox"), "positive"),
    "QuantileTransformer": (preprocessing.QuantileTransformer(n_quantiles=20), "normal"),
    "KBinsDiscretizer": (preprocessing.KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
                         "normal"),
    "KBinsDiscretizer_onehot": (preprocessing.KBinsDiscretizer(4, encode="onehot-dense",
                                                               quantile_method="averaged_inverted_cdf"), "normal"),
    "SplineTransformer": (preprocessing.SplineTransformer(4), "normal"),
    "FunctionTransformer": (preprocessing.FunctionTransformer(), "normal"),
    "SimpleImputer_mean": (impute.SimpleImputer(), "missing"),
    "SimpleImputer_median": (impute.SimpleImputer(strategy="median"), "missing"),
    "SimpleImputer_constant": (impute.SimpleImputer(strategy="constant", fill_value=-1), "missing"),
    "SimpleImputer_frequent": (impute.SimpleImputer(strategy="most_frequent"), "missing"),
    "KNNImputer": (impute.KNNImputer(n_neighbors=3), "missing"),
    "MissingIndicator": (impute.MissingIndicator(features="all"), "missing"), "PCA": (decomposition.PCA(3), "normal"),
    "PCA_whiten": (decomposition.PCA(3, whiten=True), "normal"),
    "IncrementalPCA": (decomposition.IncrementalPCA(3), "normal"),
    "KernelPCA": (decomposition.KernelPCA(3, kernel="rbf"), "normal"),
    "TruncatedSVD": (decomposition.TruncatedSVD(3, random_state=0), "normal"),
    "FastICA": (decomposition.FastICA(3, random_state=0), "normal"),
    "FactorAnalysis": (decomposition.FactorAnalysis(2), "normal"),
    "NMF": (decomposition.NMF(2, max_iter=50), "positive"),
    "Nystroem": (kernel_approximation.Nystroem(n_components=6, random_state=0), "normal"),
    "RBFSampler": (kernel_approximation.RBFSampler(n_components=6, random_state=0), "normal"),
    "GaussianRandomProjection": (random_projection.GaussianRandomProjection(3, random_state=0), "normal"),
    "VarianceThreshold": (feature_selection.VarianceThreshold(0.9), "normal"),
    "Pipeline_impute_scale": (lambda: pipe(impute.SimpleImputer(), preprocessing.MinMaxScaler(), decomposition.PCA(2)),
                              "missing"),
    "FeatureUnion": (lambda: pipeline.make_union(preprocessing.StandardScaler(), preprocessing.MinMaxScaler()),
                     "normal"),
}
SELECTORS = {
    "SelectKBest": feature_selection.SelectKBest(k=3),
    "SelectPercentile": feature_selection.SelectPercentile(percentile=60),
    "SelectFpr": feature_selection.SelectFpr(alpha=0.5), "SelectFdr": feature_selection.SelectFdr(alpha=0.5),
    "SelectFwe": feature_selection.SelectFwe(alpha=0.5),
    "GenericUnivariateSelect": feature_selection.GenericUnivariateSelect(mode="k_best", param=2),
    "SelectFromModel": feature_selection.SelectFromModel(tree.DecisionTreeClassifier(random_state=0)),
    "RFE": feature_selection.RFE(LINEAR(), n_features_to_select=2),
    "RFECV": feature_selection.RFECV(LINEAR()),
}
OUTLIERS = {
    "IsolationForest": ensemble.IsolationForest(n_estimators=20, random_state=0), "OneClassSVM": svm.OneClassSVM(),
    "SGDOneClassSVM": linear_model.SGDOneClassSVM(random_state=0),
    "LocalOutlierFactor": neighbors.LocalOutlierFactor(novelty=True),
    "EllipticEnvelope": lambda: __import__("sklearn.covariance").covariance.EllipticEnvelope(random_state=0),
}
CLUSTERS = {
    "KMeans": cluster.KMeans(4, n_init=1, random_state=0),
    "MiniBatchKMeans": cluster.MiniBatchKMeans(4, n_init=1, random_state=0),
    "GaussianMixture": mixture.GaussianMixture(3, random_state=0),
    "GaussianMixture_diagonal": mixture.GaussianMixture(3, covariance_type="diag", random_state=0),
    "GaussianMixture_tied": mixture.GaussianMixture(3, covariance_type="tied", random_state=0),
    "GaussianMixture_spherical": mixture.GaussianMixture(3, covariance_type="spherical", random_state=0),
    "BayesianGaussianMixture": mixture.BayesianGaussianMixture(n_components=3, random_state=0),
}
GAUSSIAN = gaussian_process.kernels
GAUSSIAN_REGRESSORS = {
    "rbf": GAUSSIAN.RBF(), "matern": GAUSSIAN.Matern(nu=1.5), "sum": GAUSSIAN.RBF() + GAUSSIAN.WhiteKernel(0.1),
    "product": GAUSSIAN.ConstantKernel(2.0) * GAUSSIAN.RBF(2.0),
    "dot": GAUSSIAN.DotProduct() + GAUSSIAN.WhiteKernel(0.1),
    "rational": GAUSSIAN.RationalQuadratic() + GAUSSIAN.WhiteKernel(0.1)
}


def transformed(model, x):
    return [model.transform(x)]


def estimators():
    for name, model in REGRESSORS.items():
        yield Estimator(name, model, "number")
    for name, model in COUNT_REGRESSORS.items():
        yield Estimator(name, model, "positive")
    for name, model in MANY_REGRESSORS.items():
        yield Estimator(name, model, "numbers")
    for name, model in CLASSIFIERS.items():
        yield Estimator(name, model, "classes3")
        if "Pipeline" not in name:
            yield Estimator(name + "_binary", model, "classes2")
    for name, (model, data) in COUNT_CLASSIFIERS.items():
        yield Estimator(name, model, "classes3", data)
    for name in ("LogisticRegression", "RandomForestClassifier", "SVC", "KNeighborsClassifier", "GaussianNB"):
        yield Estimator(name + "_texts", CLASSIFIERS[name], "texts")
    for name in ("LogisticRegression", "RandomForestClassifier", "GradientBoostingClassifier"):
        yield Estimator(name + "_zipmap", CLASSIFIERS[name], "texts", options={"zipmap": True}, own=zipped)
        yield Estimator(name + "_double", CLASSIFIERS[name], "classes3", double=True)
    for name in ("MultiOutputClassifier",):
        yield Estimator(name, lambda: multioutput.MultiOutputClassifier(LINEAR()), "many_labels",
                        options={"zipmap": False}, own=lambda m, x: [m.predict(x)])
    yield Estimator("DecisionTreeClassifier_leaves", CLASSIFIERS["DecisionTreeClassifier"], "classes3",
                    options={"zipmap": False, "decision_leaf": True})
    yield Estimator("RandomForestClassifier_multilabel", CLASSIFIERS["RandomForestClassifier"], "many_labels",
                    own=lambda m, x: [m.predict(x)])
    yield Estimator("KNeighborsClassifier_multilabel", neighbors.KNeighborsClassifier(), "many_labels", own=lambda m,
                    x: [m.predict(x)])
    for name, (model, data) in TRANSFORMERS.items():
        yield Estimator(name, model, None, data, own=transformed)
    for name, model in SELECTORS.items():
        yield Estimator(name, model, "classes3", own=transformed, options={})
    for name, model in OUTLIERS.items():
        yield Estimator(name, model, opset={"": 18, "ai.onnx.ml": 3})
    for name, model in CLUSTERS.items():
        yield Estimator(name, model, options={})
    for name, kernel in GAUSSIAN_REGRESSORS.items():
        yield Estimator(f"GaussianProcessRegressor_{name}",
                        gaussian_process.GaussianProcessRegressor(kernel, alpha=1e-2),
                        "number", double=True, own_tolerance=1e4)
    yield Estimator("GaussianProcessClassifier",
                    gaussian_process.GaussianProcessClassifier(GAUSSIAN.RBF(), max_iter_predict=20), "classes2",
                    double=True, own_tolerance=1e6)
    for opset in (9, 11, 12, 15, 18, 21):
        yield Estimator(f"RandomForestClassifier_opset{opset}", CLASSIFIERS["RandomForestClassifier"], "classes3",
                        opset=opset)
    for opset in (11, 15, 21):
        yield Estimator(f"Pipeline_scaled_logistic_opset{opset}", CLASSIFIERS["Pipeline_scaled_logistic"], "classes3",
                        opset=opset)


def zipped(model, x):
    return [model.predict(x), [dict(zip(model.classes_, row.astype(np.float32))) for row in model.predict_proba(x)]]


# ---- text and categories ----

TEXTS = np.array([["the quick brown fox"], ["jumps over the lazy dog"], ["a quick dog jumps"], ["the dog and the fox"],
                  ["lazy lazy fox"], ["nothing of that"]])
PLACES = np.array([["north", "red"], ["south", "blue"], ["east", "red"], ["west", "green"], ["north", "blue"],
                   ["south", "red"]], dtype=object)
LEVELS = np.random.default_rng(5).integers(0, 4, (60, 3))


class Typed:
    """A transformer of texts or whole numbers."""

    def __init__(self, name, model, data, kind, options=None, fit=None):
        self.name, self.model, self.data, self.kind, self.options, self.fit = name, model, data, kind, options, fit

    def row(self):
        return common.Row("skl2onnx", self.name, self.run)

    def run(self, folder):
        flat = isinstance(self.model, (feature_extraction.text.CountVectorizer,
                                       feature_extraction.text.HashingVectorizer, preprocessing.LabelEncoder,
                                       preprocessing.LabelBinarizer))
        data = self.data.ravel() if flat else self.data
        self.model.fit(data)
        shape = [None] if flat and self.kind is not StringTensorType else [None, self.data.shape[1]]
        made = common.convert(to_onnx, self.model, [("X", self.kind(shape))], self.options)
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as to:
            to.write(made.SerializeToString())
        own = self.model.transform(data)
        own = own.toarray() if hasattr(own, "toarray") else own
        feed = data if flat and self.kind is not StringTensorType else self.data
        return common.check(path, {"X": feed}, common.alike([own], path))


def typed():
    text = feature_extraction.text
    for name, model in {
            "CountVectorizer": text.CountVectorizer(),
            "CountVectorizer_bigrams": text.CountVectorizer(ngram_range=(1, 2)),
            "CountVectorizer_binary": text.CountVectorizer(binary=True),
            "CountVectorizer_chars": text.CountVectorizer(analyzer="char", ngram_range=(2, 3)),
            "CountVectorizer_stop": text.CountVectorizer(stop_words=["the", "a"]),
            "TfidfVectorizer": text.TfidfVectorizer(),
            "TfidfVectorizer_bigrams": text.TfidfVectorizer(ngram_range=(1, 2), norm="l1"),
            "TfidfVectorizer_sublinear": text.TfidfVectorizer(sublinear_tf=True),
            "TfidfVectorizer_no_idf": text.TfidfVectorizer(use_idf=False)}.items():
        yield Typed(name, model, TEXTS, StringTensorType, {"locale": "C"})  # the one every system has
    yield Typed("OneHotEncoder", preprocessing.OneHotEncoder(sparse_output=False), PLACES, StringTensorType)
    yield Typed("OneHotEncoder_ignore", preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                PLACES, StringTensorType)
    yield Typed("OneHotEncoder_drop", preprocessing.OneHotEncoder(drop="first", sparse_output=False), PLACES,
                StringTensorType)
    yield Typed("OneHotEncoder_numbers", preprocessing.OneHotEncoder(sparse_output=False), LEVELS, Int64TensorType)
    yield Typed("OrdinalEncoder", preprocessing.OrdinalEncoder(), PLACES, StringTensorType)
    yield Typed("OrdinalEncoder_numbers", preprocessing.OrdinalEncoder(), LEVELS, Int64TensorType)
    yield Typed("LabelEncoder", preprocessing.LabelEncoder(), PLACES[:, :1], StringTensorType)
    yield Typed("LabelBinarizer", preprocessing.LabelBinarizer(), LEVELS[:, :1], Int64TensorType)
    yield Typed("SimpleImputer_texts", impute.SimpleImputer(strategy="most_frequent", missing_values=""), PLACES,
                StringTensorType)


class Columns:
    """A table of numbers and texts, each column an input of its own, through a ColumnTransformer."""

    def __init__(self, name, model, tolerance=1.0):
        self.name, self.model = name, model

    def row(self):
        return common.Row("skl2onnx", self.name, self.run)

    def run(self, folder):
        import pandas
        random = np.random.default_rng(6)
        frame = pandas.DataFrame({"age": random.integers(18, 80, COUNT).astype(np.float32),
                                  "fare": random.exponential(30, COUNT).astype(np.float32),
                                  "sex": random.choice(["m", "f"], COUNT),
                                  "port": random.choice(["S", "C", "Q"], COUNT)})
        y = ((frame.age > 40) ^ (frame.sex == "f")).astype(int)
        model = self.model()
        model.fit(frame, y)
        kinds = [(name, FloatTensorType([None, 1]) if name in ("age",
                                                               "fare") else StringTensorType([None,
                                                                      1])) for name in frame.columns]
        made = common.convert(to_onnx, model, kinds)
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as to:
            to.write(made.SerializeToString())
        feeds = {name: frame[[name]].to_numpy(np.float32 if name in ("age",
                                                                     "fare") else object) for name in frame.columns}
        own = own_results(model, frame)
        return common.check(path, feeds, common.alike([o.toarray() if hasattr(o, "toarray") else o for o in own], path))


def columns():
    def mixed(rest="drop"):
        return compose.ColumnTransformer([("n", pipe(impute.SimpleImputer(), preprocessing.StandardScaler()),
                                           ["age", "fare"]),
                                          ("c", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["sex", "port"])],
                                          remainder=rest)
    yield Columns("ColumnTransformer", mixed)
    yield Columns("ColumnTransformer_logistic", lambda: pipe(mixed(), LINEAR()))
    yield Columns("ColumnTransformer_forest",
                  lambda: pipe(mixed(), ensemble.RandomForestClassifier(8, max_depth=5, random_state=0)))
    yield Columns("ColumnTransformer_boosting",
                  lambda: pipe(mixed(), ensemble.GradientBoostingClassifier(n_estimators=6, random_state=0)))
    yield Columns("ColumnTransformer_ordinal",
                  lambda: pipe(compose.ColumnTransformer([("n", "passthrough", ["age", "fare"]),
                                                          ("c", preprocessing.OrdinalEncoder(), ["sex", "port"])]),
                                                           tree.DecisionTreeClassifier(max_depth=4)))


if __name__ == "__main__":
    common.main([row.row() for part in (estimators(), typed(), columns()) for row in part],
                {"scikit-learn": sklearn.__version__, "skl2onnx": skl2onnx.__version__})
