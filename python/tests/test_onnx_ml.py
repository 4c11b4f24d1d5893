"""Operators of ai.onnx.ml, with a symbolic number of rows, against ONNX Runtime's results.

Where ONNX Runtime contradicts ONNX, or has no kernel, against ONNX's reference or a formula.
"""

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

POSTS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


@pytest.fixture
def random():
    return np.random.default_rng(7)


def model_of(op, inputs, outputs=(("y", "float32"),), version=3, constants=(), **attributes):
    """A model of one node. `inputs` are arrays; their first size, or that of rows, is symbolic."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)

    def info(name, x):
        dims = list(x.shape)
        if x.ndim > 1:
            dims[0] = "rows"
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), dims)

    graph = helper.make_graph(
        [node],
        "g",
        [info(name, x) for i, (name, x) in enumerate(zip(names, inputs)) if i not in constants],
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)
            for name, dtype in outputs
            if name
        ],
        [numpy_helper.from_array(x, name) for i, (name, x) in enumerate(zip(names, inputs)) if i in constants],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model, {name: x for i, (name, x) in enumerate(zip(names, inputs)) if i not in constants}


def theirs(model, inputs):
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def assert_close(found, expected, tolerance=2e-5):
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(x, y)


def tolerance_of(post):
    """ONNX Runtime's PROBIT is a difference of near floats where scores are near 1/2."""
    return 2e-3 if post == "PROBIT" else 2e-5


def ours(op, *inputs, **rest):
    model, feeds = model_of(op, inputs, **rest)
    return tenon.InferenceSession(model).run(None, feeds)


def check(op, *inputs, tolerance=2e-5, **rest):
    """For all rows, one, and none of them."""
    model, feeds = model_of(op, inputs, **rest)
    session = tenon.InferenceSession(model)
    assert_close(session.run(None, feeds), theirs(model, feeds), tolerance)
    if inputs[0].ndim > 1:
        one = {name: x[:1] for name, x in feeds.items()}
        assert_close(session.run(None, one), theirs(model, one), tolerance)
        for x in session.run(None, {name: x[:0] for name, x in feeds.items()}):
            assert x.shape[0] == 0


def refusal(op, *inputs, **rest):
    model, _ = model_of(op, inputs, **rest)
    with pytest.raises(tenon.Error) as caught:
        tenon.InferenceSession(model)
    return str(caught.value)


LABELS = (("label", "int64"), ("scores", "float32"))


# ---- ensembles of trees ----


def forest(random, trees=5, depth=4, features=4, modes=("BRANCH_LEQ",), missing=False, integers=False):
    """The attributes of nodes of random trees, and the tree and number of each leaf. Nodes of a tree are in random
    order, but for the root."""
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]
    nodes = {name: [] for name in names}
    tracks, leaves = [], []
    for tree in range(trees):
        rows = []

        def grow(level):
            number = len(rows)
            rows.append(None)
            is_leaf = level == depth or (level > 0 and random.random() < 0.2)
            if is_leaf:
                leaves.append((tree, number))
                rows[number] = (tree, number, 0, 0.0, "LEAF", 0, 0)
            else:
                split = random.integers(-2, 3) if integers else random.normal()
                mode = modes[random.integers(len(modes))]
                yes = grow(level + 1)
                no = grow(level + 1)
                rows[number] = (tree, number, int(random.integers(features)), float(split), mode, yes, no)
            return number

        grow(0)
        order = [0, *(1 + random.permutation(len(rows) - 1))]
        for i in order:
            for name, value in zip(nodes, rows[i]):
                nodes[name].append(value)
            tracks.append(int(random.integers(2)))
    attributes = {f"nodes_{name}": values for name, values in nodes.items()}
    if missing:
        attributes["nodes_missing_value_tracks_true"] = tracks
    return attributes, leaves


def weights_of(random, leaves, ids, what, all_ids=True, low=-1.0, base=None):
    """The attributes of the leaves' weights: each leaf has one for each id, or for one of them."""
    chosen = [(t, n, i) for t, n in leaves for i in (ids if all_ids else [ids[random.integers(len(ids))]])]
    attributes = {
        f"{what}_treeids": [t for t, _, _ in chosen],
        f"{what}_nodeids": [n for _, n, _ in chosen],
        f"{what}_ids": [i for _, _, i in chosen],
        f"{what}_weights": [float(w) for w in random.uniform(low, 1, len(chosen))],
    }
    if base is not None:
        attributes["base_values"] = base
    return attributes


def rows_of(random, rows=33, features=4, dtype="float32", nan=False, integers=False):
    x = random.normal(size=(rows, features)) * 2
    x = np.round(x) if integers or np.dtype(dtype).kind == "i" else x
    if nan:
        x[random.random(x.shape) < 0.3] = np.nan
    return x.astype(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [False, True])
def test_tree_modes(random, mode, missing):
    nodes, leaves = forest(random, modes=[mode], missing=missing, integers=True)
    weights = weights_of(random, leaves, [0], "target")
    check("TreeEnsembleRegressor", rows_of(random, nan=True, integers=True), n_targets=1, **nodes, **weights)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_trees_of_mixed_modes(random, dtype):
    nodes, leaves = forest(random, trees=8, modes=MODES, missing=True, integers=True)
    weights = weights_of(random, leaves, [0], "target", base=[0.5])
    x = rows_of(random, 200, dtype=dtype, integers=True, nan=dtype.startswith("f"))
    if dtype.startswith("f"):
        check("TreeEnsembleRegressor", x, n_targets=1, **nodes, **weights)
    else:  # which ONNX Runtime has no kernel for
        found = ours("TreeEnsembleRegressor", x, n_targets=1, **nodes, **weights)
        assert_close(found, ours("TreeEnsembleRegressor", x.astype("float32"), n_targets=1, **nodes, **weights))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets, base", [(1, None), (1, [0.25]), (3, None), (3, [0.5, -1.0, 2.0])])
