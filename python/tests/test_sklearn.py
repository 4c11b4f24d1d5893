"""Models of scikit-learn, LightGBM and XGBoost, exported to ONNX, against their own predictions."""

import numpy as np
import pytest

import tenon

pytest.importorskip("onnx")
pytest.importorskip("sklearn")
skl2onnx = pytest.importorskip("skl2onnx")
from sklearn import (  # noqa: E402
    cluster,
    datasets,
    decomposition,
    ensemble,
    feature_extraction,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

pytestmark = [pytest.mark.filterwarnings("ignore")]


def table(classes=2, rows=150):
    x, y = datasets.make_classification(
        rows, 6, n_informative=4, n_redundant=1, n_classes=classes, n_clusters_per_class=1, random_state=3
    )
    return x.astype("float32"), y


def run(estimator, x, **options):
    model = skl2onnx.to_onnx(estimator, x[:1], options=options or None)
    session = tenon.InferenceSession(model)
    return session.run(None, {session.get_inputs()[0].name: x})


CLASSIFIERS = [
    linear_model.LogisticRegression(),
    svm.SVC(probability=True, random_state=0),
    svm.SVC(kernel="poly", probability=True, random_state=0),
    tree.DecisionTreeClassifier(max_depth=5, random_state=0),
    ensemble.RandomForestClassifier(20, random_state=0),
    ensemble.ExtraTreesClassifier(20, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0),
    ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    ensemble.BaggingClassifier(n_estimators=5, random_state=0),
    neighbors.KNeighborsClassifier(3),
    naive_bayes.GaussianNB(),
    neural_network.MLPClassifier((16,), max_iter=50, random_state=0),
    pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
]


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: str(e).split("(")[0])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifier(estimator, classes):
    x, y = table(classes)
    estimator.fit(x, y * 10 + 1)
    labels, shares = run(estimator, x, zipmap=False)
    expected = estimator.predict_proba(x)
    # libsvm couples the probabilities of classes iteratively.
    np.testing.assert_allclose(shares, expected, atol=5e-3 if isinstance(estimator, svm.SVC) else 1e-4)
    sorted_shares = np.sort(expected, axis=1)
    clear = sorted_shares[:, -1] - sorted_shares[:, -2] > 1e-4
    np.testing.assert_array_equal(labels[clear], estimator.predict(x)[clear])


REGRESSORS = [
    linear_model.LinearRegression(),
    linear_model.Ridge(),
    svm.SVR(),
    svm.SVR(kernel="sigmoid"),
    tree.DecisionTreeRegressor(max_depth=5, random_state=0),
    ensemble.RandomForestRegressor(20, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=20, random_state=0),
    neighbors.KNeighborsRegressor(3),
]


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: str(e))
def test_regressor(estimator):
    x, _ = table()
    y = x[:, 0] * 2 - x[:, 1] * x[:, 2]
    estimator.fit(x, y)
    (found,) = run(estimator, x)
    np.testing.assert_allclose(found[:, 0], estimator.predict(x), rtol=1e-3, atol=1e-3)


def test_regressor_of_several_targets():
    x, _ = table()
    y = np.stack([x[:, 0], x[:, 1] * x[:, 2]], axis=1)
    for estimator in [linear_model.LinearRegression(), ensemble.RandomForestRegressor(10, random_state=0)]:
        estimator.fit(x, y)
        np.testing.assert_allclose(run(estimator, x)[0], estimator.predict(x), rtol=1e-3, atol=1e-3)


TRANSFORMERS = [
    pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2)),
    preprocessing.MinMaxScaler(),
    preprocessing.RobustScaler(),
    preprocessing.Normalizer("l2"),
    preprocessing.Normalizer("l1"),
    preprocessing.Binarizer(threshold=0.25),
    preprocessing.PolynomialFeatures(2),
]


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=lambda e: str(e).split("(")[0])
def test_transformer(estimator):
    x, _ = table()
    estimator.fit(x)
    np.testing.assert_allclose(run(estimator, x)[0], estimator.transform(x), rtol=1e-4, atol=1e-4)


def test_imputer():
    x, _ = table()
    x[::3, 1] = np.nan
    x[1::4, 4] = np.nan
    estimator = impute.SimpleImputer().fit(x)
    np.testing.assert_allclose(run(estimator, x)[0], estimator.transform(x), rtol=1e-4, atol=1e-4)


