// Loaded executables. tenon.Executable and tenon.VirtualMachine (python/tenon/_executable.py) use
// this class.
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "python/src/classes.h"
#include "python/src/error.h"

namespace tenon::python {
namespace {

struct LoadOptions {
  tenon_load_options options = TENON_LOAD_DEFAULTS;
  Value weights;
  std::vector<Value> modules;

  LoadOptions(bool untrusted, int64_t deadline_ns, int64_t memory, nb::handle weight_map) {
    options.flags = untrusted ? TENON_UNTRUSTED : 0;
    options.deadline_ns = deadline_ns;
    options.memory = memory;
    if (!weight_map.is_none()) {
      weights = to_value(weight_map);
      options.weights = weights.get();
    }
  }
};

nb::object load(nb::handle path, bool untrusted, int64_t deadline_ns, int64_t memory,
                nb::handle weights) {
  const LoadOptions o(untrusted, deadline_ns, memory, weights);
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &encoded)) throw nb::python_error();
  const nb::object name = nb::steal(encoded);
  Program program;
  int code = 0;
  {
    nb::gil_scoped_release released;
    code = tenon_program_load_with(PyBytes_AS_STRING(encoded), &o.options, program.value.out());
  }
  check(code);
  return nb::cast(std::move(program));
}

nb::object from_bytes(nb::bytes bytes, bool untrusted, int64_t deadline_ns, int64_t memory,
                      nb::handle weights) {
  const LoadOptions o(untrusted, deadline_ns, memory, weights);
  Program program;
  int code = 0;
  {
    nb::gil_scoped_release released;
    code = tenon_program_from_bytes(bytes.c_str(), bytes.size(), &o.options, program.value.out());
  }
  check(code);
  return nb::cast(std::move(program));
}

// A memoryview of the file's bytes, which keeps the program alive.
nb::object file_bytes(nb::handle_t<Program> self) {
  const tenon_text file = tenon_program_file(nb::inst_ptr<Program>(self)->value.get());
  nb::object view = nb::steal(PyMemoryView_FromMemory(
      const_cast<char*>(file.data), static_cast<Py_ssize_t>(file.size), PyBUF_READ));
  if (!view.is_valid()) throw nb::python_error();
  return view;
}

Parameter parameter_of(const tenon_value_info& info) {
  Parameter p;
  p.name =
      nb::steal(PyUnicode_InternFromString(std::string(info.name.data, info.name.size).c_str()));
  if (!p.name.is_valid()) throw nb::python_error();
  p.type.assign(info.type.data, info.type.size);
  p.expected = {info.kind, info.dtype, true};
  return p;
}

std::shared_ptr<const Signature> signature_of(const Program& program, const char* function) {
  auto s = std::make_shared<Signature>();
  int32_t params = 0, results = 0;
  check(tenon_program_signature(program.value.get(), function, &params, &results));
  tenon_value_info info{};
  info.size = sizeof info;
  for (int32_t i = 0; i < params; ++i) {
    check(tenon_program_param(program.value.get(), function, i, &info));
    s->params.push_back(parameter_of(info));
  }
  for (int32_t i = 0; i < results; ++i) {
    check(tenon_program_result(program.value.get(), function, i, &info));
    s->results.push_back(parameter_of(info));
  }
  return s;
}

