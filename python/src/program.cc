// Loaded executables. tenon.Executable and tenon.VirtualMachine (python/tenon/_executable.py) use
// this class.
#include <memory>
#include <string>
#include <vector>

#include "python/src/classes.h"
#include "python/src/data.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/nanobind.h"
#include "python/src/tensor_data.h"
#include "tenon/cpp/memory_file.h"

namespace tenon::python {
namespace {

struct LoadOptions {
  tenon_load_options options = TENON_LOAD_DEFAULTS;
  Value weights;
  std::string name;

  explicit LoadOptions(nb::handle name_in_errors) {
    if (name_in_errors.is_none()) return;
    name = string_of(name_in_errors);
    options.name = name.c_str();
  }
  LoadOptions(bool untrusted, int64_t deadline_ns, int64_t memory, nb::handle weight_map,
              nb::handle name_in_errors)
      : LoadOptions(name_in_errors) {
    options.flags = untrusted ? TENON_UNTRUSTED : 0;
    options.deadline_ns = deadline_ns;
    options.memory = memory;
    if (!weight_map.is_none()) {
      weights = to_value(weight_map);
      options.weights = weights.get();
    }
  }
  LoadOptions(const LoadOptions&) = delete;  // `options` refers to the other members
};

// The program that `load(out)` loads, without the GIL.
template <class Load>
nb::object loaded(Load load) {
  Program program;
  int code = 0;
  {
    const CompilingWithoutGil released;
    code = load(program.value.out());
  }
  check(code);
  Value texts;
  check(tenon_program_types(program.value.get(), texts.out()));
  std::vector<std::string> definitions;
  for (int64_t i = 0; i < tenon_array_size(texts.get()); ++i) {
    Value text;
    check(tenon_array_get(texts.get(), static_cast<size_t>(i), text.out()));
    const tenon_text t = tenon_string_view(text.get());
    definitions.emplace_back(t.data, t.size);
  }
  program.types = std::make_shared<DataTypes>(definitions);
  return new_instance_of(std::move(program));
}

nb::object load(nb::handle path, bool untrusted, int64_t deadline_ns, int64_t memory,
                nb::handle weights, nb::handle name_in_errors) {
  const LoadOptions o(untrusted, deadline_ns, memory, weights, name_in_errors);
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &encoded)) throw nb::python_error();
  const nb::object held = nb::steal(encoded);
  const char* name = PyBytes_AS_STRING(encoded);
  return loaded([&](tenon_any* out) { return tenon_program_load_with(name, &o.options, out); });
}

nb::object from_bytes(nb::bytes bytes, bool untrusted, int64_t deadline_ns, int64_t memory,
                      nb::handle weights, nb::handle name_in_errors) {
  const LoadOptions o(untrusted, deadline_ns, memory, weights, name_in_errors);
  const char* data = bytes.c_str();
  const size_t size = bytes.size();
  return loaded(
      [&](tenon_any* out) { return tenon_program_from_bytes(data, size, &o.options, out); });
}

// Loads the file that `compile(module, options, path)` writes, which the program maps: it may be
// too large to be in memory twice.
nb::object compiled(const Function& compile, nb::handle module, nb::handle options,
                    nb::handle name_in_errors) {
  const LoadOptions o(name_in_errors);
  const detail::MemoryFile file;
  const std::string path = file.path();
  const Value arguments[] = {to_value(module), to_value(options), to_value(nb::str(path.c_str()))};
  return loaded([&](tenon_any* out) {
    Value size;
    if (tenon_function_call(compile.value.get(), arguments[0].get(), 3, size.out()) != 0) return -1;
    return tenon_program_load_with(path.c_str(), &o.options, out);
  });
}

