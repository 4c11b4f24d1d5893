"""ONNX Runtime's interface."""

import dataclasses

import numpy as np
import pytest

import tenon


@pytest.fixture
def x():
    return np.array([[-1, 0, 2]], "float32")


def check(session, x):
    assert [r.tolist() for r in session.run(None, {"x": x})] == [[[0, 0, 2]]]


def test_models_and_compiled_files_are_taken_as_paths_and_bytes(relu_model, x, tmp_path):
    exe = tenon.compile(relu_model)
    (tmp_path / "m").write_bytes(relu_model.SerializeToString())
    exe.save(tmp_path / "x.tnx")
    shared = tenon.compile(relu_model, shared=True)
    shared.save(tmp_path / "x.so")
    models = [tmp_path / "m", tmp_path / "x.tnx", tmp_path / "x.so", relu_model.SerializeToString(), exe]
    sessions = [tenon.InferenceSession(model) for model in models]
    sessions += [tenon.InferenceSession(e.to_bytes(), untrusted=False) for e in (exe, shared)]
    for session in sessions:
        check(session, x)
        assert session.run([], {"x": x})[0].shape == session.run(["y"], {"x": x}, None)[0].shape
    with pytest.raises(ValueError, match="no output is named z; the outputs are: y"):
        session.run(["z"], {"x": x})
    with pytest.raises(ValueError, match="no input is named input; the inputs are: x"):
        session.run(None, {"input": x})
    with pytest.raises(ValueError, match="no input is named x0; did you mean x"):
        session.run(None, {"x": x, "x0": x})
    with pytest.raises(TypeError, match="missing: x"):
        session.run(None, {})


def test_settings_of_a_session_are_taken(relu_model, x):
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_free_dimension_override_by_name("batch", 1)
    session = tenon.InferenceSession(relu_model, options, ["CPUExecutionProvider"], provider_options=[{}])
    check(session, x)
    assert session.get_inputs()[0].shape == [1, 3] and session.get_session_options() is options
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = onnxruntime.SessionOptions()
    theirs.intra_op_num_threads = 2
    check(tenon.InferenceSession(relu_model, sess_options=theirs), x)


