#include "python/src/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <thread>

namespace tenon::python {
namespace {

pthread_t main_thread;
std::atomic<int> compiling = 0;
constinit thread_local int compiling_here = 0;

// Runs without an interpreter, before static objects are destroyed.
void wait_for_compilations() {
  using namespace std::chrono_literals;
  const auto latest = std::chrono::steady_clock::now() + 10s;
  while (compiling > 0 && std::chrono::steady_clock::now() < latest)
    std::this_thread::sleep_for(1ms);
}

// Whether this thread may have the GIL.
bool may_enter() {
  if (!is_ending()) [[likely]]
    return true;
  // The main thread has its state until nothing of the interpreter is left.
  return is_main_thread() && PyGILState_GetThisThreadState();
}

// Not PyGILState_Check, which doesn't look once there is a second interpreter.
bool has_gil() {
  const PyThreadState* const own = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
  return own && own == PyThreadState_GetUnchecked();
#else
  return own && own == _PyThreadState_UncheckedGet();
#endif
}

}  // namespace

bool is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() || !Py_IsInitialized();
#else
  return _Py_IsFinalizing() || !Py_IsInitialized();
#endif
}

void watch_for_end() {
  const auto main = nanobind::module_::import_("threading").attr("main_thread")();
  main_thread = static_cast<pthread_t>(nanobind::cast<uintptr_t>(main.attr("ident")));
  // In a forked child, the thread that forked is the main one, and no other exists.
  pthread_atfork(nullptr, nullptr, [] {
    main_thread = pthread_self();
    compiling = compiling_here;
  });
  Py_AtExit(wait_for_compilations);
}

bool is_main_thread() {
  return pthread_equal(pthread_self(), main_thread);
}

WithGil::WithGil() : had_(has_gil()) {
  if (!had_ && may_enter()) acquired_.emplace();
}

CompilingWithoutGil::CompilingWithoutGil() : state_(PyEval_SaveThread()) {
  ++compiling;
  ++compiling_here;
}

CompilingWithoutGil::~CompilingWithoutGil() {
  --compiling;
  --compiling_here;
  PyEval_RestoreThread(state_);
}

#if PY_VERSION_HEX < 0x030E0000

namespace {

[[noreturn]] void stop_thread() {
  compiling -= compiling_here;
  for (;;) pause();
}

// A thread's state, unless the interpreter may have freed it.
PyThreadState* unless_gone(PyThreadState* state) {
  if (!may_enter()) stop_thread();
  return state;
}

// What came out of a function in C: the end of this thread.
[[noreturn]] void stop_unwinding() {
  if (!is_ending()) throw;  // somebody called pthread_exit
  stop_thread();
}

}  // namespace

// The linker replaces calls of NAME by those of __wrap_NAME (--wrap; CMakeLists.txt reads the names
// from here). Not listed are functions that neither take the GIL nor run code in Python, which
// python/tests/test_gil.py names. Making an object that Python's garbage collector sees may run it,
// and it runs code in Python.
#define TENON_WRAP(result, name, params, args) \
  extern "C" result __real_##name params;      \
  extern "C" result __wrap_##name params {     \
    try {                                      \
      return __real_##name args;               \
    } catch (...) {                            \
      stop_unwinding();                        \
    }                                          \
  }