@pytest.mark.parametrize("version", [1, 3])
def test_tree_regressor_aggregates(random, aggregate, targets, base, version):
    nodes, leaves = forest(random)
    # Without base values, trees may leave targets out: ONNX Runtime doesn't add base values to those.
    weights = weights_of(random, leaves, list(range(targets)), "target", all_ids=base is not None, base=base)
    check("TreeEnsembleRegressor", rows_of(random), version=version, n_targets=targets,
          aggregate_function=aggregate, **nodes, **weights)  # fmt: skip


def test_tree_regressor_adds_base_values_to_targets_without_weights(random):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [1], "target")
    x = rows_of(random)
    (plain,) = ours("TreeEnsembleRegressor", x, n_targets=3, **nodes, **weights)
    (y,) = ours("TreeEnsembleRegressor", x, n_targets=3, base_values=[1.0, 2.0, 3.0], **nodes, **weights)
    np.testing.assert_allclose(y, plain + np.float32([1, 2, 3]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("post", POSTS)
def test_tree_regressor_transforms(random, post):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [0, 1, 2], "target", low=0, base=[0.0, 0.01, 0.02])
    weights["target_weights"] = [w / 6 for w in weights["target_weights"]]
    check("TreeEnsembleRegressor", rows_of(random), n_targets=3, post_transform=post, **nodes, **weights,
          tolerance=tolerance_of(post))  # fmt: skip


def test_tree_regressor_probit_of_one_target(random):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [0], "target", low=0.1)
    weights["target_weights"] = [w / 6 for w in weights["target_weights"]]
    rest = dict(n_targets=1, **nodes, **weights)
    check("TreeEnsembleRegressor", rows_of(random), post_transform="PROBIT", **rest, tolerance=tolerance_of("PROBIT"))
    message = refusal("TreeEnsembleRegressor", rows_of(random), post_transform="LOGISTIC", **rest)
    assert "post_transform=LOGISTIC of one score not implemented" in message


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tree_regressor_of_double_tensors(random, dtype):
    nodes, leaves = forest(random, missing=True)
    weights = weights_of(random, leaves, [0, 1], "target")
    for name in ["nodes_values", "target_weights"]:
        values = np.array((nodes if name in nodes else weights).pop(name), "float64") * (1 + 1e-12)
        weights[f"{name}_as_tensor"] = numpy_helper.from_array(values, name)
    weights["base_values_as_tensor"] = numpy_helper.from_array(np.array([0.1, 0.2]), "base")
    nodes["nodes_hitrates_as_tensor"] = numpy_helper.from_array(np.ones(3), "rates")
    x = rows_of(random, nan=True, dtype="float64")
    rest = dict(n_targets=2, **nodes, **weights)
    if dtype == "float64":
        check("TreeEnsembleRegressor", x, **rest, tolerance=1e-6)
    else:
        expected = ours("TreeEnsembleRegressor", x.astype("float32").astype("float64"), **rest)
        assert_close(ours("TreeEnsembleRegressor", x.astype("float32"), **rest), expected)


def test_trees_of_doubles_compare_doubles(random):
    near = 1 + 1e-12
    nodes = dict(nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_truenodeids=[1, 0, 0],
                 nodes_falsenodeids=[2, 0, 0], nodes_modes=["BRANCH_LT", "LEAF", "LEAF"],
                 nodes_values_as_tensor=numpy_helper.from_array(np.array([near, 0, 0]), "v"))  # fmt: skip
    weights = dict(target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0],
                   target_weights_as_tensor=numpy_helper.from_array(np.array([1.0, 2.0]), "w"))  # fmt: skip
    x = np.array([[1.0], [near], [1 + 2e-12]])
    (y,) = ours("TreeEnsembleRegressor", x, n_targets=1, **nodes, **weights)
    np.testing.assert_array_equal(y, [[1], [2], [2]])


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("base", [None, [0.1, -0.2, 0.3]])
def test_tree_classifier_of_three_classes(random, post, dtype, base):
    nodes, leaves = forest(random, missing=True)
    weights = weights_of(random, leaves, [0, 1, 2], "class", low=0 if post == "PROBIT" else -1, base=base)
    if post == "PROBIT":
        weights["class_weights"] = [w / 6 for w in weights["class_weights"]]
        weights["base_values"] = [0.0, 0.01, 0.02]
    x = rows_of(random, dtype=dtype, nan=dtype.startswith("f"))
    check("TreeEnsembleClassifier", x, outputs=LABELS, classlabels_int64s=[7, -3, 5], post_transform=post,
          **nodes, **weights, tolerance=tolerance_of(post))  # fmt: skip


@pytest.mark.parametrize("post", POSTS[:4])
@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("which, base", [(0, None), (0, [0.2]), (1, None)])
def test_tree_classifier_of_two_classes_of_which_one_has_weights(random, post, low, which, base):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [which], "class", low=low, base=base)
    weights["class_weights"] = [w / 5 for w in weights["class_weights"]]
    check("TreeEnsembleClassifier", rows_of(random, 100), outputs=LABELS, classlabels_int64s=[4, 9],
          post_transform=post, **nodes, **weights)  # fmt: skip


