// tenon.Function, and Python callables as functions.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "python/src/classes.h"
#include "python/src/data.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/interrupt.h"
#include "python/src/nanobind.h"
#include "python/src/shared_results.h"

namespace tenon::python {
namespace {

// "x: tensor[n; f32], y: i64"
std::string list_of(const std::vector<Parameter>& values) {
  std::string text;
  for (const Parameter& p : values) {
    if (&p != values.data()) text += ", ";
    if (nb::len(p.name) > 0) text += string_of(p.name) + ": ";
    text += p.type;
  }
  return text;
}

// "1 argument", "2 arguments"
std::string number_of(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// As many values as a call has arguments: a few in place, in memory that isn't touched before their
// number is known.
class Values {
 public:
  Values() = default;
  ~Values() { std::destroy_n(data_, size_); }
  Values(const Values&) = delete;

  // Once, for `size` values, which are None.
  void create(size_t size) {
    if (size > kFew) {
      many_ = std::make_unique<Room[]>(size);
      data_ = reinterpret_cast<Value*>(many_.get());
    }
    std::uninitialized_default_construct_n(data_, size);
    size_ = size;
  }
  size_t size() const { return size_; }
  Value* data() { return data_; }
  const tenon_any* any() const { return size_ ? data_->get() : nullptr; }

 private:
  struct Room {
    alignas(Value) std::byte bytes[sizeof(Value)];
  };
  static constexpr size_t kFew = 8;
  Room few_[kFew];
  std::unique_ptr<Room[]> many_;
  Value* data_ = reinterpret_cast<Value*>(few_);
  size_t size_ = 0;
};

// The arguments of a call, in the order of the parameters; bound ones come first.
class Arguments {
 public:
  Arguments(const Function& f, PyObject* const* args, size_t n, PyObject* names) : f_(f) {
    const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
    for (size_t i = 0; i < named; ++i) {
      if (is_out(name_at(names, i))) out_ = args[n + i];
    }
    const size_t count = n + named - (out_ ? 1 : 0);
    if (f.signature && count != f.signature->params.size()) fail_count(n, names, count);
    reserve(count);
    for (size_t i = 0; i < n; ++i) set(i, args[i]);
    if (count == n) return;
    if (!f.signature)
      throw nb::type_error("this function has no parameter names: pass arguments by position");
    std::vector<bool> given(count, false);
    std::fill_n(given.begin(), n, true);
    for (size_t i = 0; i < named; ++i) {
      if (args[n + i] == out_ && is_out(name_at(names, i))) continue;
      const size_t place = place_of(name_at(names, i));
      if (given[place]) fail_name("is given twice", name_at(names, i));
      given[place] = true;
      set(place, args[n + i]);
    }
  }

  const tenon_any* data() const { return values_.any(); }
  int32_t size() const { return static_cast<int32_t>(values_.size()); }
  // The argument `out`, unless a parameter has that name; null if there is none.
  PyObject* out() const { return out_; }

 private:
  static PyObject* name_at(PyObject* names, size_t i) {
    return PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i));
  }
  bool is_out(PyObject* name) const {
    if (PyUnicode_CompareWithASCIIString(name, "out") != 0) return false;
    if (!f_.signature) return true;
    return std::ranges::none_of(f_.signature->params,
                                [&](const Parameter& p) { return p.name.equal(nb::handle(name)); });
  }
  void reserve(size_t n) {
    bound_ = f_.bound ? f_.bound->size() : 0;
    values_.create(bound_ + n);
    for (size_t i = 0; i < bound_; ++i) values_.data()[i] = Value::copy_of((*f_.bound)[i].any());
  }
  void set(size_t i, PyObject* object) {
    static constexpr Expected kAnything;
    to_value(object, f_.signature ? f_.signature->params[i].expected : kAnything,
             values_.data() + bound_ + i);
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
    throw nb::type_error(
        ("'" + string_of(nb::handle(name)) + "' " + what + "; the parameters are: " + names())
            .c_str());
  }
  // `positional` of the `count` arguments have no name.
  [[noreturn]] void fail_count(size_t positional, PyObject* names, size_t count) {
    const std::vector<Parameter>& params = f_.signature->params;
    std::vector<bool> given(params.size(), false);
    std::fill_n(given.begin(), std::min(positional, params.size()), true);
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);
      if (!is_out(name)) given[place_of(name)] = true;
    }
    std::vector<std::string> missing, all;
    for (size_t i = 0; i < params.size(); ++i) {
      const auto name = string_of(params[i].name);
      all.push_back(name.empty() ? params[i].type : name + ": " + params[i].type);
      // Parameters of function values have no names.
      if (!given[i]) missing.push_back(name.empty() ? all.back() : name);
    }
    throw nb::type_error((number_of(count, "argument") + " for " +
                          number_of(params.size(), "parameter") +
                          (missing.empty() ? "" : "; missing: " + few(missing)) +
                          "; the parameters are: " + few(all))
                             .c_str());
  }
  // The first of a list, and how many more it has.
  static std::string few(const std::vector<std::string>& items) {
    constexpr size_t kShown = 4;
    if (items.empty()) return "none";
    std::string out;
    for (size_t i = 0; i < std::min(items.size(), kShown); ++i) out += (i ? ", " : "") + items[i];
    return items.size() <= kShown
               ? out
               : out + ", and " + std::to_string(items.size() - kShown) + " more";
  }

  const Function& f_;
  size_t bound_ = 0;
  PyObject* out_ = nullptr;
  Values values_;
};

