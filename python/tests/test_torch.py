"""Models and tensors of PyTorch."""

import warnings

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")


@pytest.fixture(scope="module")
def mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()


def test_tensors_are_taken_and_given_without_copies():
    identity = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { %x }"))
    x = torch.arange(3.0)
    y = torch.from_dlpack(identity(x))
    assert y.data_ptr() == x.data_ptr() and torch.equal(x, y)


class WithConstants(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x), torch.ones(3) * 2


def test_writing_to_a_constant_result_does_not_change_the_program():
    compiled = torch.compile(WithConstants(), backend=tenon.torch_backend)
    compiled(torch.ones(2))[1].add_(5)
    assert compiled(torch.ones(2))[1].tolist() == [2, 2, 2]
    exe = tenon.compile(tenon.ir.parse("fn @main() -> tensor[2; f32] { tensor[2; f32]{1, 2} }"))
    torch.from_dlpack(exe()).add_(5)
    assert exe().tolist() == [1, 2]


class BranchesOnData(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return x + 1


@pytest.mark.filterwarnings("ignore")
def test_what_pytorch_does_not_export_is_an_error_that_says_where():
    with pytest.raises(tenon.UsageError, match="PyTorch can't export the model") as caught:
        tenon.compile(BranchesOnData(), args=(torch.ones(2),))
    assert "data-dependent" in caught.value.found and f"{__file__}:" in caught.value.where
    assert "\x1b" not in str(caught.value) and caught.value.__cause__ is not None
    traced = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(2))
    with pytest.raises(tenon.UsageError, match="TorchScript"):
        tenon.compile(traced, args=(torch.ones(2),))