@pytest.mark.parametrize("post", POSTS[:4])
def test_tree_classifier_of_two_classes(random, post):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [0, 1], "class")
    rest = dict(outputs=LABELS, post_transform=post, classlabels_int64s=[0, 1], **nodes, **weights)
    model, feeds = model_of("TreeEnsembleClassifier", [rows_of(random, 100)], **rest)
    labels, scores = tenon.InferenceSession(model).run(None, feeds)
    assert_close([scores], theirs(model, feeds)[1:])
    # ONNX Runtime has label 1 wherever the second score is above 0; ONNX says it is the top class.
    _, raw = ours("TreeEnsembleClassifier", feeds["x0"], **{**rest, "post_transform": "NONE"})
    np.testing.assert_array_equal(labels, raw.argmax(axis=1))


def test_tree_classifier_adds_base_values_to_both_classes(random):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [0, 1], "class")
    x = rows_of(random)
    rest = dict(outputs=LABELS, classlabels_int64s=[0, 1], **nodes, **weights)
    _, plain = ours("TreeEnsembleClassifier", x, **rest)
    labels, scores = ours("TreeEnsembleClassifier", x, base_values=[0.5, -0.25], **rest)
    np.testing.assert_allclose(scores, plain + np.float32([0.5, -0.25]), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(labels, scores.argmax(axis=1))


@pytest.mark.parametrize("post, base", [("NONE", None), ("NONE", [0.1]), ("PROBIT", None)])
def test_tree_classifier_of_one_class(random, post, base):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [0], "class", low=0 if post == "PROBIT" else -1, base=base)
    if post == "PROBIT":
        weights["class_weights"] = [w / 6 for w in weights["class_weights"]]
    check("TreeEnsembleClassifier", rows_of(random), outputs=LABELS, classlabels_int64s=[1], post_transform=post,
          **nodes, **weights, tolerance=tolerance_of(post))  # fmt: skip


def test_tree_classifier_with_names_of_classes(random):
    nodes, leaves = forest(random)
    weights = weights_of(random, leaves, [0, 1, 2], "class")
    x = rows_of(random)
    rest = dict(**nodes, **weights, classlabels_strings=["a", "b", "c"])
    labels, scores = ours("TreeEnsembleClassifier", x, outputs=LABELS, **rest)
    numbers, expected = ours(
        "TreeEnsembleClassifier", x, outputs=LABELS, **nodes, **weights, classlabels_int64s=[0, 1, 2]
    )
    assert labels.tolist() == [["a", "b", "c"][i] for i in numbers]
    assert_close([scores], [expected])


def test_many_rows_use_several_threads(random):
    nodes, leaves = forest(random, trees=40, depth=6)
    weights = weights_of(random, leaves, [0, 1], "target")
    check("TreeEnsembleRegressor", rows_of(random, 5000), n_targets=2, **nodes, **weights, tolerance=1e-4)


def ensemble(random, trees=4, depth=4, features=4, modes=range(6), targets=2, dtype="float32", members=False):
    """The attributes of TreeEnsemble."""
    nodes = {name: [] for name in ["featureids", "truenodeids", "trueleafs", "falsenodeids", "falseleafs"]}
    splits, kinds, targets_of, roots, tracks, values = [], [], [], [], [], []

    def leaf():
        targets_of.append(int(random.integers(targets)))
        return len(targets_of) - 1, 1

    def grow(level):
        place = len(splits)
        splits.append(float(random.integers(-2, 3)))
        kind = 6 if members and random.random() < 0.5 else int(random.choice(list(modes)))
        kinds.append(kind)
        if kind == 6:
            values.extend([*random.choice([-2, -1, 1, 2], random.integers(1, 4)), np.nan])  # the reference stops at 0
        tracks.append(int(random.integers(2)))
        for entries in nodes.values():
            entries.append(None)
        nodes["featureids"][place] = int(random.integers(features))
        for side in ["true", "false"]:
            child = (grow(level + 1), 0) if level + 1 < depth and random.random() < 0.8 else leaf()
            nodes[f"{side}nodeids"][place], nodes[f"{side}leafs"][place] = child
        return place

    for _ in range(trees):
        roots.append(grow(0))
    attributes = {f"nodes_{name}": entries for name, entries in nodes.items()}
    attributes |= {
        "nodes_splits": numpy_helper.from_array(np.array(splits, dtype), "splits"),
        "nodes_modes": numpy_helper.from_array(np.array(kinds, "uint8"), "modes"),
        "nodes_missing_value_tracks_true": tracks,
        "leaf_targetids": targets_of,
        "leaf_weights": numpy_helper.from_array(random.uniform(0, 0.2, len(targets_of)).astype(dtype), "weights"),
        "tree_roots": roots,
        "n_targets": targets,
    }
    if members:
        attributes["membership_values"] = numpy_helper.from_array(np.array(values, dtype), "members")
    return attributes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize("aggregate", range(4))
def test_tree_ensemble(random, dtype, members, aggregate):
    attributes = ensemble(random, dtype=dtype, members=members)
    x = rows_of(random, 100, dtype=dtype, integers=True, nan=not members)
    check("TreeEnsemble", x, outputs=(("y", dtype),), version=5, aggregate_function=aggregate, **attributes)


def test_tree_ensemble_with_members_and_missing_values(random):
    attributes = ensemble(random, members=True)
    x = rows_of(random, 100, integers=True, nan=True)
    model, feeds = model_of("TreeEnsemble", [x], version=5, **attributes)
    reference = pytest.importorskip("onnx.reference").ReferenceEvaluator(model)
    assert_close(tenon.InferenceSession(model).run(None, feeds), reference.run(None, feeds))