// The caller's tensors for the results: one, or a tuple with one or None for each result.
class Outputs {
 public:
  explicit Outputs(PyObject* out) {
    if (!out) return;
    given_ = true;
    if (PyTuple_Check(out) || PyList_Check(out)) {
      for (nb::handle item : nb::borrow<nb::sequence>(out)) add(item);
    } else {
      add(out);
    }
  }

  bool given() const { return given_; }
  const tenon_any* data() const { return values_.empty() ? nullptr : values_[0].get(); }
  int32_t size() const { return static_cast<int32_t>(values_.size()); }

  // The results with the caller's own objects in their places.
  nb::object instead_of(const nb::object& results) const {
    if (objects_.empty()) return results;
    if (!nb::isinstance<nb::tuple>(results)) return objects_[0].is_none() ? results : objects_[0];
    nb::list all(results);
    for (size_t i = 0; i < objects_.size(); ++i) {
      if (!objects_[i].is_none()) all[i] = objects_[i];
    }
    return nb::tuple(all);
  }

 private:
  void add(nb::handle object) {
    Value value;
    if (Py_TYPE(object.ptr()) == tensor_class()) {
      value = Value::copy_of(Tensor::of(object).value.any());
    } else if (!object.is_none() && !borrow_tensor(object, Borrow::kOutput, &value)) {
      throw nb::type_error(
          "out is a tensor or an array, or a tuple with one of these, or None, "
          "for each result");
    }
    objects_.push_back(nb::borrow(object));
    values_.push_back(std::move(value));
  }

  bool given_ = false;
  std::vector<nb::object> objects_;
  std::vector<Value> values_;
};

// Calls the function, or `machine` if it isn't null. Needs no GIL.
int compute(const Function& f, const tenon_any* machine, const Arguments& args,
            const Outputs& outputs, tenon_any* result) {
  const char* const name = f.name.c_str();
  if (outputs.given()) {
    return machine ? tenon_machine_call_into(machine, name, args.data(), args.size(),
                                             outputs.data(), outputs.size(), result)
                   : tenon_function_call_into(f.value.get(), args.data(), args.size(),
                                              outputs.data(), outputs.size(), result);
  }
  return machine ? tenon_machine_call(machine, name, args.data(), args.size(), result)
                 : tenon_function_call(f.value.get(), args.data(), args.size(), result);
}

int run(const Function& f, const tenon_any* machine, const Arguments& args, const Outputs& outputs,
        tenon_any* result) {
  const SignalWatch watch(machine ? machine : f.value.get());
  if (f.signature) {
    const nb::gil_scoped_release released;
    return compute(f, machine, args, outputs, result);
  }
  const CompilingWithoutGil released;  // the function may be the compiler's
  return compute(f, machine, args, outputs, result);
}

// A function's result in Python: several are a tuple.
nb::object results_of(const Function& f, Value result) {
  if (!f.signature) return to_python(std::move(result));
  const std::vector<Parameter>& types = f.signature->results;
  if (types.size() == 1) return to_python(std::move(result), types[0].expected);
  const auto has_type = [](const Parameter& p) { return needs_type(p.expected); };
  if (std::ranges::none_of(types, has_type)) return to_python(std::move(result));
  nb::list out;
  for (size_t i = 0; i < types.size(); ++i) {
    Value item;
    check(tenon_array_get(result.get(), i, item.out()));
    out.append(to_python(std::move(item), types[i].expected));
  }
  return nb::tuple(out);
}

