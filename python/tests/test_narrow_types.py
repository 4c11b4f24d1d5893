"""Elements narrower than a byte and floats narrower than f32, against ml_dtypes."""

import numpy as np
import pytest
import tenon

ml_dtypes = pytest.importorskip("ml_dtypes")

FLOATS = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
    "f4e2m1fn": "float4_e2m1fn",
}
INTEGERS = {"i2": "int2", "i4": "int4", "u2": "uint2", "u4": "uint4"}
BITS = {"bf16": 16, "f4e2m1fn": 4, "i2": 2, "i4": 4, "u2": 2, "u4": 4}

MODES = ["compiled", "bytecode", "interpret"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, {**FLOATS, **INTEGERS}[name]))


def every_number(name):
    """An array with each pattern of bits once."""
    bits = BITS.get(name, 8)
    return np.arange(2**bits, dtype="uint16" if bits > 8 else "uint8").view(dtype_of(name))


def cast(x, source, target, mode):
    """x in the language's type `source`, cast to `target`."""
    text = f"fn @main(%x: tensor[n; {source}]) -> tensor[n; {target}] {{\n  %y = cast(%x, dtype={target})\n  %y\n}}\n"
    module = tenon.ir.parse(text)
    if mode == "interpret":
        return np.asarray(module.interpret("main", x))
    return np.asarray(tenon.compile(module, mode=mode)(x))


def awkward_floats():
    """Every f16 and bf16, and the middle of each two neighbouring numbers of every narrow type with its neighbours."""
    halves = np.arange(2**16, dtype="uint16")
    parts = [halves.view("float16").astype("float32"), (halves.astype("uint32") << 16).view("float32")]
    for name in FLOATS:
        with np.errstate(invalid="ignore"):
            numbers = every_number(name).astype("float32")
        numbers = np.unique(numbers[np.isfinite(numbers)])
        middle = (numbers[1:] / 2 + numbers[:-1] / 2).astype("float32")
        parts += [middle, np.nextafter(middle, np.float32(-np.inf)), np.nextafter(middle, np.float32(np.inf))]
    return np.concatenate(parts)


def assert_same_bits(found, expected):
    """All NaNs are equal; zeros differ by their sign."""
    with np.errstate(invalid="ignore"):
        nan = np.isnan(expected.astype("float32"))
        assert np.array_equal(np.isnan(found.astype("float32")), nan)
    unsigned = f"u{found.itemsize}"
    np.testing.assert_array_equal(found.view(unsigned)[~nan], expected.view(unsigned)[~nan])


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_arrays_are_shared_both_ways(name):
    array = every_number(name)
    tensor = tenon.Tensor(array)
    assert tensor.dtype == dtype_of(name).name
    back = np.asarray(tensor)
    assert back.dtype == array.dtype and np.shares_memory(back, array)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_every_number_widens(name, mode):
    numbers = every_number(name)
    with np.errstate(invalid="ignore"):
        expected = numbers.astype("float32")
    np.testing.assert_array_equal(cast(numbers, name, "f32", mode), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_rounded(name, mode):
    x = awkward_floats()
    if name == "f4e2m1fn":
        x = x[~np.isnan(x)]  # it has no NaN
    if name == "f8e8m0fnu":
        x = x[~((x > 0) & (x < 2.0**-126))]  # ml_dtypes doesn't round these to the nearest
    with np.errstate(all="ignore"):
        expected = x.astype(dtype_of(name))
    assert_same_bits(cast(x, "f32", name, mode), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FLOATS)
def test_doubles_are_rounded_once(name, mode):
    """Beside the middle of two numbers, closer to it than any f32."""
    numbers = every_number(name).astype("float64")
    numbers = np.unique(numbers[np.isfinite(numbers) & (numbers > 0)])
    middle = (numbers[1:] + numbers[:-1]) / 2
    above, below = middle * (1 + 2.0**-50), middle * (1 - 2.0**-50)
    np.testing.assert_array_equal(cast(above, "f64", name, mode).astype("float64"), numbers[1:])
    np.testing.assert_array_equal(cast(below, "f64", name, mode).astype("float64"), numbers[:-1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_and_floats_saturate(name, mode):
    low, high = ml_dtypes.iinfo(dtype_of(name)).min, ml_dtypes.iinfo(dtype_of(name)).max
    whole = np.arange(-40, 40, dtype="int32")
    wrapped = (whole - int(low)) % (int(high) - int(low) + 1) + int(low)
    np.testing.assert_array_equal(cast(whole, "i32", name, mode).astype("int32"), wrapped)
    floats = np.array([-np.inf, -9.5, -2, -1.9, -0.5, 0, 0.9, 1.5, 3, 3.99, 7.7, 16, np.inf, np.nan], "float32")
    saturated = np.clip(np.trunc(np.nan_to_num(floats)), int(low), int(high)).astype("int32")
    np.testing.assert_array_equal(cast(floats, "f32", name, mode).astype("int32"), saturated)