def test_tree_ensemble_of_half_floats(random):
    attributes = ensemble(random, dtype="float16")
    x = rows_of(random, 50, dtype="float16", integers=True)
    (y,) = ours("TreeEnsemble", x, outputs=(("y", "float16"),), version=5, **attributes)
    for name in ["nodes_splits", "leaf_weights"]:
        attributes[name] = numpy_helper.from_array(numpy_helper.to_array(attributes[name]).astype("float32"), name)
    (expected,) = ours("TreeEnsemble", x.astype("float32"), version=5, **attributes)
    assert y.dtype == "float16"
    np.testing.assert_allclose(y, expected, rtol=1e-3)


@pytest.mark.parametrize("transform", range(5))
def test_tree_ensemble_transforms(random, transform):
    attributes = ensemble(random, targets=3)
    x = rows_of(random, integers=True)
    (plain,) = ours("TreeEnsemble", x, version=5, **attributes)
    (y,) = ours("TreeEnsemble", x, version=5, post_transform=transform, **attributes)
    common = pytest.importorskip("onnx.reference.ops.aionnxml._common_classifier")
    functions = [lambda v: v, common.softmax, common.logistic, common.softmax_zero, common.probit]
    with np.errstate(all="ignore"):
        expected = functions[transform](plain.copy()).astype("float32")
    if transform == 4:  # where the reference has a special case
        expected[np.isin(plain, [0, 1])] = y[np.isin(plain, [0, 1])]
    if transform == 3:  # likewise for rows of zeros
        expected[~plain.any(axis=1)] = y[~plain.any(axis=1)]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