def test_the_optimization_level_is_that_of_compile(relu_model, x, monkeypatch):
    levels = []

    def compile(model, level="default", **options):
        levels.append(level)
        return tenon.compile(model, **options)

    monkeypatch.setattr(tenon._session, "compile", compile)
    options = tenon.SessionOptions()
    for given in (None, "ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        options.graph_optimization_level = given
        check(tenon.InferenceSession(relu_model, options), x)
    assert levels == ["default", 0, 1, "default", "default"]
    options.graph_optimization_level = "ORT_DISABLE_ALL"
    with pytest.raises(ValueError, match="optimized already"):
        tenon.InferenceSession(tenon.compile(relu_model), options)
    options.graph_optimization_level = 77
    with pytest.raises(ValueError, match="is 77; expected one of ORT_DISABLE_ALL"):
        tenon.InferenceSession(relu_model, options)
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = onnxruntime.SessionOptions()
    theirs.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    check(tenon.InferenceSession(relu_model, theirs), x)
    check(tenon.InferenceSession(relu_model, onnxruntime.SessionOptions()), x)
    assert levels[-2:] == [0, "default"]


def test_what_onnx_runtime_has_besides_says_what_does_it_here(relu_model, x):
    session = tenon.InferenceSession(relu_model)
    with pytest.raises(AttributeError, match=r"no attribute 'run_async'; session.executable.submit"):
        session.run_async
    with pytest.raises(AttributeError, match="no attribute 'runn'$"):
        session.runn
    with pytest.raises(AttributeError, match="no attribute 'register_custom_ops_library'; give the library"):
        tenon.SessionOptions().register_custom_ops_library("lib.so")
    with pytest.raises(TypeError, match=r'dict of the inputs, {"x": ...}; found list'):
        session.run(None, [x])


def test_threads_between_operators_need_the_parallel_mode(relu_model, x, monkeypatch):
    seen = {}

    def recorded(name, function):
        def call(*args, **kwargs):
            seen[name] = kwargs.get("inter_op", 1)
            return function(*args, **kwargs)

        monkeypatch.setattr(tenon._session, name, call)

    recorded("compile", tenon.compile)
    recorded("VirtualMachine", tenon.VirtualMachine)
    options = tenon.SessionOptions()
    options.inter_op_num_threads = 2
    check(tenon.InferenceSession(relu_model, options), x)
    assert seen == {"compile": 1}
    options.execution_mode = "ORT_PARALLEL"
    check(tenon.InferenceSession(relu_model, options), x)
    assert seen == {"compile": 2, "VirtualMachine": 2}
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = onnxruntime.SessionOptions()
    theirs.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    theirs.inter_op_num_threads = 3
    check(tenon.InferenceSession(relu_model, theirs), x)
    assert seen == {"compile": 3, "VirtualMachine": 3}


def test_providers_must_include_the_cpu(relu_model, x):
    both = ["CUDAExecutionProvider", ("CPUExecutionProvider", {})]
    session = tenon.InferenceSession(relu_model, providers=both)
    assert session.get_providers() == ["CPUExecutionProvider"] == list(session.get_provider_options())
    with pytest.raises(ValueError, match="must include CPUExecutionProvider; found CUDAExecutionProvider"):
        tenon.InferenceSession(relu_model, providers=both[:1])


def test_a_session_describes_its_model(relu_model):
    relu_model.graph.name = "encoder"
    session = tenon.InferenceSession(relu_model)
    meta = session.get_modelmeta()
    assert meta.graph_name == "encoder" and meta.custom_metadata_map == {}
    assert session.get_overridable_initializers() == []
    assert dataclasses.astuple(session.get_outputs()[0]) == ("y", "tensor(float)", ["batch", 3])


def test_native_code_is_not_taken_for_a_model(relu_model, x, tmp_path):
    exe = tenon.compile(relu_model, keep_computes=True)
    shared = tenon.compile(relu_model, shared=True)
    for name in ("model.onnx", "upload"):
        for e in (exe, shared):
            e.save(tmp_path / name)
            for file in (tmp_path / name, e.to_bytes()):
                with pytest.raises(tenon.UsageError, match="is an executable, which may hold native code") as error:
                    tenon.InferenceSession(file, providers=["CPUExecutionProvider"])
                assert "untrusted=True" in error.value.help
    with pytest.raises(tenon.UsageError, match="is not what its name says"):
        exe.save(tmp_path / "model.onnx")
        tenon.compile(tmp_path / "model.onnx")
    check(tenon.InferenceSession(exe.to_bytes(), untrusted=True), x)
    with pytest.raises(tenon.UnsupportedError, match="untrusted"):
        tenon.InferenceSession(shared.to_bytes(), untrusted=True)


def test_settings_that_come_too_late_are_refused(relu_model):
    exe = tenon.compile(relu_model)
    options = tenon.SessionOptions()
    options.add_free_dimension_override_by_name("n", 1)
    for model in (exe, exe.to_bytes()):
        with pytest.raises(ValueError, match="sizes are fixed when it is compiled"):
            tenon.InferenceSession(model, options, **({} if model is exe else {"untrusted": False}))
    with pytest.raises(TypeError, match="takes no options; found level"):
        tenon.InferenceSession(exe, level=3)


def test_one_name_is_no_list_of_names(relu_model, x):
    with pytest.raises(TypeError, match=r"a list of names, such as \['y'\]"):
        tenon.InferenceSession(relu_model).run("y", {"x": x})


def test_a_session_has_the_models_own_metadata(relu_model, tmp_path):
    onnx = pytest.importorskip("onnx")
    relu_model.producer_name, relu_model.domain, relu_model.model_version = "maker", "org.maker", -7
    relu_model.doc_string, relu_model.graph.doc_string, relu_model.graph.name = "Über", "a graph", "encoder"
    onnx.helper.set_model_props(relu_model, {"classes": "cat,dog", "empty": ""})
    path = tmp_path / "m.onnx"
    onnx.save(relu_model, path)
    for model in (relu_model, relu_model.SerializeToString(), path):
        meta = tenon.InferenceSession(model).get_modelmeta()
        assert (meta.producer_name, meta.domain, meta.version) == ("maker", "org.maker", -7)
        assert (meta.description, meta.graph_description, meta.graph_name) == ("Über", "a graph", "encoder")
        assert meta.custom_metadata_map == {"classes": "cat,dog", "empty": ""}
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_modelmeta()
    for field in dataclasses.fields(meta):
        assert getattr(meta, field.name) == getattr(theirs, field.name)


def test_a_compiled_session_has_its_producer(relu_model, tmp_path):
    tenon.compile(relu_model).save(tmp_path / "m.tnx")
    assert "tenon" in tenon.InferenceSession(tmp_path / "m.tnx").get_modelmeta().producer_name
    (tmp_path / "m.tn").write_text("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }")
    assert "tenon" in tenon.InferenceSession(tmp_path / "m.tn").get_modelmeta().producer_name


def test_an_input_with_an_initializer_is_a_constant():
    onnx = pytest.importorskip("onnx")
    info, float32 = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Mul", ["x", "w"], ["y"])],
        "g",
        [info("x", float32, [2]), info("w", float32, [2])],
        [info("y", float32, [2])],
        [onnx.numpy_helper.from_array(np.array([3, 4], "float32"), "w")],
    )
    session = tenon.InferenceSession(onnx.helper.make_model(graph))
    x = np.ones(2, "float32")
    assert session.run(None, {"x": x})[0].tolist() == [3, 4]
    with pytest.raises(ValueError, match="a value of its own for w, which is a constant"):
        session.run(None, {"x": x, "w": x})