// The same for a function with further arguments, in terms of others of this list.
#define TENON_WRAP_VARIADIC(result, name, params) extern "C" result __wrap_##name params

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
using Object = PyObject;
using Size = Py_ssize_t;
// clang-format off
TENON_WRAP(void, PyEval_RestoreThread, (PyThreadState* state), (unless_gone(state)))
TENON_WRAP(PyGILState_STATE, PyGILState_Ensure, (), ())
TENON_WRAP(void, PyGILState_Release, (PyGILState_STATE state), (state))
TENON_WRAP(void, _Py_Dealloc, (Object* o), (o))
TENON_WRAP(int, PyErr_CheckSignals, (), ())
TENON_WRAP(void, PyErr_Clear, (), ())
TENON_WRAP(void, PyErr_NormalizeException, (Object** type, Object** value, Object** trace), (type, value, trace))
TENON_WRAP(void, PyErr_Restore, (Object* type, Object* value, Object* trace), (type, value, trace))
TENON_WRAP(void, PyErr_SetString, (Object* type, const char* text), (type, text))
TENON_WRAP(Object*, PyErr_FormatV, (Object* type, const char* format, va_list args), (type, format, args))
TENON_WRAP(int, PyErr_WarnEx, (Object* category, const char* text, Size level), (category, text, level))
TENON_WRAP(void, PyErr_SetRaisedException, (Object* error), (error))
TENON_WRAP(void, PyException_SetCause, (Object* error, Object* cause), (error, cause))
TENON_WRAP(void, PyException_SetContext, (Object* error, Object* context), (error, context))
TENON_WRAP(int, PyException_SetTraceback, (Object* error, Object* trace), (error, trace))
TENON_WRAP(void, PyErr_SetObject, (Object* type, Object* value), (type, value))
TENON_WRAP(void, PyErr_WriteUnraisable, (Object* o), (o))
TENON_WRAP(void, PyObject_ClearWeakRefs, (Object* o), (o))
TENON_WRAP(int, PyObject_GenericSetAttr, (Object* o, Object* name, Object* value), (o, name, value))
TENON_WRAP(Object*, PyEval_EvalCode, (Object* code, Object* globals, Object* locals), (code, globals, locals))
TENON_WRAP(Object*, Py_CompileStringExFlags, (const char* text, const char* file, int start, PyCompilerFlags* flags, int level), (text, file, start, flags, level))
TENON_WRAP(PyFrameObject*, PyFrame_GetBack, (PyFrameObject* frame), (frame))
TENON_WRAP(Object*, PyInterpreterState_GetDict, (PyInterpreterState* state), (state))
TENON_WRAP(Object*, PyModule_NewObject, (Object* name), (name))
TENON_WRAP(Object*, PyCMethod_New, (PyMethodDef* method, Object* self, Object* module, PyTypeObject* type), (method, self, module, type))
TENON_WRAP(Object*, PyType_FromSpec, (PyType_Spec* spec), (spec))
TENON_WRAP(Object*, PyType_FromMetaclass, (PyTypeObject* metaclass, Object* module, PyType_Spec* spec, Object* bases), (metaclass, module, spec, bases))
TENON_WRAP(int, PyType_Ready, (PyTypeObject* type), (type))
TENON_WRAP(Object*, PyType_GenericAlloc, (PyTypeObject* type, Size items), (type, items))
TENON_WRAP(Object*, PyType_GenericNew, (PyTypeObject* type, Object* args, Object* named), (type, args, named))
TENON_WRAP(Object*, _PyObject_GC_New, (PyTypeObject* type), (type))
TENON_WRAP(Object*, PyWeakref_NewRef, (Object* o, Object* callback), (o, callback))
TENON_WRAP(Object*, Py_GenericAlias, (Object* origin, Object* args), (origin, args))
TENON_WRAP(int, PyObject_GetBuffer, (Object* o, Py_buffer* buffer, int flags), (o, buffer, flags))
TENON_WRAP(void, PyBuffer_Release, (Py_buffer* buffer), (buffer))
TENON_WRAP(Object*, PyMemoryView_FromObject, (Object* o), (o))
TENON_WRAP(Object*, PyMemoryView_FromMemory, (char* bytes, Size size, int flags), (bytes, size, flags))
TENON_WRAP(Object*, PyImport_ImportModule, (const char* name), (name))
TENON_WRAP(Object*, PyImport_GetModule, (Object* name), (name))
TENON_WRAP(Object*, PyObject_Call, (Object* f, Object* args, Object* named), (f, args, named))
TENON_WRAP(Object*, PyObject_CallObject, (Object* f, Object* args), (f, args))
TENON_WRAP(Object*, PyObject_Vectorcall, (Object* f, Object* const* args, size_t n, Object* names), (f, args, n, names))
TENON_WRAP(Object*, PyObject_VectorcallMethod, (Object* name, Object* const* args, size_t n, Object* names), (name, args, n, names))
TENON_WRAP(Object*, PyObject_GetAttr, (Object* o, Object* name), (o, name))
TENON_WRAP(Object*, PyObject_GetAttrString, (Object* o, const char* name), (o, name))
TENON_WRAP(int, _PyObject_LookupAttr, (Object* o, Object* name, Object** out), (o, name, out))
TENON_WRAP(int, PyObject_GetOptionalAttr, (Object* o, Object* name, Object** out), (o, name, out))
TENON_WRAP(Object*, PyObject_GenericGetAttr, (Object* o, Object* name), (o, name))
TENON_WRAP(int, PyObject_HasAttr, (Object* o, Object* name), (o, name))
TENON_WRAP(int, PyObject_SetAttr, (Object* o, Object* name, Object* value), (o, name, value))
TENON_WRAP(Object*, PyObject_GetItem, (Object* o, Object* key), (o, key))
TENON_WRAP(int, PyObject_IsInstance, (Object* o, Object* type), (o, type))
TENON_WRAP(Object*, PyObject_RichCompare, (Object* a, Object* b, int op), (a, b, op))
TENON_WRAP(int, PyObject_RichCompareBool, (Object* a, Object* b, int op), (a, b, op))
TENON_WRAP(Size, PyObject_Size, (Object* o), (o))
TENON_WRAP(Object*, PyObject_Str, (Object* o), (o))
TENON_WRAP(Object*, PyObject_Repr, (Object* o), (o))
TENON_WRAP(Object*, PyObject_GetIter, (Object* o), (o))
TENON_WRAP(Object*, PyIter_Next, (Object* iterator), (iterator))
TENON_WRAP(Object*, PyNumber_Add, (Object* a, Object* b), (a, b))
TENON_WRAP(Object*, PyNumber_Float, (Object* o), (o))
TENON_WRAP(Object*, PyNumber_Index, (Object* o), (o))
TENON_WRAP(Object*, PyNumber_Long, (Object* o), (o))
TENON_WRAP(long long, PyLong_AsLongLongAndOverflow, (Object* o, int* overflow), (o, overflow))
TENON_WRAP(unsigned long long, PyLong_AsUnsignedLongLong, (Object* o), (o))
TENON_WRAP(Object*, PySequence_GetItem, (Object* o, Size i), (o, i))
TENON_WRAP(Object*, PySequence_List, (Object* o), (o))
TENON_WRAP(Size, PySequence_Size, (Object* o), (o))
TENON_WRAP(Object*, PySequence_Tuple, (Object* o), (o))
TENON_WRAP(Object*, PyTuple_New, (Size size), (size))
TENON_WRAP(Object*, PyList_New, (Size size), (size))
TENON_WRAP(Object*, PySlice_New, (Object* start, Object* stop, Object* step), (start, stop, step))
TENON_WRAP(Object*, PyDict_New, (), ())
TENON_WRAP(Object*, PyDict_Copy, (Object* dict), (dict))
TENON_WRAP(Object*, PyDict_Keys, (Object* dict), (dict))
TENON_WRAP(Object*, PyDict_Values, (Object* dict), (dict))
TENON_WRAP(int, PyDict_SetItemString, (Object* dict, const char* key, Object* value), (dict, key, value))
TENON_WRAP(int, PyDict_GetItemRef, (Object* dict, Object* key, Object** out), (dict, key, out))
TENON_WRAP(int, PyDict_SetDefaultRef, (Object* dict, Object* key, Object* value, Object** out), (dict, key, value, out))
TENON_WRAP(int, PyDict_Contains, (Object* dict, Object* key), (dict, key))
TENON_WRAP(Object*, PyDict_GetItemWithError, (Object* dict, Object* key), (dict, key))
TENON_WRAP(int, PyDict_SetItem, (Object* dict, Object* key, Object* value), (dict, key, value))
TENON_WRAP(int, PyDict_Update, (Object* dict, Object* other), (dict, other))
TENON_WRAP(int, PyUnicode_FSConverter, (Object* path, void* out), (path, out))
#ifdef Py_GIL_DISABLED
TENON_WRAP(void, PyMutex_Lock, (PyMutex* mutex), (mutex))
#endif
// clang-format on

TENON_WRAP_VARIADIC(Object*, PyErr_Format, (Object * type, const char* format, ...)) {
  va_list args;
  va_start(args, format);
  PyErr_FormatV(type, format, args);
  va_end(args);
  return nullptr;
}
TENON_WRAP_VARIADIC(int, PyErr_WarnFormat,
                    (Object * category, Size level, const char* format, ...)) {
  va_list args;
  va_start(args, format);
  const nanobind::object text = nanobind::steal(PyUnicode_FromFormatV(format, args));
  va_end(args);
  const char* const bytes =
      text.is_valid() ? PyUnicode_AsUTF8AndSize(text.ptr(), nullptr) : nullptr;
  return bytes ? PyErr_WarnEx(category, bytes, level) : -1;
}
TENON_WRAP_VARIADIC(Object*, PyTuple_Pack, (Size size, ...)) {
  Object* const tuple = PyTuple_New(size);
  va_list args;
  va_start(args, size);
  for (Size i = 0; tuple && i < size; ++i) {
    PyTuple_SET_ITEM(tuple, i, Py_NewRef(va_arg(args, Object*)));
  }
  va_end(args);
  return tuple;
}
// NOLINTEND(bugprone-reserved-identifier)

#endif

}  // namespace tenon::python