nb::object call(const Function& f, PyObject* const* args, size_t n, PyObject* names) {
  const Arguments arguments(f, args, n, names);
  const Outputs outputs(arguments.out());
  Value result;
  if (f.machines) {
    const Machines::Lease lease(*f.machines);
    check(run(f, lease.machine(), arguments, outputs, result.out()));
  } else {
    check(run(f, nullptr, arguments, outputs, result.out()));
  }
  nb::object results = results_of(f, std::move(result));
  if (f.signature) protect_shared_results(results);
  return outputs.given() ? outputs.instead_of(results) : results;
}

// The function with its first parameters bound, by position or name.
nb::object bind(const Function& f, const nb::args& args, const nb::kwargs& kwargs) {
  if (!f.signature) throw nb::type_error("only a function of a program can be bound");
  const std::vector<Parameter>& params = f.signature->params;
  const size_t count = args.size() + kwargs.size();
  auto bound = std::make_shared<std::vector<Value>>();
  auto rest = std::make_shared<Signature>(*f.signature);
  for (size_t i = 0; i < count; ++i) {
    nb::object given;
    if (i < args.size() && i < params.size()) {
      given = args[i];
    } else if (i < params.size() && kwargs.contains(params[i].name)) {
      given = kwargs[params[i].name];
    } else {
      throw nb::type_error(
          ("bind takes arguments for the leading parameters, in order, of: " + list_of(params))
              .c_str());
    }
    bound->push_back(to_value(given, params[i].expected));
  }
  rest->params.erase(rest->params.begin(), rest->params.begin() + static_cast<ptrdiff_t>(count));
  Value value;
  check(tenon_function_bind(f.value.get(), count ? bound->front().get() : nullptr,
                            static_cast<int32_t>(count), value.out()));
  Function out{.value = std::move(value), .signature = std::move(rest), .name = f.name};
  if (f.machines) {  // they call the function by name, with all arguments
    if (f.bound) {
      for (size_t i = 0; i < f.bound->size(); ++i) {
        bound->insert(bound->begin() + static_cast<ptrdiff_t>(i),
                      Value::copy_of((*f.bound)[i].any()));
      }
    }
    out.bound = std::move(bound);
    // A reference of its own: each function shows the garbage collector one.
    out.machines = shared_machines(nb::find(*f.machines));
  }
  return new_instance_of(std::move(out));
}

// The machines may have an instrument that refers to the function.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  if (const auto& machines = nb::inst_ptr<Function>(self)->machines)
    Py_VISIT(nb::find(*machines).ptr());
  return 0;
}

int clear(PyObject* self) {
  nb::inst_ptr<Function>(self)->machines.reset();
  return 0;
}

// Without `__init__`, an instance has no function to call: Python then finds a null pointer.
PyObject* new_instance(PyTypeObject* type, PyObject*, PyObject*) {
  try {
    nb::object made = nb::inst_alloc(reinterpret_cast<PyObject*>(type));
    if (!made.is_valid()) return nullptr;
    nb::inst_ptr<Function>(made)->vectorcall = nullptr;
    return made.release().ptr();
  } catch (...) {
    raise_current();
  }
  return nullptr;
}

const PyType_Slot kFunctionSlots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_instance)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr},
};

}  // namespace

PyObject* call_function(PyObject* self, PyObject* const* args, size_t flags_and_n,
                        PyObject* names) noexcept {
  try {
    const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags_and_n));
    return call(*nb::inst_ptr<Function>(self), args, n, names).release().ptr();
  } catch (...) {
    raise_current();
  }
  return nullptr;
}

