"""Models and tensors of PyTorch."""

import warnings

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
