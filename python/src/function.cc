// tenon.Function, and Python callables as functions.
#include <nanobind/stl/string.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/interrupt.h"

namespace tenon::python {
namespace {

// "x: tensor[n; f32], y: i64"
std::string list_of(const std::vector<Parameter>& values) {
  std::string text;
  for (const Parameter& p : values) {
    if (&p != values.data()) text += ", ";
    if (nb::len(p.name) > 0) text += nb::cast<std::string>(p.name) + ": ";
    text += p.type;
  }
  return text;
}

// The arguments of a call, in the order of the parameters.
class Arguments {
 public:
  Arguments(const Function& f, PyObject* const* args, size_t n, PyObject* names) : f_(f) {
    const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
    if (f.signature && n + named != f.signature->params.size()) fail_count(n + named);
    reserve(n + named);
    for (size_t i = 0; i < n; ++i) set(i, args[i]);
    if (!named) return;
    if (!f.signature)
      throw nb::type_error("this function has no parameter names: pass arguments by position");
    std::vector<bool> given(size_, false);
    std::fill_n(given.begin(), n, true);
    for (size_t i = 0; i < named; ++i) {
      const size_t place = place_of(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)));
      if (given[place])
        fail_name("is given twice", PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)));
      given[place] = true;
      set(place, args[n + i]);
    }
  }

  const tenon_any* data() const { return size_ ? values()->get() : nullptr; }
  int32_t size() const { return static_cast<int32_t>(size_); }

 private:
  void reserve(size_t n) {
    size_ = n;
    if (n > few_.size()) many_ = std::make_unique<Value[]>(n);
  }
  const Value* values() const { return many_ ? many_.get() : few_.data(); }
  void set(size_t i, PyObject* object) {
    static constexpr Expected kAnything;
    (many_ ? many_.get() : few_.data())[i] =
        to_value(object, f_.signature ? f_.signature->params[i].expected : kAnything);
  }
  size_t place_of(PyObject* name) {
    const std::vector<Parameter>& params = f_.signature->params;
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].name.ptr() == name) return i;
    }
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].name.equal(nb::handle(name))) return i;
    }
    fail_name("is not a parameter", name);
  }
  std::string names() const {
    return f_.signature->params.empty() ? "none" : list_of(f_.signature->params);
  }
  [[noreturn]] void fail_name(const char* what, PyObject* name) const {
    throw nb::type_error(("'" + nb::cast<std::string>(nb::handle(name)) + "' " + what +
                          "; the parameters are: " + names())
                             .c_str());
  }
  [[noreturn]] void fail_count(size_t n) const {
    throw nb::type_error((std::to_string(n) + " arguments for " +
                          std::to_string(f_.signature->params.size()) + " parameters: " + names())
                             .c_str());
  }

  const Function& f_;
  size_t size_ = 0;
  std::array<Value, 8> few_;
  std::unique_ptr<Value[]> many_;
};

PyObject* call(PyObject* self, PyObject* const* args, size_t flags_and_n,
               PyObject* names) noexcept {
  try {
    const Function& f = *nb::inst_ptr<Function>(self);
    const Arguments arguments(f, args, static_cast<size_t>(PyVectorcall_NARGS(flags_and_n)), names);
    Value result;
    int code = 0;
    {
      const AskedForSignals asked(f.value.get());
      const nb::gil_scoped_release released;
      code = tenon_function_call(f.value.get(), arguments.data(), arguments.size(), result.out());
    }
    check(code);
    return to_python(std::move(result)).release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::buffer_error  ? PyExc_BufferError
                    : e.type() == nb::exception_type::value_error ? PyExc_ValueError
                                                                  : PyExc_TypeError,
                    e.what());
  } catch (std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

const PyType_Slot kFunctionSlots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {0, nullptr},
};

// ---- Callbacks ----

int call_python(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  if (!Py_IsInitialized()) {
    tenon_error_set(TENON_ERROR_RUNTIME,
                    "a Python function was called after the interpreter's end");
    return -1;
  }
  nb::gil_scoped_acquire acquired;
  try {
    std::vector<nb::object> objects;
    std::vector<PyObject*> borrowed(1, nullptr);  // before the first argument, for the callee's use
    for (int32_t i = 0; i < n; ++i) {
      objects.push_back(to_python(Value::copy_of(args[i])));
      borrowed.push_back(objects.back().ptr());
    }
    const nb::object returned = nb::steal(
        PyObject_Vectorcall(static_cast<PyObject*>(context), borrowed.data() + 1,
                            static_cast<size_t>(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!returned.is_valid()) throw nb::python_error();
    Value value = to_value(returned);
    return tenon_any_copy(value.get(), result);
  } catch (nb::python_error& e) {
    wait_with(e);
  } catch (std::exception& e) {
    tenon_error_set(TENON_ERROR_USAGE, e.what());
  }
  return -1;
}

void release_python(void* context) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire acquired;
  Py_DECREF(static_cast<PyObject*>(context));
}

std::string text_of(const Signature& s) {
  const std::string results = list_of(s.results);
  return "(" + list_of(s.params) + ") -> " +
         (s.results.size() == 1 ? results : "(" + results + ")");
}

}  // namespace

nb::object new_function(Value value, std::shared_ptr<const Signature> signature) {
  return nb::cast(Function{&call, std::move(value), std::move(signature)});
}

Value callback(nb::handle callable) {
  Value out;
  Py_INCREF(callable.ptr());
  const int code = tenon_function_create(call_python, callable.ptr(), release_python, out.out());
  if (code != 0) Py_DECREF(callable.ptr());
  check(code);
  return out;
}

void define_function(nb::module_& m) {
  nb::class_<Function> c(m, "Function", nb::type_slots(kFunctionSlots), nb::is_final(), R"(
A function of a program, a registered one, or a closure that a program returned. Any number of threads may call it.

``f(x, y)`` passes arguments by position, ``f(x=..., y=...)`` by the names in the program. Arrays and tensors are passed
without copying, and the GIL is released while the function runs.
)");
  c.def(
      "__init__",
      [](Function* self, nb::handle callable) {
        new (self) Function{&call, callback(callable), {}};
      },
      nb::arg("callable"), "A function that calls a Python callable.",
      nb::sig("def __init__(self, callable: collections.abc.Callable[..., object], /) -> None"));
  c.def(
      "cancel", [](const Function& f) { check(tenon_function_cancel(f.value.get())); },
      "Stops the running calls of a program's function with an error.");
  c.def_prop_ro(
      "signature",
      [](const Function& f) -> nb::object {
        if (!f.signature) return nb::none();
        return nb::str(text_of(*f.signature).c_str());
      },
      "Parameters and results as text; None if they are unknown.",
      nb::sig("def signature(self) -> str | None"));
  c.def("__repr__", [](const Function& f) {
    return f.signature ? "<tenon.Function " + text_of(*f.signature) + ">"
                       : std::string("<tenon.Function>");
  });
  auto* const function_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  // Calls take CPython's fast path: the pointer to `call` stands at this distance in every
  // instance.
  const nb::object instance = nb::cast(Function{&call, {}, {}});
  function_type->tp_vectorcall_offset =
      reinterpret_cast<char*>(&nb::inst_ptr<Function>(instance)->vectorcall) -
      reinterpret_cast<char*>(instance.ptr());
  function_type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  PyType_Modified(function_type);
}

}  // namespace tenon::python