// A memoryview of the file's bytes, which keeps the program alive.
nb::object file_bytes(const Program& program) {
  const tenon_text file = tenon_program_file(program.value.get());
  auto size = static_cast<int64_t>(file.size);
  DLTensor bytes{};
  bytes.data = const_cast<char*>(file.data);
  bytes.device = {kDLCPU, 0};
  bytes.ndim = 1;
  bytes.dtype = dtype(kDLUInt, 8);
  bytes.shape = &size;
  const nb::object tensor = new_tensor(read_only_tensor(bytes, program.value.any().v.object));
  nb::object view = nb::steal(PyMemoryView_FromObject(tensor.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return view;
}

std::string_view view_of(const tenon_text& text) {
  return {text.data ? text.data : "", text.size};
}

// Calls `visit` with each parameter or result of a function.
template <class Visit>
void for_each(const Value& program, const char* function, bool of_results, Visit visit) {
  int32_t params = 0, results = 0;
  check(tenon_program_signature(program.get(), function, &params, &results));
  const auto get = of_results ? tenon_program_result : tenon_program_param;
  for (int32_t i = 0; i < (of_results ? results : params); ++i) {
    tenon_value_info info{};
    info.size = sizeof info;
    check(get(program.get(), function, i, &info));
    visit(info);
  }
}

Parameter parameter_of(const tenon_value_info& info, DataTypes& types) {
  Parameter p;
  PyObject* name = str_of(view_of(info.name)).release().ptr();
  PyUnicode_InternInPlace(&name);
  p.name = nb::steal(name);
  p.type.assign(info.type.data, info.type.size);
  p.expected = {info.kind, info.dtype, true};
  const bool is_data =
      info.kind == TENON_ARRAY || info.kind == TENON_FUNCTION || info.kind == TENON_NONE;
  if (is_data) p.expected.plan = types.expected(p.type).plan;
  return p;
}

std::shared_ptr<const Signature> signature_of(const Program& program, const char* function) {
  auto s = std::make_shared<Signature>();
  s->types = program.types;
  for (const bool of_results : {false, true}) {
    std::vector<Parameter>& values = of_results ? s->results : s->params;
    for_each(program.value, function, of_results, [&](const tenon_value_info& info) {
      values.push_back(parameter_of(info, *program.types));
    });
  }
  return s;
}

const char* kind_name(int32_t kind) {
  switch (kind) {
    case TENON_TENSOR:
      return "tensor";
    case TENON_SHAPE:
      return "shape";
    case TENON_INT:
      return "int";
    case TENON_BOOL:
      return "bool";
    case TENON_FLOAT:
      return "float";
    case TENON_ARRAY:
      return "array";
    case TENON_FUNCTION:
      return "function";
    default:
      return "other";
  }
}

// The fields of a tenon.Parameter.
nb::object describe(const tenon_value_info& info) {
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
    dtype = dtype_object(info.dtype);
  nb::dict fields;
  fields["name"] = str_of(view_of(info.name));
  fields["type"] = str_of(view_of(info.type));
  fields["kind"] = kind_name(info.kind);
  fields["dtype"] = dtype;
  fields["dims"] = dims;
  return fields;
}

nb::object describe_all(const Program& program, const nb::str& function, bool of_results) {
  nb::list out;
  for_each(program.value, name_of(function).c_str(), of_results,
           [&](const tenon_value_info& info) { out.append(describe(info)); });
  return nb::tuple(out);
}

}  // namespace

tenon_limits limits_of(const nb::dict& given) {
  const auto get = [&](const char* name) { return nb::cast<int64_t>(nb::object(given[name])); };
  tenon_limits limits = TENON_NO_LIMITS;
  // A new limit doesn't compile here until it is named, and set below.
  auto& [size, threads, fuel, deadline_ns, memory, depth, stack_bytes] = limits;
  size = sizeof limits;
  threads = static_cast<int32_t>(get("threads"));
  fuel = get("fuel");
  deadline_ns = get("deadline_ns");
  memory = get("memory");
  depth = get("depth");
  stack_bytes = get("stack_bytes");
  return limits;
}

nb::object function_of(const Program& program, const nb::str& given, const tenon_limits& limits,
                       std::shared_ptr<Machines> machines) {
  std::string name = name_of(given);
  Value out;
  check(tenon_program_function(program.value.get(), name.c_str(), &limits, out.out()));
  auto signature = signature_of(program, name.c_str());
  return new_instance_of(Function{.value = std::move(out),
                                  .signature = std::move(signature),
                                  .machines = std::move(machines),
                                  .name = std::move(name)});
}

std::map<std::string, Signature, std::less<>> signatures_of(const Program& program) {
  std::map<std::string, Signature, std::less<>> out;
  Value names;
  check(tenon_program_functions(program.value.get(), names.out()));
  for (int64_t i = 0; i < tenon_array_size(names.get()); ++i) {
    Value name;
    check(tenon_array_get(names.get(), static_cast<size_t>(i), name.out()));
    std::string text(view_of(tenon_string_view(name.get())));
    Signature signature = *signature_of(program, text.c_str());
    out.emplace(std::move(text), std::move(signature));
  }
  return out;
}

namespace {

nb::object function(const Program& program, const nb::str& name, const nb::dict& limits) {
  return function_of(program, name, limits_of(limits));
}

}  // namespace

void define_program(nb::module_& m) {
  nb::class_<Program> c(m, "Program", "A loaded executable; tenon.Executable wraps it.");
  c.def_static("load", &load, nb::arg("path"), nb::arg("untrusted"), nb::arg("deadline_ns"),
               nb::arg("memory"), nb::arg("weights").none(), nb::arg("name").none(),
               nb::sig("def load(path: str | os.PathLike[str], untrusted: bool, deadline_ns: int, "
                       "memory: int, weights: dict[str, typing.Any] | None, name: str | None) -> "
                       "Program"));
  c.def_static("from_bytes", &from_bytes, nb::arg("bytes"), nb::arg("untrusted"),
               nb::arg("deadline_ns"), nb::arg("memory"), nb::arg("weights").none(),
               nb::arg("name").none(),
               nb::sig("def from_bytes(bytes: bytes, untrusted: bool, deadline_ns: int, "
                       "memory: int, weights: dict[str, typing.Any] | None, name: str | None) -> "
                       "Program"));
  c.def_static("compiled", &compiled, nb::arg("compile"), nb::arg("module"), nb::arg("options"),
               nb::arg("name"), "Loads the file that compile(module, options, path) writes.",
               nb::sig("def compiled(compile: Function, module: Object, "
                       "options: dict[str, typing.Any], name: str) -> Program"));
  c.def("file", &file_bytes, "The bytes of the file.", nb::sig("def file(self) -> memoryview"));
  c.def(
      "functions",
      [](const Program& p) {
        Value names;
        check(tenon_program_functions(p.value.get(), names.out()));
        return to_python(std::move(names));
      },
      nb::sig("def functions(self) -> tuple[str, ...]"));
  c.def(
      "types", [](const Program& p) { return p.types->families(); },
      "The data types by name: the text of each one's definition, and the classes of its "
      "constructors.",
      nb::sig("def types(self) -> dict[str, tuple[str, list[type]]]"));
  c.def("describe", &describe_all, nb::arg("function"), nb::arg("of_results"),
        "The fields of each parameter's or result's tenon.Parameter.",
        nb::sig("def describe(self, function: str, of_results: bool) -> "
                "tuple[dict[str, typing.Any], ...]"));
  c.def("function", &function, nb::arg("name"), nb::arg("limits"),
        nb::sig("def function(self, name: str, limits: dict[str, int]) -> Function"));
}

}  // namespace tenon::python
