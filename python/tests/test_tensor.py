"""tenon.Tensor: memory is shared both ways, and kept alive."""

import array
import copy
import ctypes
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

import tenon

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_comes_back_with_its_dtype_shape_and_memory(dtype):
    a = np.arange(6).astype(dtype).reshape(2, 3)
    t = tenon.Tensor(a)
    assert (t.dtype, t.shape, t.ndim, t.nbytes) == (dtype, (2, 3), 2, a.nbytes)
    back = np.asarray(t)
    assert back.dtype == a.dtype
    assert np.shares_memory(back, a)
    np.testing.assert_array_equal(back, a)


def test_bfloat16_is_that_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.array([1, 2.5, -3], dtype=ml_dtypes.bfloat16)
    t = tenon.Tensor(a)
    assert t.dtype == "bfloat16"
    back = np.asarray(t)
    assert back.dtype == a.dtype and np.shares_memory(back, a)
    assert back.tolist() == [1.0, 2.5, -3.0]
    del t
    gc.collect()
    assert back.tolist() == [1.0, 2.5, -3.0]


def test_views_with_strides_are_shared():
    a = np.arange(12, dtype="float32").reshape(3, 4)[::2, ::-1]
    t = tenon.Tensor(a)
    assert np.shares_memory(np.asarray(t), a)
    np.testing.assert_array_equal(np.asarray(t), a)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1, 1, 1, 1, 2)])
def test_every_rank_and_empty_arrays(shape):
    a = np.ones(shape, "float32")
    t = tenon.Tensor(a)
    assert t.shape == shape and t.nbytes == a.nbytes
    np.testing.assert_array_equal(np.asarray(t), a)


def test_the_field_of_a_structured_array_is_copied():
    a = np.zeros(3, dtype=[("a", "i1"), ("b", "f4")])
    a["b"] = [1, 2, 3]
    assert tenon.Tensor(a["b"]).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("value", [array.array("d", [1, 2]), bytearray(b"\1\2"), memoryview(b"\1\2")])
def test_the_buffer_protocol_is_taken(value):
    assert tenon.Tensor(value).tolist() == [1, 2]


def test_a_tensor_is_a_buffer():
    view = memoryview(tenon.Tensor(np.arange(3, dtype="int16")))
    assert (view.format, view.tolist()) == ("h", [0, 1, 2])


def test_dlpack_goes_both_ways():
    a = np.arange(3, dtype="float32")

    class Producer:
        def __dlpack__(self, **kwargs):
            return a.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    t = tenon.Tensor(Producer())
    assert np.shares_memory(np.from_dlpack(t), a)
    assert t.__dlpack_device__() == (1, 0)


def test_dlpack_can_copy():
    t = tenon.Tensor(np.arange(3, dtype="float32"))
    assert not np.shares_memory(np.from_dlpack(t, copy=True), np.asarray(t))


def test_an_unused_capsule_releases_its_tensor():
    a = np.arange(3, dtype="float32")
    end = weakref.finalize(a, lambda: None)
    capsule = tenon.Tensor(a).__dlpack__(max_version=(1, 0))
    del a
    assert end.alive
    del capsule
    gc.collect()
    assert not end.alive


def test_an_array_lives_as_long_as_its_tensors_and_no_longer(add, x):
    class Array(np.ndarray):
        pass

    a = x.view(Array)
    end = weakref.finalize(a, lambda: None)
    t = tenon.Tensor(a)
    del a
    gc.collect()
    assert end.alive
    del t
    gc.collect()
    assert not end.alive


def test_a_result_outlives_its_executable(x):
    exe = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }"))
    y = np.asarray(exe(x))
    del exe
    gc.collect()
    assert y.tolist() == [0, 1, 2, 3]


def test_read_only_arrays_stay_read_only():
    a = np.arange(3, dtype="float32")
    a.flags.writeable = False
    t = tenon.Tensor(a)
    assert t.read_only
    assert not np.asarray(t).flags.writeable
    assert memoryview(t).readonly


def results_of(body, *args):
    return tenon.compile(tenon.ir.parse(f"fn @main(%x: tensor[2, 3; f32]) -> {body}"), libraries="none")(*args)


@pytest.mark.parametrize(
    "body",
    [
        "(tensor[2, 3; f32], tensor[2, 3; f32]) { %0 = relu(%x)\n (%0, %0) }",
        "(tensor[2, 3; f32], tensor[6; f32]) { %0 = relu(%x)\n %1 = reshape(%0, shape=[6])\n (%0, %1) }",
        "(tensor[2, 3; f32], (tensor[2, 3; f32], i64)) { %0 = relu(%x)\n %t = (%0, 1)\n (%0, %t) }",
    ],
)
def test_results_that_share_memory_are_read_only(body):
    first, second = results_of(body, np.ones((2, 3), "float32"))
    second = second[0] if isinstance(second, tuple) else second
    assert np.shares_memory(np.asarray(first), np.asarray(second))
    assert first.read_only and second.read_only
    assert second.tolist() == np.ones(second.shape).tolist()