# ---- linear models ----


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("intercepts", [True, False])
def test_linear_regressor(random, post, intercepts):
    for targets in [1, 3]:
        if targets == 1 and post not in ["NONE", "PROBIT"]:
            continue
        # Scores in (0, 1), so that all transforms are defined.
        x = random.uniform(0, 1, (20, 4)).astype("float32")
        attributes = {"coefficients": random.uniform(0.01, 0.2, targets * 4).tolist(), "targets": targets}
        if intercepts:
            attributes["intercepts"] = random.uniform(0, 0.1, targets).tolist()
        check("LinearRegressor", x, post_transform=post, **attributes, tolerance=tolerance_of(post))


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_linear_regressor_of_other_types(random, dtype):
    x = (random.normal(size=(5, 3)) * 4).astype(dtype)
    (y,) = ours("LinearRegressor", x, coefficients=[0.5, -1.0, 2.0], intercepts=[0.25])
    np.testing.assert_allclose(y, x.astype("float32") @ np.float32([[0.5], [-1], [2]]) + 0.25, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifier(random, post, dtype, classes):
    x = random.uniform(0, 1, (20, 4)) if post == "PROBIT" else random.normal(size=(20, 4)) * 3
    if post == "PROBIT" and dtype.startswith("i"):
        x = np.zeros((20, 4))
    check("LinearClassifier", x.astype(dtype), outputs=LABELS, classlabels_ints=[5, 2, 9][:classes],
          coefficients=random.uniform(0.01, 0.2, classes * 4).tolist(), multi_class=1,
          intercepts=random.uniform(0.01, 0.1, classes).tolist(), post_transform=post,
          tolerance=tolerance_of(post))  # fmt: skip


@pytest.mark.parametrize("post", POSTS[:4])
def test_linear_classifier_of_one_score(random, post):
    x = random.normal(size=(20, 4)).astype("float32")
    check("LinearClassifier", x, outputs=LABELS, classlabels_ints=[5, 2], coefficients=random.normal(size=4).tolist(),
          intercepts=[0.1], post_transform=post)  # fmt: skip


def test_a_list_of_features_is_one_row(random):
    x = random.normal(size=4).astype("float32")
    coefficients = random.normal(size=8).tolist()
    check("LinearRegressor", x, coefficients=coefficients, targets=2)
    check("LinearClassifier", x, outputs=LABELS, classlabels_ints=[5, 2], coefficients=coefficients,
          intercepts=[0.0, 1.0])  # fmt: skip
    nodes, leaves = forest(random)
    rest = dict(n_targets=1, **nodes, **weights_of(random, leaves, [0], "target"))  # ONNX Runtime takes no list
    assert_close(ours("TreeEnsembleRegressor", x, **rest), ours("TreeEnsembleRegressor", x[None], **rest))


# ---- support vector machines ----

KERNELS = [
    ("LINEAR", [0.0, 0.0, 0.0]),
    ("POLY", [0.3, 0.5, 3.0]),
    ("POLY", [0.3, 0.5, 2.0]),
    ("POLY", [0.1, 4.0, 1.5]),
    ("RBF", [0.4, 0.0, 0.0]),
    ("SIGMOID", [0.2, -0.1, 0.0]),
]


@pytest.mark.parametrize("kernel, params", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(random, kernel, params, one_class):
    x = random.normal(size=(17, 3)).astype("float32")
    check("SVMRegressor", x, kernel_type=kernel, kernel_params=params, n_supports=6, one_class=one_class,
          support_vectors=random.normal(size=18).tolist(), coefficients=random.normal(size=6).tolist(),
          rho=[0.3], tolerance=1e-4)  # fmt: skip


def test_svm_regressor_without_support_vectors(random):
    x = random.normal(size=(17, 3)).astype("float32")
    rest = {"kernel_type": "LINEAR", "kernel_params": [0.0] * 3, "coefficients": [0.5, -1.0, 2.0], "rho": [0.3]}
    check("SVMRegressor", x, **rest)
    (y,) = ours("SVMRegressor", x.astype("float64"), **rest)
    np.testing.assert_allclose(y, x @ np.float32([[0.5], [-1], [2]]) + 0.3, rtol=1e-4, atol=1e-5)


def svm(random, per_class, features=3, probabilities=False):
    vectors, classes = sum(per_class), len(per_class)
    pairs = classes * (classes - 1) // 2
    attributes = {
        "support_vectors": random.normal(size=vectors * features).tolist(),
        "vectors_per_class": per_class,
        "coefficients": random.normal(size=(classes - 1) * vectors).tolist(),
        "rho": random.normal(size=pairs).tolist(),
        "classlabels_ints": [3, 1, 4, 5, 9][:classes],
    }
    if probabilities:
        attributes["prob_a"] = random.uniform(-3, -0.5, pairs).tolist()
        attributes["prob_b"] = random.uniform(-0.5, 0.5, pairs).tolist()
    return attributes


@pytest.mark.parametrize("kernel, params", KERNELS)
@pytest.mark.parametrize("per_class", [[3, 4], [3, 1, 2], [2, 0, 3, 1, 4]])
@pytest.mark.parametrize("probabilities", [False, True])
def test_svm_classifier(random, kernel, params, per_class, probabilities):
    x = random.normal(size=(40, 3)).astype("float32")
    # Rounding decides when the coupling of probabilities stops.
    check("SVMClassifier", x, outputs=LABELS, kernel_type=kernel, kernel_params=params,
          **svm(random, per_class, probabilities=probabilities), tolerance=2e-4)  # fmt: skip


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("per_class", [[3, 4], [3, 1, 2]])
@pytest.mark.parametrize("probabilities", [False, True])
def test_svm_classifier_transforms(random, post, per_class, probabilities):
    x = random.normal(size=(12, 3)).astype("float32")
    rest = dict(outputs=LABELS, kernel_type="RBF", kernel_params=[0.4, 0.0, 0.0], post_transform=post,
                **svm(random, per_class, probabilities=probabilities))  # fmt: skip
    if post == "PROBIT" and not probabilities:
        if len(per_class) == 2:
            assert "PROBIT of one score for two classes not implemented" in refusal("SVMClassifier", x, **rest)
        return
    check("SVMClassifier", x, **rest, tolerance=2e-3 if post == "PROBIT" else 2e-4)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_svm_classifier_of_other_types(random, dtype):
    x = (random.normal(size=(12, 3)) * 2).astype(dtype)
    rest = {"kernel_type": "RBF", "kernel_params": [0.4, 0.0, 0.0], **svm(random, [3, 4])}
    check("SVMClassifier", x, outputs=LABELS, **rest, tolerance=1e-4)


@pytest.mark.parametrize("post", POSTS[:4])
def test_svm_classifier_without_support_vectors(random, post):
    x = random.normal(size=(12, 3)).astype("float32")
    check("SVMClassifier", x, outputs=LABELS, kernel_type="LINEAR", kernel_params=[0.0] * 3, post_transform=post,
          coefficients=random.normal(size=9).tolist(), rho=[0.2], classlabels_ints=[3, 1, 4])  # fmt: skip


# ---- features ----


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_scaler(random, dtype):
    x = (random.normal(size=(5, 3)) * 4).astype(dtype)
    check("Scaler", x, offset=[0.5, -1.0, 2.0], scale=[1.5, 0.25, -2.0])
    check("Scaler", x, offset=[0.5], scale=[1.5])
    check("Scaler", x[0], offset=[0.5, -1.0, 2.0], scale=[1.5, 0.25, -2.0])
    check("Scaler", x.reshape(1, 5, 3), offset=[0.5], scale=[1.5])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(random, dtype, norm):
    x = (random.normal(size=(6, 3)) * 4).astype(dtype)
    x[1] = 0
    x[2] = [-1, -2, 0]
    check("Normalizer", x, norm=norm)
    check("Normalizer", x[3], norm=norm)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_binarizer(random, dtype):
    x = (random.normal(size=(5, 3)) * 4).astype(dtype)
    (y,) = ours("Binarizer", x, outputs=(("y", dtype),), threshold=0.5)
    np.testing.assert_array_equal(y, (x > 0.5).astype(dtype))
    assert y.dtype == dtype
    if dtype == "float32":
        check("Binarizer", x, threshold=0.5)


@pytest.mark.parametrize("values", [[7.0], [7.0, 8.0, 9.0]])
@pytest.mark.parametrize("missing", [np.nan, 1.0])
def test_imputer(random, values, missing):
    x = np.round(random.normal(size=(9, 3))).astype("float32")
    x[random.random(x.shape) < 0.3] = np.nan
    rest = {"imputed_value_floats": values, "replaced_value_float": missing}
    check("Imputer", x, **rest)
    (y,) = ours("Imputer", x.astype("float64"), outputs=(("y", "float64"),), **rest)
    np.testing.assert_array_equal(y, ours("Imputer", x, **rest)[0])


@pytest.mark.parametrize("values", [[7], [7, 2**60, 9]])
def test_imputer_of_integers(random, values):
    x = random.integers(-2, 3, (9, 3))
    rest = {"imputed_value_int64s": values, "replaced_value_int64": 1}
    check("Imputer", x, outputs=(("y", "int64"),), **rest)
    if values == [7]:
        (y,) = ours("Imputer", x.astype("int32"), outputs=(("y", "int32"),), **rest)
        np.testing.assert_array_equal(y, np.where(x == 1, 7, x).astype("int32"))


@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 3, 4)])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_array_feature_extractor(random, shape, constants):
    for dtype in ["float32", "float64", "int32", "int64"]:
        x = (random.normal(size=shape) * 9).astype(dtype)
        for which in [[1], [2, 0, 3]]:
            rest = {"outputs": (("y", dtype),), "constants": constants}
            model, feeds = model_of("ArrayFeatureExtractor", [x, np.array(which)], **rest)
            assert_close(tenon.InferenceSession(model).run(None, feeds), theirs(model, feeds))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_feature_vectorizer(random, dtype):
    x, y = [(random.normal(size=(4, n)) * 9).astype(dtype) for n in (2, 3)]
    check("FeatureVectorizer", x, y, inputdimensions=[2, 3])
    check("FeatureVectorizer", x, y, inputdimensions=[1, 5])
    model, feeds = model_of("FeatureVectorizer", [x, y])
    (z,) = tenon.InferenceSession(model).run(None, feeds)
    np.testing.assert_array_equal(z, np.concatenate([x, y], axis=1).astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_one_hot_encoder(random, dtype):
    x = (random.normal(size=(5, 3)) * 2).astype(dtype)
    if dtype == "int32":  # which ONNX Runtime has no kernel for
        (y,) = ours("OneHotEncoder", x, cats_int64s=[1, -2, 0])
        np.testing.assert_array_equal(y, (x[..., None] == [1, -2, 0]).astype("float32"))
        return
    if dtype.startswith("f"):
        x[0, 0] = np.nan
    check("OneHotEncoder", x, cats_int64s=[1, -2, 0])
    check("OneHotEncoder", x[1], cats_int64s=[1, -2, 0])


def test_one_hot_encoder_that_fails_on_other_values():
    model, _ = model_of("OneHotEncoder", [np.array([[1, 2]])], cats_int64s=[2, 1], zeros=0)
    session = tenon.InferenceSession(model)
    (y,) = session.run(None, {"x0": np.array([[1, 2], [2, 2]])})
    np.testing.assert_array_equal(y, [[[0, 1], [1, 0]], [[1, 0], [1, 0]]])
    with pytest.raises(tenon.Error, match="among the categories"):
        session.run(None, {"x0": np.array([[1, 3]])})


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("count", [1, 2, 5, 100])
def test_label_encoder(random, version, count):
    keys = random.choice(300, count, replace=False) - 150
    ints, floats = random.integers(-9, 9, count).tolist(), random.normal(size=count).tolist()
    x = random.integers(-160, 160, (40, 5))
    x[0] = keys[0]
    a = {"keys_int64s": keys.tolist()}
    check("LabelEncoder", x, outputs=(("y", "int64"),), version=version, values_int64s=ints, default_int64=77, **a)
    check("LabelEncoder", x, outputs=(("y", "int64"),), version=version, values_int64s=ints, **a)
    check("LabelEncoder", x, version=version, values_floats=floats, default_float=0.5, **a)
    real = {"keys_floats": (keys / 2).tolist()}
    halves = (x / 2).astype("float32")
    halves[1, 0] = np.nan
    check("LabelEncoder", halves, outputs=(("y", "int64"),), version=version, values_int64s=ints, **real)
    check("LabelEncoder", halves, version=version, values_floats=floats, **real)


def test_label_encoder_of_large_integers():
    keys = [2**62, 2**62 + 1, -(2**63)]
    x = np.array([[2**62, 2**62 + 1, 2**62 + 2, -(2**63)]])
    check("LabelEncoder", x, outputs=(("y", "int64"),), version=2, keys_int64s=keys, values_int64s=[2**61 + 1, 2, 3])


def test_label_encoder_of_nan():
    x = np.array([[1, np.nan, 2]], "float32")
    keys = [1.0, float("nan")]
    check("LabelEncoder", x, outputs=(("y", "int64"),), version=4, keys_floats=keys, values_int64s=[5, 6])


def test_label_encoder_of_tensors():
    def tensor(values, dtype):
        return numpy_helper.from_array(np.array(values, dtype), "t")

    x = np.array([[1, 2, 3]], "float64")
    check("LabelEncoder", x, outputs=(("y", "float64"),), version=4, keys_tensor=tensor([1, 3], "float64"),
          values_tensor=tensor([0.1, 0.3], "float64"), default_tensor=tensor([0.7], "float64"))  # fmt: skip
    (y,) = ours("LabelEncoder", x.astype("int16"), outputs=(("y", "int32"),), version=4,
                keys_tensor=tensor([1, 3], "int16"), values_tensor=tensor([10, 30], "int32"))  # fmt: skip
    np.testing.assert_array_equal(y, np.int32([[10, -1, 30]]))


# ---- maps ----


def map_model(op, inputs, output, **attributes):
    """A model of one node; types are ValueInfoProtos' or, of maps, (key, value)."""

    def info(name, kind):
        if not isinstance(kind, tuple):
            return kind
        value = onnx.ValueInfoProto(name=name)
        value.type.map_type.key_type = kind[0]
        value.type.map_type.value_type.tensor_type.elem_type = kind[1]
        value.type.map_type.value_type.tensor_type.shape.SetInParent()
        return value

    node = helper.make_node(op, list(inputs), ["y"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", [info(name, kind) for name, kind in inputs.items()], [output])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def sequence_of_maps(key):
    value = onnx.ValueInfoProto(name="y")
    held = value.type.sequence_type.elem_type.map_type
    held.key_type = key
    held.value_type.tensor_type.elem_type = TensorProto.FLOAT
    held.value_type.tensor_type.shape.SetInParent()
    return value


CLASS_LABELS = {
    TensorProto.INT64: {"classlabels_int64s": [7, -1, 2**40]},
    TensorProto.STRING: {"classlabels_strings": ["no", "yes", "peut-\u00eatre"]},
}


@pytest.mark.parametrize("key", list(CLASS_LABELS), ids=["integers", "strings"])
@pytest.mark.parametrize("shape", [(5, 3), (0, 3), (1, 3), (3,)], ids=str)
def test_zip_map(key, shape, random):
    x = random.standard_normal(shape).astype("float32")
    dims = ["rows", *shape[1:]] if len(shape) > 1 else list(shape)
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    model = map_model("ZipMap", {"x": info}, sequence_of_maps(key), **CLASS_LABELS[key])
    (found,) = tenon.InferenceSession(model).run(None, {"x": x})
    assert found == theirs(model, {"x": x})[0]
    for mode in ("bytecode", "compiled"):
        assert list(tenon.compile(model, mode=mode)(x)) == found


def test_zip_map_checks_the_number_of_columns_when_it_runs():
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", "columns"])
    model = map_model("ZipMap", {"x": info}, sequence_of_maps(TensorProto.INT64), classlabels_int64s=[0, 1])
    exe = tenon.compile(model)
    assert list(exe(np.float32([[1, 2]]))) == [{0: 1.0, 1: 2.0}]
    with pytest.raises(tenon.Error, match="axis 1|columns|2"):
        exe(np.float32([[1, 2, 3]]))


PYTHON_TYPES = {TensorProto.INT64: int, TensorProto.FLOAT: float, TensorProto.DOUBLE: float, TensorProto.STRING: str}


@pytest.mark.parametrize(
    "key, value",
    [
        (TensorProto.STRING, TensorProto.INT64),
        (TensorProto.STRING, TensorProto.FLOAT),
        (TensorProto.STRING, TensorProto.DOUBLE),
        (TensorProto.INT64, TensorProto.FLOAT),
        (TensorProto.INT64, TensorProto.DOUBLE),
        (TensorProto.INT64, TensorProto.STRING),
    ],
)
def test_dict_vectorizer(key, value):
    strings = key == TensorProto.STRING
    words = ["one", "two", "three"] if strings else [10, -20, 30]
    vocabulary = {"string_vocabulary" if strings else "int64_vocabulary": words}
    output = helper.make_tensor_value_info("y", value, [1, 3])
    model = map_model("DictVectorizer", {"x": (key, value)}, output, **vocabulary)
    session = tenon.InferenceSession(model)
    unknown = "four" if strings else 11
    for keys in (words, words[::-1], words[1:2], [unknown, words[2]], [unknown], []):
        x = {k: PYTHON_TYPES[value](i + 1) for i, k in enumerate(keys)}
        expected = [x.get(word, PYTHON_TYPES[value]()) for word in words]
        (found,) = session.run(None, {"x": x})
        assert found.tolist() == [expected]
        if x and value == TensorProto.FLOAT:  # its Python interface can pass no other ones to ONNX Runtime
            (by_them,) = theirs(model, {"x": x})
            assert found.dtype == by_them.dtype or found.dtype == object
            assert by_them.tolist() == [expected]


@pytest.mark.parametrize("value", ["FLOAT", "STRING"])
@pytest.mark.parametrize("to", ["FLOAT", "INT64", "STRING"])
@pytest.mark.parametrize("form", ["DENSE", "SPARSE"])
def test_cast_map(value, to, form):
    kind, result = getattr(TensorProto, value), getattr(TensorProto, to)
    attributes = {"cast_to": f"TO_{to}", "map_form": form, "max_map": 6}
    output = helper.make_tensor_value_info("y", result, None)
    model = map_model("CastMap", {"x": (TensorProto.INT64, kind)}, output, **attributes)
    x = {4: 2.5, 1: -7.0, 0: 3.0}
    if value == "STRING" and to == "INT64":
        x = {key: int(number) for key, number in x.items()}
    if value == "STRING":
        x = {key: str(number) for key, number in x.items()}
    (found,) = tenon.InferenceSession(model).run(None, {"x": x})
    made = {"FLOAT": float, "INT64": lambda v: int(float(v)), "STRING": str}[to]
    pad = "0.f" if to == "STRING" else 0
    expected = [made(x[key]) if key in x else pad for key in (range(6) if form == "SPARSE" else sorted(x))]
    assert found.tolist() == [expected]
    if value == "FLOAT":  # its Python interface can pass no other ones to ONNX Runtime
        (by_them,) = theirs(model, {"x": x})
        if to == "STRING":  # which writes floats with six digits after the point
            by_them = np.vectorize(lambda text: text if text == "0.f" else str(float(text)))(by_them)
        assert by_them.tolist() == [expected]


def test_cast_map_of_other_keys():
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = map_model("CastMap", {"x": (TensorProto.INT64, TensorProto.FLOAT)}, output, map_form="SPARSE", max_map=2)
    exe = tenon.compile(model)
    assert exe({5: 1.0, 1: 2.0}).tolist() == [[0, 2]]  # those beyond are left out
    assert exe({}).tolist() == [[0, 0]]
    with pytest.raises(tenon.Error, match="out of range"):
        exe({-1: 1.0})


def test_maps_are_dicts_and_values_of_a_data_type():
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])
    model = map_model("DictVectorizer", {"x": (TensorProto.STRING, TensorProto.FLOAT)}, output, string_vocabulary=["a", "b"])
    exe = tenon.compile(model)
    assert exe.types.Map(["b"], [2.0]) is not None
    assert exe(exe.types.Map(np.array(["b"], object), np.float32([2]))).tolist() == [[0, 2]]
    for wrong in ({1: 2.0}, {"a": "b"}, [("a", 1.0)], {"a": [1.0, 2.0]}, 3):
        with pytest.raises((TypeError, ValueError, tenon.Error)):
            exe(wrong)


# ---- sizes ----


def with_symbols(model):
    """The model whose inputs have two sizes that are known only at run time."""
    for value in model.graph.input:
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.Clear()
            dim.dim_param = f"size_{i}"
    return model


def test_the_number_of_features_may_be_known_only_at_run_time(random):
    x = random.normal(size=(5, 4)).astype("float32")
    nodes, leaves = forest(random)
    cases = [
        ("TreeEnsembleRegressor", {"n_targets": 1, **nodes, **weights_of(random, leaves, [0], "target")}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0, 4.0]}),
        ("Scaler", {"offset": [1.0, 2.0, 3.0, 4.0], "scale": [2.0]}),
        ("Normalizer", {"norm": "L2"}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float(x[0, 0])}),
        ("OneHotEncoder", {"cats_int64s": [0, 1]}),
        ("SVMRegressor", {"kernel_type": "RBF", "kernel_params": [0.5, 0, 0], "n_supports": 1, "rho": [0.0],
                          "coefficients": [1.0], "support_vectors": [0.1, 0.2, 0.3, 0.4]}),
    ]  # fmt: skip
    for op, attributes in cases:
        model, feeds = model_of(op, [x], **attributes)
        expected = tenon.InferenceSession(model).run(None, feeds)
        session = tenon.InferenceSession(with_symbols(model))
        assert_close(session.run(None, feeds), expected)
        if op not in ["Normalizer", "OneHotEncoder"]:
            with pytest.raises(tenon.Error):
                session.run(None, {"x0": x[:, :2]})


