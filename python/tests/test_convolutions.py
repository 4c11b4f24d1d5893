"""Convolutions that Winograd's algorithm computes, end to end."""

import numpy as np
import pytest
import tenon

SIZE, CHANNELS, FILTERS = 40, 32, 48

# Weights from sines, which are folded to a constant.
MODEL = f"""
fn @main(%x: tensor[n, {SIZE}, {SIZE}, {CHANNELS}; f32]) -> tensor[n, {SIZE}, {SIZE}, {FILTERS}; f32] {{
  %i = range(tensor[f32]{{0}}, tensor[f32]{{1}}, count={9 * CHANNELS * FILTERS})
  %s = sin(%i)
  %w = reshape(%s, shape=[3, 3, {CHANNELS}, {FILTERS}])
  %y = conv(%x, %w, (), pads=[1, 1, 1, 1], layout="NHWC")
  %z = relu(%y)
  %z
}}
"""


@pytest.fixture(scope="module", params=["onednn", "none"])
def programs(request):
    module = tenon.ir.parse(MODEL)
    options = {"libraries": request.param}
    return tenon.compile(module, **options), tenon.compile(module, **options, direct_convolutions=True)


def expected(x: np.ndarray) -> np.ndarray:
    weights = np.sin(np.arange(9 * CHANNELS * FILTERS, dtype=np.float32)).astype(np.float64)
    weights = weights.reshape(3, 3, CHANNELS, FILTERS)
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = ((i, j, padded[:, i : i + SIZE, j : j + SIZE]) for i in range(3) for j in range(3))
    return np.maximum(sum(pixels @ weights[i, j] for i, j, pixels in taps), 0)


def image(count: int = 1) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, SIZE, SIZE, CHANNELS), np.float32)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_results_are_those_of_the_definition(programs, count):
    x = image(count)
    scale = np.abs(expected(x)).max(initial=1)
    for program in programs:
        np.testing.assert_allclose(np.asarray(program(x)), expected(x), rtol=0, atol=4e-6 * scale)


def test_the_option_switches_it_off(programs):
    x = image()
    winograd, direct = (np.asarray(program(x)) for program in programs)
    assert not np.array_equal(winograd, direct)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_not_finite_stays_where_it_belongs(programs, bad):
    x = image(2)
    x[1, 7, 11, 5] = bad
    winograd, direct = (np.asarray(program(x)) for program in programs)
    # A library computes the whole convolution directly, a kernel the tiles with such values.
    np.testing.assert_array_equal(np.isfinite(winograd), np.isfinite(direct))
    finite = np.isfinite(direct)
    np.testing.assert_array_equal(winograd[~finite], direct[~finite])
    np.testing.assert_allclose(winograd[finite], direct[finite], atol=2e-4)
    touched = np.zeros((2, SIZE, SIZE), bool)
    touched[1, 6:9, 10:13] = True
    assert np.isfinite(winograd[~touched]).all()
    assert np.isfinite(bad) or not np.isfinite(winograd[touched]).all()


def test_the_memory_limit_counts_its_workspace(programs):
    x = image()
    winograd, direct = (tenon.VirtualMachine(p, limits=tenon.Limits(memory=700_000))["main"] for p in programs)
    direct(x)  # the result has 307 KB, the workspace of two blocks of 50 tiles 800 KB each
    with pytest.raises(tenon.Error, match="memory limit") as failure:
        winograd(x)
    assert failure.value.stopped_by == "memory"