def test_a_missing_package_is_named(mlp, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnxscript"):
        tenon.compile(mlp, args=(torch.ones(1, 4),))


class OwnResolution(torch.Tensor):
    def resolve_neg(self):
        return 5


def test_a_subclass_may_resolve_its_negative_bit_to_anything():
    x = torch.complex(torch.zeros(2), torch.ones(2)).conj().imag
    assert x.is_neg()
    with pytest.raises((TypeError, AttributeError)):
        tenon.Tensor(x.as_subclass(OwnResolution))


def test_tensors_that_cannot_be_shared_say_why():
    exe = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { %x }"))
    with pytest.raises((BufferError, RuntimeError, TypeError)) as raised:
        exe(torch.ones(3, device="meta"))
    assert "frame #0" not in str(raised.value)
    y = exe(torch.nn.Parameter(torch.ones(3)))  # its memory is shared; gradients end here
    assert y.tolist() == [1, 1, 1]


def test_bfloat16_goes_through():
    x = torch.arange(3).to(torch.bfloat16)
    assert torch.equal(torch.from_dlpack(tenon.Tensor(x)), x)


def test_a_module_is_compiled_with_dynamic_sizes(mlp):
    batch = torch.export.Dim("batch")
    exe = tenon.compile(mlp, args=(torch.zeros(3, 4),), dynamic_shapes=({0: batch},))
    assert exe.signature().params[0].dims == ("batch", 4)
    for n in (1, 5):
        x = torch.randn(n, 4)
        torch.testing.assert_close(torch.from_dlpack(exe(x)), mlp(x).detach())


class Nested(torch.nn.Module):
    """Takes a tuple and a dict, and returns a dict."""

    def forward(self, x, pair, more):
        return {"sum": x + pair[0] + more["k"], "rest": (pair[1] * 2, [x.mean(-1)])}


NESTED = (torch.ones(2, 4), (torch.ones(2, 4), torch.ones(2, 4)), {"k": torch.ones(2, 4)})


@pytest.mark.parametrize("batch", [torch.export.Dim("batch"), "batch"])
def test_parts_of_arguments_and_results_are_named_by_their_paths(batch):
    sizes = {0: batch}
    exe = tenon.compile(Nested().eval(), args=NESTED, dynamic_shapes=(sizes, (sizes, sizes), {"k": sizes}))
    signature = exe.signature()
    assert [p.name for p in signature.params] == ["x", "pair_0", "pair_1", "more_k"]
    assert [p.dims for p in signature.params] == [("batch", 4)] * 4
    assert [r.name for r in signature.results] == ["sum", "rest_0", "rest_1_0"]
    x = np.ones((3, 4), "float32")
    total, doubled, mean = exe(x=x, pair_0=x, pair_1=x, more_k=x)
    assert total.tolist() == [[3.0] * 4] * 3 and doubled.tolist() == [[2.0] * 4] * 3 and mean.tolist() == [1.0] * 3


def test_keyword_arguments_are_exported():
    x, pair, more = NESTED
    exe = tenon.compile(Nested().eval(), args=(x,), kwargs={"pair": pair, "more": more})
    assert [p.name for p in exe.signature().params] == ["x", "pair_0", "pair_1", "more_k"]


def test_sizes_without_names_are_named_after_the_first_input_and_axis(mlp):
    dynamic = ({0: torch.export.Dim.DYNAMIC},)
    exe = tenon.compile(mlp, args=(torch.zeros(3, 4),), dynamic_shapes=dynamic)
    assert exe.signature().params[0].dims == ("input_0", 4)
    exported = torch.export.export(mlp, (torch.zeros(3, 4),), dynamic_shapes=dynamic)
    assert tenon.compile(exported).signature().params[0].dims == ("input_0", 4)
    named = tenon.compile(exported, dynamic_shapes=({0: torch.export.Dim("batch")},))
    assert named.signature().params[0].dims == ("batch", 4)


class Halves(torch.nn.Module):
    """Works only for 3 rows of 4: they become 2 of 6."""

    def forward(self, x, more):
        return x.reshape(2, 6) + more["k"].sum()


@pytest.mark.parametrize("batch", [torch.export.Dim("batch"), "batch", torch.export.Dim.DYNAMIC])
@pytest.mark.parametrize("by_name", [False, True])
def test_a_size_that_the_model_fixes_is_not_fixed_silently(batch, by_name):
    parts = {"x": {0: batch}, "more": {"k": {1: torch.export.Dim("any")}}}
    with pytest.raises(tenon.UsageError, match="only one value for a size that dynamic_shapes lets change") as caught:
        tenon.compile(
            Halves(),
            args=(torch.zeros(3, 4), {"k": torch.zeros(2, 5)}),
            kwargs={},
            dynamic_shapes=parts if by_name else tuple(parts.values()),
        )
    assert caught.value.found == ("3 on axis 0 of 'x'" if isinstance(batch, torch.export.Dim) else None)
    says = "specialized it to be a constant" if isinstance(batch, torch.export.Dim) else "static shape of 3"
    assert "PyTorch says: " in caught.value.help and says in caught.value.help


def test_an_exported_program_is_compiled(mlp):
    x = torch.randn(3, 4)
    exported = torch.export.export(mlp, (x,))
    torch.testing.assert_close(torch.from_dlpack(tenon.compile(exported)(x)), mlp(x).detach())


def test_example_arguments_are_asked_for(mlp):
    with pytest.raises(TypeError, match="args="):
        tenon.compile(mlp)
    with pytest.raises(TypeError, match="models of PyTorch"):
        tenon.compile(tenon.ir.parse("fn @main(%x: i64) -> i64 { %x }"), args=(1,))


def test_torch_compile_has_a_backend(mlp):
    x = torch.randn(3, 4)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compiled = torch.compile(mlp, backend=tenon.torch_backend)
        torch.testing.assert_close(compiled(x), mlp(x))


def test_the_backend_says_once_what_it_leaves_to_pytorch(mlp):
    x = torch.randn(3, 4)
    compiled = torch.compile(mlp, backend=tenon.torch_backend)
    with pytest.warns(UserWarning, match="needs gradients"):
        y = compiled(x)
    y.sum().backward()
    assert mlp[0].weight.grad is not None


class Sizes(torch.nn.Module):
    """Computes with sizes, and returns one."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.last = torch.nn.Linear(4, 5)

    def forward(self, x, k):
        y = torch.nn.functional.adaptive_avg_pool2d(self.conv(x).relu(), 1).flatten(1)
        return self.last(y).view(x.size(0), 5) * k + x.shape[2], 2 * x.shape[0], None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"options": {"levle": 3}}, "did you mean level"),
        ({"options": {"level": 99}}, "99"),
        ({"options": {"args": ()}}, "args"),
        ({"mode": "max-autotune"}, "has no modes"),
    ],
)
def test_a_wrong_option_of_the_backend_is_an_error(mlp, wrong, says):
    torch._dynamo.reset()
    compiled = torch.compile(mlp, backend=tenon.torch_backend, **wrong)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=says), torch.no_grad():
        compiled(torch.zeros(3, 4))


@pytest.mark.parametrize("dynamic", [None, True])
def test_torch_compile_takes_sizes_that_change(mlp, dynamic):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return tenon.torch_backend(graph, inputs)

    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing is left to PyTorch
        compiled = torch.compile(mlp, backend=backend, dynamic=dynamic)
        for n in (5, 7, 9):
            x = torch.randn(n, 4)
            torch.testing.assert_close(compiled(x), mlp(x))
        assert len(graphs) == 2 - bool(dynamic)  # Dynamo takes the first size for fixed by default
        model = Sizes().eval()
        compiled = torch.compile(model, backend=backend, dynamic=True)
        for n, height, k in ((2, 8, 4), (5, 10, 6), (6, 12, 7)):
            x = torch.randn(n, 3, height, height + 1)
            y, size, nothing = compiled(x, k)
            torch.testing.assert_close(y, model(x, k)[0])
            assert size == 2 * n and nothing is None
    torch._dynamo.reset()


def test_torch_compile_knows_the_backend_without_metadata():
    import subprocess
    import sys

    code = "import torch, torch._dynamo, tenon; from torch._dynamo.backends.registry import lookup_backend\n"
    code += "assert lookup_backend('tenon').__module__ == 'tenon._torch'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_lazily_negated_tensor_has_its_signs():
    exe = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { add(%x, %x) }"))
    negated = torch.complex(torch.ones(3), torch.arange(3.0)).conj().imag
    for x in (negated, torch._neg_view(torch.arange(3.0)), torch.nn.Parameter(negated)):
        assert x.is_neg()
        assert exe(x.detach()).tolist() == [0, -2, -4]
        assert tenon.Tensor(x.detach()).tolist() == [0, -1, -2]
        with pytest.raises(TypeError, match="output can't be a tensor with PyTorch's negative bit"):
            exe(torch.ones(3), out=x.detach())


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


def test_a_model_that_changes_its_buffers_is_refused():
    with pytest.raises(tenon.UsageError, match="changes its own buffers") as caught:
        tenon.compile(Counting(), args=(torch.ones(4),))
    assert caught.value.found == "calls"


def test_changes_in_place_run_in_pytorch():
    def count(v):
        v.add_(1)
        return v * 2

    torch._dynamo.reset()
    v = torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = torch.compile(count, backend=tenon.torch_backend)(v)
    assert v.tolist() == [2, 2, 2] and result.tolist() == [4, 4, 4]