def test_trees_may_be_folded(random):
    nodes, leaves = forest(random)
    rest = dict(n_targets=1, **nodes, **weights_of(random, leaves, [0], "target"))
    x = rows_of(random)
    model, _ = model_of("TreeEnsembleRegressor", [x], constants=(0,), **rest)
    assert_close(tenon.InferenceSession(model).run(None, {}), ours("TreeEnsembleRegressor", x, **rest))


# ---- without ONNX Runtime ----


def cases_of_the_reference(random):
    """(operator, inputs, the rest) for ONNX's reference, which defines the operators in Python."""
    x = rows_of(random, integers=True)
    nan = rows_of(random, integers=True, nan=True)
    nodes, leaves = forest(random, modes=MODES[:5], missing=True, integers=True)
    for aggregate in ["SUM", "AVERAGE", "MIN", "MAX"]:
        rest = weights_of(random, leaves, [0, 1], "target", base=[0.5, 1.0])
        yield "TreeEnsembleRegressor", [nan], dict(n_targets=2, aggregate_function=aggregate, **nodes, **rest)
    for post in POSTS[:3]:
        rest = weights_of(random, leaves, [0, 1, 2], "class")
        yield "TreeEnsembleClassifier", [nan], dict(outputs=LABELS, classlabels_int64s=[4, 2, 7], post_transform=post,
                                                    **nodes, **rest)  # fmt: skip
    yield "TreeEnsemble", [nan], dict(version=5, **ensemble(random, members=True))
    yield "LinearRegressor", [x], dict(coefficients=random.normal(size=8).tolist(), intercepts=[0.1, 0.2], targets=2)
    yield "LinearClassifier", [x], dict(outputs=LABELS, coefficients=random.normal(size=12).tolist(), multi_class=1,
                                        intercepts=[0.1, 0.2, 0.3], classlabels_ints=[4, 2, 7],
                                        post_transform="SOFTMAX")  # fmt: skip
    for kernel, params in KERNELS:
        if params[2] == 1.5:  # it takes whole degrees only
            continue
        vectors = random.normal(size=24).tolist()
        small = {"kernel_type": kernel, "kernel_params": params, "support_vectors": vectors}
        yield "SVMRegressor", [x / 4], dict(n_supports=6, coefficients=[0.5, -1, 0.3, 1, 2, -1], rho=[0.3], **small)
        machine = {**svm(random, [3, 1, 2], features=4), **small}  # it doesn't couple probabilities as libsvm does
        yield "SVMClassifier", [x / 4], dict(outputs=LABELS, **machine)
    yield "Scaler", [x], dict(offset=[0.5, -1.0, 2.0, 0.0], scale=[1.5, 0.25, -2.0, 1.0])
    for norm in ["MAX", "L1", "L2"]:
        yield "Normalizer", [np.abs(x) + 1], dict(norm=norm)
    yield "Binarizer", [x], dict(threshold=0.5)
    yield "Imputer", [nan], dict(imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=np.nan)
    yield "ArrayFeatureExtractor", [x, np.array([2, 0])], {}
    yield "FeatureVectorizer", [x, nan], dict(inputdimensions=[4, 4])
    yield "OneHotEncoder", [x.astype("int64")], dict(cats_int64s=[1, -2, 0])
    yield "LabelEncoder", [x.astype("int64")], dict(outputs=(("y", "int64"),), keys_int64s=[1, -2, 0],
                                                    values_int64s=[5, 6, 7], default_int64=8)  # fmt: skip


def test_against_the_reference(random):
    reference = pytest.importorskip("onnx.reference")
    for op, inputs, rest in cases_of_the_reference(random):
        model, feeds = model_of(op, inputs, **rest)
        found = tenon.InferenceSession(model).run(None, feeds)
        expected = reference.ReferenceEvaluator(model).run(None, feeds)
        assert len(found) == len(expected)
        for y, z in zip(found, expected):
            np.testing.assert_allclose(y, np.reshape(z, y.shape), rtol=2e-4, atol=2e-4, err_msg=op)