namespace {

// ---- Callbacks ----

// What a function value of a Python callable holds.
struct Callback {
  PyObject* callable;
  const DataPlan* plan;              // may be null
  std::shared_ptr<DataTypes> types;  // owns it
};

int call_python(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  const WithGil acquired;
  if (!acquired) {
    tenon_error_set(TENON_ERROR_RUNTIME,
                    "a Python function was called after the interpreter's end");
    return -1;
  }
  try {
    const Callback& self = *static_cast<Callback*>(context);
    // Of the parameters, then of the result.
    const auto type = [&](size_t i) -> const DataPlan* {
      return self.plan && i < self.plan->parts.size() ? self.plan->parts[i] : nullptr;
    };
    std::vector<nb::object> objects;
    std::vector<PyObject*> borrowed(1, nullptr);  // before the first argument, for the callee's use
    for (int32_t i = 0; i < n; ++i) {
      const DataPlan* plan = type(static_cast<size_t>(i));
      Value arg = Value::copy_of(args[i]);
      objects.push_back(plan ? data_object(std::move(arg), *plan) : to_python(std::move(arg)));
      borrowed.push_back(objects.back().ptr());
    }
    const nb::object returned = nb::steal(
        PyObject_Vectorcall(self.callable, borrowed.data() + 1,
                            static_cast<size_t>(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!returned.is_valid()) throw nb::python_error();
    const DataPlan* plan = type(static_cast<size_t>(n));
    Value value = plan ? data_value(returned, *plan) : to_value(returned);
    return tenon_any_copy(value.get(), result);
  } catch (...) {
    raise_current();
    wait_with_raised();
  }
  return -1;
}

void release_python(void* context) {
  auto* const self = static_cast<Callback*>(context);
  if (const WithGil acquired{}) {
    Py_DECREF(self->callable);
    delete self;
  }
}

std::string text_of(const Signature& s) {
  const std::string results = list_of(s.results);
  return "(" + list_of(s.params) + ") -> " +
         (s.results.size() == 1 ? results : "(" + results + ")");
}

}  // namespace

nb::object new_function(Value value) {
  return new_instance_of(Function{.value = std::move(value)});
}

nb::object typed_function(Value value, const DataPlan& plan) {
  auto signature = std::make_shared<Signature>();
  signature->types = plan.owner->shared_from_this();
  for (const DataPlan* part : plan.parts) {
    signature->params.push_back({nb::str(""), part->type.text, expected_of(*part)});
  }
  signature->results = {std::move(signature->params.back())};
  signature->params.pop_back();
  return new_instance_of(Function{.value = std::move(value), .signature = std::move(signature)});
}

Value callback(nb::handle callable, const DataPlan* plan) {
  auto self = std::make_unique<Callback>(
      Callback{callable.ptr(), plan, plan ? plan->owner->shared_from_this() : nullptr});
  Value out;
  Py_INCREF(callable.ptr());
  const int code = tenon_function_create(call_python, self.get(), release_python, out.out());
  if (code != 0) Py_DECREF(callable.ptr());
  check(code);
  static_cast<void>(self.release());
  return out;
}

void define_function(nb::module_& m) {
  nb::class_<Function> c(m, "Function", nb::type_slots(kFunctionSlots), nb::is_final(), R"(
A function of a program, a registered one, or a closure that a program returned. Any number of threads may call it.

``f(x, y)`` passes arguments by position, ``f(x=..., y=...)`` by the names in the program. Arrays and tensors are passed
without copying, and the GIL is released while the function runs.

``f(x, y, out=z)`` writes the result of a program's function to ``z``, a writable C-contiguous array or tensor of its type
and shape that shares no memory with an argument, and returns ``z``. For several results, ``out`` is a tuple of such
tensors, or None for those to allocate.
)");
  c.def(
      "__init__",
      [](Function* self, nb::handle callable) { new (self) Function{.value = callback(callable)}; },
      nb::arg("callable"), "A function that calls a Python callable.",
      nb::sig("def __init__(self, callable: collections.abc.Callable[..., object], /) -> None"));
  c.def(
      "cancel",
      [](const Function& f) {
        if (f.machines) return f.machines->cancel();
        check(tenon_function_cancel(f.value.get()));
      },
      "Stops the running calls of a program's function with an error; for a function of a "
      "``VirtualMachine``, all that run on it.");
  c.def("bind", &bind,
        "The function with its first parameters bound to these arguments, by position or name. Use "
        "``functools.partial`` to bind others.",
        nb::sig("def bind(self, *args: object, **kwargs: object) -> Function"));
  c.def_prop_ro(
      "signature",
      [](const Function& f) -> nb::object {
        if (!f.signature) return nb::none();
        return nb::str(text_of(*f.signature).c_str());
      },
      "Parameters and results as text; None if they are unknown.",
      nb::sig("def signature(self) -> str | None"));
  c.def("__repr__", [](const Function& f) {
    if (f.name.empty()) {  // <closure @name>, if a program made it
      auto text = string_of(repr_of(f.value));
      if (text.starts_with("<closure")) return text;
    }
    return f.signature ? "<tenon.Function " + text_of(*f.signature) + ">"
                       : std::string("<tenon.Function>");
  });
  auto* const function_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  // Calls take CPython's fast path: the pointer to `call` stands at this distance in every
  // instance.
  const nb::object instance = nb::cast(Function{});
  function_type->tp_vectorcall_offset =
      reinterpret_cast<char*>(&nb::inst_ptr<Function>(instance)->vectorcall) -
      reinterpret_cast<char*>(instance.ptr());
  function_type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  PyType_Modified(function_type);
}

}  // namespace tenon::python