// (name, type, kind, dtype or None, dimensions: numbers and symbols, or None)
nb::object describe(const tenon_value_info& info) {
  static const char* const kKinds[] = {"tensor", "shape", "int",      "bool",
                                       "float",  "array", "function", "other"};
  const char* kind = info.kind == TENON_TENSOR     ? kKinds[0]
                     : info.kind == TENON_SHAPE    ? kKinds[1]
                     : info.kind == TENON_INT      ? kKinds[2]
                     : info.kind == TENON_BOOL     ? kKinds[3]
                     : info.kind == TENON_FLOAT    ? kKinds[4]
                     : info.kind == TENON_ARRAY    ? kKinds[5]
                     : info.kind == TENON_FUNCTION ? kKinds[6]
                                                   : kKinds[7];
  nb::object dims = nb::none();
  if (info.dims && (info.kind == TENON_TENSOR || info.kind == TENON_SHAPE)) {
    nb::list list;
    for (int32_t i = 0; i < info.rank; ++i) {
      if (info.dims[i] >= 0) {
        list.append(info.dims[i]);
      } else {
        list.append(nb::str(info.symbols[i].data, info.symbols[i].size));
      }
    }
    dims = nb::tuple(list);
  }
  nb::object dtype = nb::none();
  if (info.kind == TENON_TENSOR || info.kind == TENON_INT || info.kind == TENON_FLOAT ||
      info.kind == TENON_BOOL)
    dtype = nb::str(dtype_name(info.dtype).c_str());
  return nb::make_tuple(nb::str(info.name.data ? info.name.data : "", info.name.size),
                        nb::str(info.type.data ? info.type.data : "", info.type.size), kind, dtype,
                        dims);
}

nb::object describe_all(const Program& program, const char* function, bool of_results) {
  int32_t params = 0, results = 0;
  check(tenon_program_signature(program.value.get(), function, &params, &results));
  nb::list out;
  for (int32_t i = 0; i < (of_results ? results : params); ++i) {
    tenon_value_info info{};
    info.size = sizeof info;
    const auto get = of_results ? tenon_program_result : tenon_program_param;
    check(get(program.value.get(), function, i, &info));
    out.append(describe(info));
  }
  return nb::tuple(out);
}

nb::object function(const Program& program, const char* name, int32_t threads, int64_t fuel,
                    int64_t deadline_ns, int64_t memory, int64_t depth, int64_t stack_bytes) {
  const tenon_limits limits = {sizeof(tenon_limits), threads, fuel, deadline_ns, memory, depth,
                               stack_bytes};
  Value out;
  check(tenon_program_function(program.value.get(), name, &limits, out.out()));
  return new_function(std::move(out), signature_of(program, name));
}

}  // namespace

void define_program(nb::module_& m) {
  nb::class_<Program> c(m, "Program", "A loaded executable; tenon.Executable wraps it.");
  c.def_static("load", &load, nb::arg("path"), nb::arg("untrusted"), nb::arg("deadline_ns"),
               nb::arg("memory"), nb::arg("weights").none(),
               nb::sig("def load(path: str | os.PathLike[str], untrusted: bool, deadline_ns: int, "
                       "memory: int, weights: dict[str, typing.Any] | None) -> Program"));
  c.def_static("from_bytes", &from_bytes, nb::arg("bytes"), nb::arg("untrusted"),
               nb::arg("deadline_ns"), nb::arg("memory"), nb::arg("weights").none(),
               nb::sig("def from_bytes(bytes: bytes, untrusted: bool, deadline_ns: int, "
                       "memory: int, weights: dict[str, typing.Any] | None) -> Program"));
  c.def("file", &file_bytes, "The bytes of the file, as long as the program lives.",
        nb::sig("def file(self) -> memoryview"));
  c.def(
      "functions",
      [](const Program& p) {
        Value names;
        check(tenon_program_functions(p.value.get(), names.out()));
        return to_python(std::move(names));
      },
      nb::sig("def functions(self) -> tuple[str, ...]"));
  c.def("describe", &describe_all, nb::arg("function"), nb::arg("of_results"),
        "Name, type, kind, dtype and dimensions of each parameter or result.",
        nb::sig("def describe(self, function: str, of_results: bool) -> "
                "tuple[tuple[str, str, str, str | None, tuple[int | str, ...] | None], ...]"));
  c.def("function", &function, nb::arg("name"), nb::arg("threads"), nb::arg("fuel"),
        nb::arg("deadline_ns"), nb::arg("memory"), nb::arg("depth"), nb::arg("stack_bytes"),
        nb::sig("def function(self, name: str, threads: int, fuel: int, deadline_ns: int, "
                "memory: int, depth: int, stack_bytes: int) -> Function"));
}

}  // namespace tenon::python