def test_encoders_of_integers():
    x = np.random.default_rng(0).integers(-4, 5, (50, 3))
    for estimator in [preprocessing.OneHotEncoder(sparse_output=False), preprocessing.OrdinalEncoder()]:
        estimator.fit(x)
        np.testing.assert_array_equal(run(estimator, x)[0], estimator.transform(x))


def test_clusters():
    x, _ = table()
    estimator = cluster.KMeans(3, n_init=2, random_state=0).fit(x)
    labels, distances = run(estimator, x)
    np.testing.assert_array_equal(labels, estimator.predict(x))
    np.testing.assert_allclose(distances, estimator.transform(x), rtol=1e-3, atol=1e-3)


def test_one_class_machine():
    x, _ = table()
    estimator = svm.OneClassSVM(nu=0.3).fit(x)
    labels, scores = run(estimator, x)
    expected = estimator.decision_function(x)
    np.testing.assert_allclose(np.ravel(scores), expected, atol=1e-3)
    clear = np.abs(expected) > 1e-3
    np.testing.assert_array_equal(np.ravel(labels)[clear], estimator.predict(x)[clear])


def test_probabilities_of_classes_with_names():
    x, y = table(3)
    names = np.array(["a", "b", "c"])
    estimator = ensemble.RandomForestClassifier(5, random_state=0).fit(x, names[y])
    model = skl2onnx.to_onnx(estimator, x[:1], options={"zipmap": False})
    labels, shares = tenon.InferenceSession(model).run(None, {model.graph.input[0].name: x})
    assert labels.tolist() == estimator.predict(x).tolist()
    np.testing.assert_allclose(shares, estimator.predict_proba(x), atol=1e-4)


# ---- maps from classes to probabilities, which skl2onnx makes unless it is told not to ----


@pytest.mark.parametrize("labels", [np.array([5, -2, 30]), np.array(["a", "b", "c"])], ids=["integers", "strings"])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: str(e).split("(")[0])
def test_probabilities_by_class(estimator, labels):
    onnxruntime = pytest.importorskip("onnxruntime")
    x, y = table(3)
    estimator.fit(x, labels[y])
    model = skl2onnx.to_onnx(estimator, x[:1])
    feed = {model.graph.input[0].name: x}
    found, shares = tenon.InferenceSession(model).run(None, feed)
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected, expected_shares = theirs.run(None, feed)
    assert type(shares) is list and len(shares) == len(x)
    for row, by_them, probabilities in zip(shares, expected_shares, estimator.predict_proba(x)):
        assert list(row) == list(by_them) == estimator.classes_.tolist()
        np.testing.assert_allclose(list(row.values()), list(by_them.values()), atol=1e-5)
        np.testing.assert_allclose(list(row.values()), probabilities, atol=5e-3)
    assert found.tolist() == expected.tolist()


def test_types_of_maps_are_those_of_onnx_runtime():
    onnxruntime = pytest.importorskip("onnxruntime")
    x, y = table(3)
    model = skl2onnx.to_onnx(linear_model.LogisticRegression().fit(x, y), x[:1])
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ours = tenon.InferenceSession(model)
    assert [o.type for o in ours.get_outputs()] == [o.type for o in theirs.get_outputs()]


def test_dict_vectorizer():
    from skl2onnx.common.data_types import DictionaryType, FloatTensorType, StringTensorType

    rows = [{"a": 1.0, "b": 2.0}, {"b": 3.0, "c": -1.0}, {"d": 5.0}, {}]
    vectorizer = feature_extraction.DictVectorizer(sparse=False).fit(rows[:2])
    key = StringTensorType([1])
    model = skl2onnx.convert_sklearn(vectorizer, initial_types=[("x", DictionaryType(key, FloatTensorType([1])))])
    session = tenon.InferenceSession(model)
    assert session.get_inputs()[0].type == "map(string,tensor(float))"
    for row in rows:
        (y,) = session.run(None, {"x": row})
        np.testing.assert_array_equal(y, vectorizer.transform([row]))


