"""XGBoost and LightGBM by onnxmltools: against ONNX Runtime and their own predictions."""
# SPDX-License-Identifier: Apache-2.0
import os
import warnings

import lightgbm
import numpy as np
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

import common

warnings.filterwarnings("ignore")
COUNT, WIDTH = 200, 6


def rows(seed=0, missing=False, categories=False):
    random = np.random.default_rng(seed)
    x = random.standard_normal((COUNT, WIDTH)).astype(np.float32)
    if categories:
        x[:, 0] = random.integers(0, 5, COUNT)
        x[:, 1] = random.integers(0, 12, COUNT)
    if missing:
        x[random.random(x.shape) < 0.2] = np.nan
    return x


def truth(x, kind):
    y = np.nan_to_num(x) @ np.linspace(-1, 1, WIDTH) + np.sin(2 * np.nan_to_num(x[:, 0]))
    if kind == "numbers":
        return np.stack([y, x[:, 1] - y], 1)
    if kind in ("positive", "counts"):
        return np.round(np.exp(y / 3)) if kind == "counts" else np.exp(y / 3)
    if kind == "unit":
        return 1 / (1 + np.exp(-y))
    if isinstance(kind, int):
        return np.digitize(y, np.quantile(y, np.linspace(0, 1, kind + 1)[1:-1]))
    return y