def test_results_with_memory_of_their_own_are_writable():
    body = "(tensor[2, 3; f32], tensor[2, 3; f32]) { %0 = relu(%x)\n %1 = exp(%x)\n (%0, %1) }"
    assert [y.read_only for y in results_of(body, np.ones((2, 3), "float32"))] == [False, False]


def test_a_consumer_of_dlpack_cannot_change_the_program():
    exe = tenon.compile(tenon.ir.parse("fn @main() -> tensor[2; f32] { tensor[2; f32]{1, 2} }"))
    assert exe().read_only
    assert not np.asarray(exe()).flags.writeable
    assert not np.shares_memory(np.from_dlpack(exe()), np.asarray(exe()))
    assert np.shares_memory(np.from_dlpack(exe(), copy=False), np.asarray(exe()))


@pytest.mark.parametrize("arguments", [{"stream": "a"}, {"max_version": "ab"}, {"copy": "x"}])
def test_wrong_arguments_of_dlpack_are_type_errors(arguments):
    with pytest.raises(TypeError, match=next(iter(arguments)) + " is a"):
        tenon.Tensor(np.ones(2)).__dlpack__(**arguments)


def test_numbers_and_elements():
    t = tenon.Tensor(np.array([[1.5, 2]], dtype="float32"))
    assert (len(t), t[0].tolist(), t.tolist()) == (1, [1.5, 2], [[1.5, 2]])
    scalar = tenon.Tensor(np.float32(3).reshape(()))
    assert (scalar.item(), float(scalar), int(scalar), scalar.shape) == (3, 3, 3, ())
    with pytest.raises(TypeError, match="rank 0"):
        len(scalar)


def test_truth_is_that_of_the_only_element():
    def truth(values):
        return bool(tenon.Tensor(np.array(values, dtype="float32")))

    assert [truth(0), truth(2), truth([0]), truth([[-1]])] == [False, True, False, True]
    for values in ([0, 0], [1, 1]):
        with pytest.raises(ValueError, match="more than one element"):
            truth(values)


@pytest.mark.parametrize("a", [np.array(["2026"], "M8[Y]"), np.zeros(1, "clongdouble"), np.zeros(2, dtype=">f4"), np.array([None])])
def test_other_dtypes_are_refused_by_name(a):
    with pytest.raises(TypeError, match="no tensors of dtype"):
        tenon.Tensor(a)


class OwnCopy(np.ndarray):
    def copy(self, *args):
        return 5


class bfloat16(np.void):  # by the name of ml_dtypes'
    pass


class OwnSize(np.ndarray):
    itemsize = 2


def test_what_a_subclass_of_numpys_array_claims_is_not_believed():
    fields = np.ones(2, dtype=[("a", "f4"), ("b", "i1")])
    assert tenon.Tensor(fields["a"].view(OwnCopy)).tolist() == [1, 1]
    with pytest.raises(TypeError, match="no tensors of dtype"):
        tenon.Tensor(np.zeros(4, np.dtype((bfloat16, [("a", "i1")]))).view(OwnSize))


def test_something_else_is_no_tensor():
    with pytest.raises(TypeError, match="an array, a tensor or a nested list of numbers is expected, not"):
        tenon.Tensor("abc")


def test_a_tensor_prints_its_type_and_elements():
    assert repr(tenon.Tensor(np.arange(3))) == "tensor[3; i64] = [0, 1, 2]"
    assert repr(tenon.Tensor(np.zeros((2, 1), "float32"))) == "tensor[2, 1; f32] = [[0.],\n                     [0.]]"
    assert repr(tenon.Tensor(np.array(3.5))) == "tensor[f64] = 3.5"
    assert "..." in repr(tenon.Tensor(np.zeros(100)))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