def test_settings_that_there_are_not_are_refused():
    options = tenon.SessionOptions()
    with pytest.raises(AttributeError, match="did you mean intra_op_num_threads"):
        options.intra_op_num_thread = 1
    with pytest.raises(AttributeError, match="no setting 'enable_profiling'; use tenon.profile"):
        options.enable_profiling = True


@pytest.fixture
def sequences():
    """Drops an element of a sequence, and gives the one that takes its place."""
    helper = pytest.importorskip("onnx").helper
    element = helper.make_tensor_type_proto(1, ["n"])
    sequence = helper.make_sequence_type_proto(element)
    graph = helper.make_graph(
        [
            helper.make_node("SequenceErase", ["xs", "p"], ["ys"]),
            helper.make_node("SequenceAt", ["ys", "p"], ["y"]),
            helper.make_node("SequenceLength", ["ys"], ["length"]),
        ],
        "g",
        [helper.make_value_info("xs", sequence), helper.make_tensor_value_info("p", 7, [])],
        [
            helper.make_value_info("ys", sequence),
            helper.make_value_info("y", element),
            helper.make_tensor_value_info("length", 7, []),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_sequences_are_lists_as_in_onnx_runtime(sequences):
    xs = [np.array([-1, 2], "float32"), np.array([3], "float32"), np.array([4, -5, 6], "float32")]
    feed = {"xs": xs, "p": np.array(1)}
    session = tenon.InferenceSession(sequences)
    ys, y, length = session.run(None, feed)
    assert [part.tolist() for part in ys] == [[-1, 2], [4, -5, 6]]
    assert y.tolist() == [4, -5, 6] and length == 2
    assert session.run(["ys"], {"xs": xs, "p": np.array(-1)})[0][1].tolist() == [3]
    assert [part.tolist() for part in xs] == [[-1, 2], [3], [4, -5, 6]]
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = onnxruntime.InferenceSession(sequences.SerializeToString())
    for ours, others in ((session.get_inputs(), theirs.get_inputs()), (session.get_outputs(), theirs.get_outputs())):
        assert [(n.name, n.type) for n in ours] == [(n.name, n.type) for n in others]
    expected = theirs.run(None, feed)
    assert isinstance(ys, list) and all((a == b).all() for a, b in zip(ys, expected[0]))


def test_what_an_executable_takes_as_a_sequence_is_checked(sequences):
    exe = tenon.compile(sequences)
    ys, y, length = exe([np.ones(2, "float32"), np.ones(3, "float32")], 0)
    assert [part.shape for part in ys] == [(3,)] and y.shape == (3,) and int(length) == 1
    with pytest.raises(tenon.Error, match="a slice is out of range"):
        exe([np.ones(2, "float32")], 4)
    with pytest.raises(tenon.Error, match=r"(?s)doesn't fit its declared type.*f64"):
        exe([np.ones(2, "float64")] * 2, 0)


def test_optional_values_are_none_or_the_value():
    helper = pytest.importorskip("onnx").helper
    element = helper.make_tensor_type_proto(1, ["n"])
    graph = helper.make_graph(
        [helper.make_node("OptionalHasElement", ["x"], ["has"])],
        "g",
        [helper.make_value_info("x", helper.make_optional_type_proto(element))],
        [helper.make_tensor_value_info("has", 9, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    session, exe = tenon.InferenceSession(model), tenon.compile(model)
    for x in (None, np.ones(3, "float32")):
        assert session.run(None, {"x": x})[0] == (x is not None)
        assert bool(np.asarray(exe(x))) == (x is not None)