TEXTS = ["This is the first document, isn't it?", "The second-document: 3.14!", "Größe, Éclair", "", "a b cc dd"]
VECTORIZERS = [
    feature_extraction.text.CountVectorizer(),
    feature_extraction.text.CountVectorizer(token_pattern="[a-zA-Z]+"),
    feature_extraction.text.CountVectorizer(analyzer="char", ngram_range=(1, 2)),
    feature_extraction.text.TfidfVectorizer(),
    feature_extraction.text.TfidfVectorizer(lowercase=False, norm="l1"),
    feature_extraction.text.TfidfVectorizer(ngram_range=(1, 2), stop_words=["is", "the"]),
]


@pytest.mark.parametrize("separators", [None, [" ", "[.]", "\\?", ",", ":", "-"]])
@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=str)
def test_text_agrees_with_onnx_runtime(vectorizer, separators):
    """Its regular expressions of tokens are not quite scikit-learn's, so that it alone decides."""
    onnxruntime = pytest.importorskip("onnxruntime")
    from skl2onnx.common.data_types import StringTensorType

    model = pipeline.make_pipeline(vectorizer, linear_model.LogisticRegression()).fit(TEXTS, [0, 1, 0, 1, 1])
    options = {"locale": "C.UTF-8"} | ({"separators": separators} if separators and vectorizer.analyzer == "word" else {})
    made = skl2onnx.convert_sklearn(
        model,
        initial_types=[("x", StringTensorType([None, 1]))],
        options={type(vectorizer): options},
        target_opset=17,
    )
    x = np.array([*TEXTS, "second Größe??", "zz"], dtype=object).reshape(-1, 1)
    theirs = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows in (x, x[:1]):
        labels, probabilities = tenon.InferenceSession(made).run(None, {"x": rows})
        expected_labels, expected = theirs.run(None, {"x": rows})
        np.testing.assert_array_equal(labels, expected_labels)
        for ours, row in zip(probabilities, expected, strict=True):
            assert ours == pytest.approx(row, rel=1e-5)


# ---- gradient boosting by other libraries ----


def converted(convert, estimator, x, **options):
    from onnxmltools.convert.common.data_types import FloatTensorType

    kinds = [("x", FloatTensorType([None, x.shape[1]]))]
    session = tenon.InferenceSession(convert(estimator, initial_types=kinds, **options))
    return session.run(None, {"x": x})


def boosting(name):
    """The library and its converter."""
    tools = pytest.importorskip("onnxmltools")
    library = pytest.importorskip(name)
    return library, getattr(tools, f"convert_{name}")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_lightgbm_classifier(classes, missing):
    lightgbm, convert = boosting("lightgbm")
    x, y = table(classes)
    if missing:
        x[::5, 0] = x[::7, 3] = np.nan
    estimator = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=5, verbose=-1, random_state=0).fit(x, y)
    labels, shares = converted(convert, estimator, x, zipmap=False)
    np.testing.assert_allclose(shares, estimator.predict_proba(x), atol=1e-4)
    np.testing.assert_array_equal(labels, estimator.predict(x))


@pytest.mark.parametrize("objective", ["regression", "poisson"])
def test_lightgbm_regressor(objective):
    lightgbm, convert = boosting("lightgbm")
    x, _ = table()
    y = np.abs(x[:, 0] * 2 - x[:, 1])
    estimator = lightgbm.LGBMRegressor(n_estimators=10, objective=objective, verbose=-1, random_state=0).fit(x, y)
    (found,) = converted(convert, estimator, x)
    np.testing.assert_allclose(found[:, 0], estimator.predict(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_xgboost_classifier(classes, missing):
    xgboost, convert = boosting("xgboost")
    x, y = table(classes)
    if missing:
        x[::5, 0] = x[::7, 3] = np.nan
    estimator = xgboost.XGBClassifier(n_estimators=10, random_state=0).fit(x, y)
    labels, shares = converted(convert, estimator, x)
    np.testing.assert_allclose(shares, estimator.predict_proba(x), atol=1e-4)
    np.testing.assert_array_equal(labels, estimator.predict(x))


@pytest.mark.parametrize("objective", ["reg:squarederror", "count:poisson"])
def test_xgboost_regressor(objective):
    xgboost, convert = boosting("xgboost")
    x, _ = table()
    y = np.abs(x[:, 0] * 2 - x[:, 1])
    estimator = xgboost.XGBRegressor(n_estimators=10, objective=objective, random_state=0).fit(x, y)
    (found,) = converted(convert, estimator, x)
    np.testing.assert_allclose(np.ravel(found), estimator.predict(x), rtol=1e-3, atol=1e-4)