def test_tensors_can_be_pickled_and_copied(dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    array = np.arange(6).reshape(2, 3).astype(dtype).T
    t = tenon.Tensor(array)  # not compact
    for copied in (pickle.loads(pickle.dumps(t)), copy.copy(t), copy.deepcopy(t)):
        assert copied.dtype == t.dtype and copied.tolist() == array.tolist()
        assert not copied.read_only
    empty = tenon.Tensor(np.zeros((0, 2), dtype))
    assert pickle.loads(pickle.dumps(empty)).shape == (0, 2)
    assert pickle.loads(pickle.dumps(tenon.Tensor(np.array(1, dtype)))).tolist() == 1


def test_a_copy_has_elements_of_its_own():
    x = np.zeros(2, "float32")
    copied = copy.copy(tenon.Tensor(x))
    x[0] = 1
    assert copied.tolist() == [0, 0]


def test_a_dtype_equals_those_of_numpy():
    dtype = tenon.Tensor(np.zeros(2, "float32")).dtype
    assert dtype == np.float32 and np.float32 == dtype and dtype == np.dtype("float32") and dtype == "float32"
    assert dtype != np.float64 and dtype != None and dtype != 3 and not dtype != np.float32  # noqa: E711
    assert np.zeros(1, dtype).dtype == dtype and dtype.name == "float32" and {dtype: 1}["float32"] == 1
    assert type(pickle.loads(pickle.dumps(dtype))) is type(dtype)
    exe = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { %x }"))
    assert exe.signature().params[0].dtype == np.float32


def test_tensors_have_sizes_and_compare_their_elements():
    t = tenon.Tensor(np.arange(6, dtype="float32").reshape(2, 3))
    assert t.size == 6 and t.nbytes == 24
    assert (t == np.asarray(t)).all() and (t == t).all() and not (t != t).any()
    assert (t == 2).sum() == 1 and isinstance(hash(t), int)


class Buffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def requested(exporter, flags):
    """What the exporter's buffer has, or that it is refused."""
    buffer = Buffer()
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(exporter), ctypes.byref(buffer), flags)
    except (BufferError, ValueError):  # NumPy raises both
        return "refused"
    sizes = [list(p[: buffer.ndim]) if p else None for p in (buffer.shape, buffer.strides)]
    if buffer.len == 0:
        sizes[1] = None  # strides without a meaning
    found = (buffer.buf, buffer.len, buffer.itemsize, buffer.ndim, buffer.format, *sizes)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return found


WRITABLE, FORMAT, ND, STRIDES, C, F, ANY = 1, 4, 8, 0x18, 0x38, 0x58, 0x98


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[:1, :1],
        lambda a: a[0],
        lambda a: a[:, 0],
        lambda a: a[:0],
        lambda a: a[::-1],
    ],
)
def test_every_kind_of_buffer_is_that_of_numpy(view):
    a = view(np.arange(12, dtype="float32").reshape(3, 4))
    for order in (0, ND, STRIDES, C, F, ANY, C | F):
        for more in (0, WRITABLE, FORMAT, WRITABLE | FORMAT):
            assert requested(tenon.Tensor(a), order | more) == requested(a, order | more), (order, more)


def test_a_dtype_is_that_of_ml_dtypes_by_its_size_too():
    bfloat16 = type("bfloat16", (np.void,), {})
    with pytest.raises(TypeError, match="no tensors of dtype"):
        tenon.Tensor(np.zeros(4, np.dtype((bfloat16, "V1"))))


def test_an_output_is_never_a_copy(add):
    fields = np.zeros(4, dtype=[("a", "i1"), ("b", "f4")])["b"]
    with pytest.raises(TypeError, match="an output can't be a field of a structured array"):
        add(np.ones(4, "float32"), np.ones(4, "float32"), out=fields)


def test_strides_of_an_empty_tensor_do_not_overflow():
    float32 = (2, 32, 1)
    view = memoryview(tenon._values._tensor_of(float32, (0, 2**31, 2**32), b""))
    assert view.shape == (0, 2**31, 2**32)
    assert view.strides == (4, 4, 4)


def test_instances_without_init_are_refused(add):
    tensor, function = tenon.Tensor.__new__(tenon.Tensor), tenon.Function.__new__(tenon.Function)
    x = np.ones(4, "float32")
    uses = [memoryview, np.asarray, repr, len, add, lambda t: t[0], lambda t: t.shape, lambda t: add(x, x, out=t)]
    for use in uses:
        with pytest.raises((TypeError, BufferError)):
            use(tensor)
    for use in (lambda: function(), lambda: function.bind(1), lambda: function.signature):
        with pytest.raises(TypeError):
            use()
    machines = tenon._tenon.Machines.__new__(tenon._tenon.Machines)
    with pytest.raises(TypeError):
        machines.trim()


def test_buffers_without_strides_are_taken():
    rows = ((ctypes.c_int16 * 2) * 3)((1, 2), (3, 4), (5, 6))
    t = tenon.Tensor(rows)
    assert np.asarray(t).tolist() == [[1, 2], [3, 4], [5, 6]]
    rows[0][1] = 7
    assert np.asarray(t)[0, 1] == 7


def test_a_method_of_another_class_is_not_called():
    class Odd:
        is_neg = set.clear

        def __dlpack__(self, **options):
            raise BufferError("no elements")

    with pytest.raises(BufferError, match="no elements"):
        tenon.Tensor(Odd())


