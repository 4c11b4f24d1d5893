"""Which of CPython's functions the binding may call without wrapping them (python/src/gil.cc)."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tenon import _tenon

SOURCE = pathlib.Path(__file__).parents[1] / "src/gil.cc"
pytestmark = pytest.mark.skipif(not SOURCE.exists(), reason="the binding's source isn't beside the tests")

# They neither take the GIL nor run code in Python: they look at what is there, convert exact types, or make objects
# that the garbage collector doesn't see.
HARMLESS = set(
    """
    PyBytes_AsString PyBytes_FromStringAndSize PyBytes_Size
    PyCallable_Check PyCapsule_GetPointer PyCapsule_IsValid PyCapsule_New PyCapsule_SetName
    PyDict_Next
    PyErr_ExceptionMatches PyErr_Fetch PyErr_GetRaisedException PyErr_GivenExceptionMatches PyErr_NoMemory PyErr_Occurred
    PyEval_SaveThread PyException_GetTraceback PyFloat_FromDouble PyFrame_GetCode PyFrame_GetLineNumber
    PyGILState_Check PyGILState_GetThisThreadState PyIndex_Check PyInterpreterState_Get
    PyList_Append PyList_GetItemRef
    PyLong_FromLong PyLong_FromLongLong PyLong_FromUnsignedLong PyLong_FromUnsignedLongLong
    PyMem_Calloc PyMem_Free PyMem_Malloc
    PyModuleDef_Init PyModule_GetDef PyModule_GetDict PyModule_GetState
    PyMutex_Unlock
    PyObject_CheckBuffer PyObject_Free PyObject_GC_Del PyObject_GC_Track PyObject_GC_UnTrack PyObject_Init
    PyObject_Malloc PyObject_Realloc
    PySequence_Check PyThread_get_thread_ident
    PyType_GetName PyType_GetSlot PyType_IsSubtype PyType_Modified
    PyUnicode_AsUTF8AndSize PyUnicode_CompareWithASCIIString PyUnicode_DecodeUTF8 PyUnicode_FromFormat
    PyUnicode_FromFormatV PyUnicode_FromString PyUnicode_FromStringAndSize PyUnicode_InternFromString
    PyUnicode_InternInPlace
    PyUnstable_EnableTryIncRef PyUnstable_TryIncRef
    Py_AtExit Py_EnterRecursiveCall Py_IsFinalizing Py_IsInitialized Py_LeaveRecursiveCall
    PyThreadState_GetUnchecked _PyObject_New _PyThreadState_UncheckedGet _PyType_Lookup _PyType_LookupRef _Py_IsFinalizing
    """.split()
)
# Slots of types: Python calls them, and nothing of the binding is below them on the stack.
SLOTS = {"PyObject_GenericGetDict", "PyObject_GenericSetDict", "PyVectorcall_Call"}
DATA = re.compile(r"PyExc_\w+|_?Py\w+(Type|Struct)")


def wrapped():
    return set(re.findall(r"^TENON_WRAP\w*\([^,]+, (\w+),", SOURCE.read_text(), re.MULTILINE))


def test_the_list_of_wrapped_functions_is_read():
    assert {"PyEval_RestoreThread", "PyErr_Format", "PyMutex_Lock"} <= wrapped()
    assert not wrapped() & (HARMLESS | SLOTS)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python itself stops such threads since 3.14")
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is missing")
def test_each_function_that_may_run_python_is_wrapped():
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", _tenon.__file__], check=True, capture_output=True, text=True
    ).stdout
    used = {line.split()[-1].partition("@")[0] for line in listing.splitlines()}
    functions = {name for name in used if re.match("_?Py", name) and not DATA.fullmatch(name)}
    assert functions & wrapped()  # the list is of this module
    unknown = sorted(functions - wrapped() - HARMLESS - SLOTS)
    assert not unknown, (
        f"the binding calls {', '.join(unknown)}, which may take the GIL or run code in Python: wrap them in "
        "python/src/gil.cc, or add those that do neither to HARMLESS here"
    )