class Booster:
    """target: a number of classes, or what kind of number is learned."""

    def __init__(self, converter, name, model, target="number", *, missing=False, categories=False, rank=False,
                 fit=None,
                 own=None, tolerance=4.0, raw=None):
        self.converter, self.name, self.model, self.target, self.rank = converter, name, model, target, rank
        self.missing, self.categories, self.fit = missing, categories, fit or {}
        self.own, self.tolerance, self.raw = own, tolerance, raw

    def row(self):
        return common.Row(self.converter, self.name, self.run)

    def run(self, folder):
        x = rows(0, self.missing, self.categories)
        model = self.model()
        y = truth(x, self.target)
        groups = {"group": [20] * (COUNT // 20)} if self.rank else {}
        if self.rank:
            y = truth(x, 4)
        model.fit(x, y, **groups, **self.fit)
        fresh = rows(1, self.missing, self.categories)[:50]
        convert = onnxmltools.convert_xgboost if self.converter == "xgboost" else onnxmltools.convert_lightgbm
        subject = self.raw(model) if self.raw else model
        options = {} if self.converter == "xgboost" else {"zipmap": False}
        made = common.convert(convert, subject, initial_types=[("X", FloatTensorType([None, WIDTH]))], **options)
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as to:
            to.write(made.SerializeToString())
        own = self.own(model, fresh) if self.own else [model.predict(fresh)]
        if not self.own and isinstance(self.target, int) and not self.rank:
            own.append(model.predict_proba(fresh))
        return common.check(path, {"X": fresh}, common.alike(own, path), own_loosen=self.tolerance)


def xgb(name, make, **named):
    named_model = {k: named.pop(k) for k in list(named) if k not in ("target", "missing", "categories", "rank", "fit",
                                                                     "own", "tolerance", "raw")}
    return Booster("xgboost", name,
                   lambda: make(**{"n_estimators": 8, "max_depth": 4, "n_jobs": 1, "random_state": 0, **named_model}),
                   **named)


def lgb(name, make, **named):
    named_model = {k: named.pop(k) for k in list(named) if k not in ("target", "missing", "categories", "rank", "fit",
                                                                     "own", "tolerance", "raw")}
    return Booster("lightgbm", name,
                   lambda: make(**{"n_estimators": 8, "num_leaves": 12, "n_jobs": 1, "random_state": 0, "verbose": -1,
                                                     "min_child_samples": 5, **named_model}), **named)


X, XC, XR = xgboost.XGBRegressor, xgboost.XGBClassifier, xgboost.XGBRanker
L, LC, LR = lightgbm.LGBMRegressor, lightgbm.LGBMClassifier, lightgbm.LGBMRanker
BOOSTERS = [
    xgb("regressor", X), xgb("regressor_deep", X, max_depth=10, n_estimators=30),
    xgb("regressor_stump", X, max_depth=1),
    xgb("regressor_missing", X, missing=True), xgb("regressor_base_score", X, base_score=0.7),
    xgb("regressor_exact", X, tree_method="exact"),
    xgb("regressor_lossguide", X, grow_policy="lossguide", max_leaves=10),
    xgb("regressor_subsample", X, subsample=0.6, colsample_bytree=0.6),
    xgb("regressor_constrained", X, monotone_constraints=(0, 0, 0, 1, 1, 1)),
    xgb("regressor_dart", X, booster="dart", rate_drop=0.3),
    xgb("regressor_linear", X, booster="gblinear", max_depth=None), xgb("regressor_forest", xgboost.XGBRFRegressor),
    xgb("regressor_absolute", X, objective="reg:absoluteerror"),
    xgb("regressor_huber", X, objective="reg:pseudohubererror"),
    xgb("regressor_quantile", X, objective="reg:quantileerror", quantile_alpha=0.3),
    xgb("regressor_logistic", X, objective="reg:logistic", target="unit"),
    xgb("regressor_gamma", X, objective="reg:gamma", target="positive"),
    xgb("regressor_tweedie", X, objective="reg:tweedie", target="positive"),
    xgb("regressor_squaredlog", X, objective="reg:squaredlogerror", target="positive"),
    xgb("regressor_poisson", X, objective="count:poisson", target="counts"),
    xgb("regressor_two_outputs", X, target="numbers"),
    xgb("regressor_vector_leaves", X, target="numbers", multi_strategy="multi_output_tree"),
    xgb("regressor_categories", X, categories=True, feature_types=["c", "c"] + ["q"] * 4, enable_categorical=True),
    xgb("regressor_early_stop", X, n_estimators=40, early_stopping_rounds=2,
        fit={"eval_set": [(rows(3), truth(rows(3), "number"))], "verbose": False}),
    xgb("regressor_booster", X, raw=lambda m: m.get_booster()),
    xgb("binary", XC, target=2), xgb("binary_missing", XC, target=2, missing=True),
    xgb("binary_dart", XC, target=2, booster="dart", rate_drop=0.3),
    xgb("binary_weighted", XC, target=2, scale_pos_weight=3.0),
    xgb("binary_linear", XC, target=2, booster="gblinear", max_depth=None),
    xgb("binary_hinge", XC, target=2, objective="binary:hinge"),
    xgb("binary_logitraw", XC, target=2, objective="binary:logitraw"),
    xgb("binary_forest", xgboost.XGBRFClassifier, target=2), xgb("binary_base_score", XC, target=2, base_score=0.2),
    xgb("classes3", XC, target=3), xgb("classes3_missing", XC, target=3, missing=True),
    xgb("classes3_dart", XC, target=3, booster="dart", rate_drop=0.3),
    xgb("classes3_softmax", XC, target=3, objective="multi:softmax"),
    xgb("classes5_deep", XC, target=5, max_depth=8, n_estimators=20),
    xgb("classes3_forest", xgboost.XGBRFClassifier, target=3),
    xgb("classes3_linear", XC, target=3, booster="gblinear", max_depth=None),
    xgb("ranker_pairwise", XR, rank=True, objective="rank:pairwise"),
    xgb("ranker_ndcg", XR, rank=True, objective="rank:ndcg", raw=lambda m: m.get_booster()),
    xgb("ranker_topk", XR, rank=True, objective="rank:pairwise", lambdarank_pair_method="topk",
        raw=lambda m: m.get_booster()),
    lgb("regressor", L), lgb("regressor_deep", L, num_leaves=60, n_estimators=30, min_child_samples=2),
    lgb("regressor_missing", L, missing=True),
    lgb("regressor_zero_missing", L, zero_as_missing=True), lgb("regressor_no_missing", L, use_missing=False),
    lgb("regressor_dart", L, boosting_type="dart"),
    lgb("regressor_goss", L, data_sample_strategy="goss"),
    lgb("regressor_forest", L, boosting_type="rf", bagging_freq=1, bagging_fraction=0.7),
    lgb("regressor_bagging", L, subsample=0.7, subsample_freq=1),
    lgb("regressor_l1", L, objective="regression_l1"), lgb("regressor_huber", L, objective="huber"),
    lgb("regressor_fair", L, objective="fair"), lgb("regressor_quantile", L, objective="quantile", alpha=0.3),
    lgb("regressor_mape", L, objective="mape", target="positive"),
    lgb("regressor_poisson", L, objective="poisson", target="counts"),
    lgb("regressor_gamma", L, objective="gamma", target="positive"),
    lgb("regressor_tweedie", L, objective="tweedie", target="positive"),
    lgb("regressor_cross_entropy", L, objective="cross_entropy", target="unit"),
    lgb("regressor_categories", L, categories=True, fit={"categorical_feature": [0, 1]}),
    lgb("regressor_categories_missing", L, categories=True, missing=True, fit={"categorical_feature": [0, 1]}),
    lgb("regressor_linear_trees", L, linear_tree=True),
    lgb("regressor_constrained", L, monotone_constraints=[0, 0, 0, 1, 1, 1]),
    lgb("regressor_booster", L, raw=lambda m: m.booster_),
    lgb("regressor_extra_trees", L, extra_trees=True), lgb("regressor_sqrt", L, reg_sqrt=True, target="positive"),
    lgb("binary", LC, target=2), lgb("binary_missing", LC, target=2, missing=True),
    lgb("binary_dart", LC, target=2, boosting_type="dart"), lgb("binary_unbalanced", LC, target=2, is_unbalance=True),
    lgb("binary_categories", LC, target=2, categories=True, fit={"categorical_feature": [0, 1]}),
    lgb("binary_sigmoid", LC, target=2, sigmoid=2.0),
    lgb("binary_forest", LC, target=2, boosting_type="rf", bagging_freq=1, bagging_fraction=0.7),
    lgb("classes3", LC, target=3), lgb("classes3_missing", LC, target=3, missing=True),
    lgb("classes3_ova", LC, target=3, objective="multiclassova"),
    lgb("classes3_dart", LC, target=3, boosting_type="dart"),
    lgb("classes5_deep", LC, target=5, num_leaves=40, n_estimators=20),
    lgb("classes3_categories", LC, target=3, categories=True, fit={"categorical_feature": [0, 1]}),
    lgb("ranker", LR, rank=True), lgb("ranker_xendcg", LR, rank=True, objective="rank_xendcg"),
    lgb("ranker_dart", LR, rank=True, boosting_type="dart"),
]

if __name__ == "__main__":
    common.main([booster.row() for booster in BOOSTERS],
                {"xgboost": xgboost.__version__, "lightgbm": lightgbm.__version__,
                 "onnxmltools": onnxmltools.__version__})