def test_memory_of_another_device_is_not_read():
    class Managed(ctypes.Structure):  # DLManagedTensor
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device_type", ctypes.c_int32),
            ("device_id", ctypes.c_int32),
            ("ndim", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.c_void_p),
            ("byte_offset", ctypes.c_uint64),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    shape = (ctypes.c_int64 * 1)(4)
    managed = Managed(0x10000, 2, 0, 1, 2, 32, 1, shape, None, 0, None, None)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    class Elsewhere:
        def __dlpack__(self, **options):
            return new_capsule(ctypes.addressof(managed), b"dltensor", None)

    t = tenon.Tensor(Elsewhere())
    assert repr(t) == "tensor[4; f32]"
    for read in (memoryview, np.asarray, pickle.dumps):
        with pytest.raises(Exception, match="on another device"):
            read(t)


@pytest.mark.parametrize(
    "arguments, says",
    [({"stream": 3}, "has no streams"), ({"dl_device": (2, 0)}, "can't be copied to another device")],
)
def test_dlpack_has_no_streams_and_one_device(arguments, says):
    with pytest.raises((ValueError, BufferError), match=says):
        tenon.Tensor(np.ones(2)).__dlpack__(**arguments)
    assert tenon.Tensor(np.ones(2)).__dlpack__(stream=-1, dl_device=(1, 0), copy=True) is not None


def test_what_dlpack_returns_must_be_a_new_capsule():
    class Exporter:
        def __dlpack__(self, **options):
            return self.returned

        def __dlpack_device__(self):
            return 1, 0

    exporter = Exporter()
    exporter.returned = 3
    with pytest.raises(TypeError, match=r"Exporter.__dlpack__\(\) must return a capsule with a tensor, not int"):
        tenon.Tensor(exporter)
    exporter.returned = tenon.Tensor(np.ones(2)).__dlpack__()
    assert tenon.Tensor(exporter).tolist() == [1, 1]
    with pytest.raises(TypeError, match="not a capsule that was used before"):
        tenon.Tensor(exporter)


def test_strings_are_no_dlpack():
    with pytest.raises(BufferError, match="DLPack can't express a tensor of strings"):
        tenon.Tensor(np.array(["a"])).__dlpack__()


def test_numpy_asks_for_a_dtype_and_a_copy():
    t = tenon.Tensor(np.arange(3, dtype="int32"))
    assert np.asarray(t, dtype="float64").dtype == "float64"
    assert not np.shares_memory(t.__array__(copy=True), np.asarray(t))
    with pytest.raises(ValueError, match="another dtype needs a copy"):
        t.__array__(dtype=np.dtype("float64"), copy=False)


def test_a_scalar_has_no_length():
    with pytest.raises(TypeError, match="a tensor of rank 0 has no length"):
        len(tenon.Tensor(np.ones(())))


def test_a_damaged_pickle_is_refused():
    float32 = (2, 32, 1)
    for size in (11, 13):
        with pytest.raises(ValueError, match="the pickled tensor is damaged"):
            tenon._tenon.tensor_of(float32, (3,), bytes(size))
    for shape in ((2.5,), (1 << 63,), "ab"):
        with pytest.raises(ValueError, match="the pickled tensor is damaged: a size is not an integer"):
            tenon._tenon.tensor_of(float32, shape, b"")


def test_a_dtype_that_numpy_lacks_needs_ml_dtypes(monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    t = tenon.Tensor(np.ones(2, dtype=ml_dtypes.bfloat16))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="NumPy has no bfloat16: `pip install ml_dtypes` adds it"):
        t.numpy()
    assert repr(t) == "tensor[2; bf16]"


def test_an_instance_without_init_says_so():
    with pytest.raises((TypeError, BufferError), match="made without __init__"):
        memoryview(tenon.Tensor.__new__(tenon.Tensor))


def test_read_only_tensors_are_no_writable_buffers():
    a = np.ones(2, "float32")
    a.flags.writeable = False
    buffer = np.frombuffer(tenon.Tensor(a), "float32")  # which asks for a writable one first
    assert not buffer.flags.writeable and buffer.tolist() == [1, 1]


def test_tensors_of_ml_dtypes_are_compact_for_numpy():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    t = tenon.Tensor(np.ones(4, dtype=ml_dtypes.bfloat16)[::2])
    with pytest.raises(BufferError, match="isn't compact: copy it with numpy.ascontiguousarray"):
        t.numpy()


def test_a_scalar_that_gives_itself_is_refused():
    class Endless(np.float64):
        def item(self):
            return Endless(1.0)

    exe = tenon.compile(tenon.ir.parse("fn @main(%x: f32) -> f32 { %x }"))
    with pytest.raises(RecursionError):
        exe(Endless(1.0))
