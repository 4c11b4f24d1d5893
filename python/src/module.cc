// tenon._tenon: the runtime's C interface in Python. The package's modules add what users see.
#include <string>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/interrupt.h"
#include "python/src/nanobind.h"

namespace tenon::python {
namespace {

nb::object find(const nb::str& name) {
  Value out;
  check(tenon_function_find(name_of(name).c_str(), out.out()));
  return to_python(std::move(out));
}

void register_function(const nb::str& name, nb::handle callable, bool replace, bool for_files) {
  const Value function = to_value(callable);
  if (function.type_index() != TENON_FUNCTION) throw nb::type_error("not a function");
  const int32_t flags = (replace ? TENON_REPLACE : 0) | (for_files ? TENON_FOR_FILES : 0);
  check(tenon_function_register(name_of(name).c_str(), function.get(), flags));
}

void load_library(const nb::str& given, const nb::list& given_folders) {
  const std::vector<std::string> folders = strings_of(given_folders);
  const std::string name = name_of(given);
  std::vector<const char*> search;
  search.reserve(folders.size());
  for (const std::string& folder : folders) search.push_back(folder.c_str());
  int code = 0;
  {
    const CompilingWithoutGil released;
    code = tenon_library_load(name.c_str(), search.data(), search.size(), nullptr);
  }
  check(code);
}

NB_MODULE(_tenon, m) {
  m.doc() = "The runtime's C interface.";
  // The classes of IR nodes, functions and tensors live as long as the process.
  nb::set_leak_warnings(false);
  watch_for_end();
  check_signals_while_computing();
  define_tensor(m);
  define_function(m);
  define_object(m);
  define_program(m);
  define_data(m);
  define_machines(m);
  define_host_types(m);
  m.def("version", &tenon_version);
  // The text of an error of the package's own code.
  m.def(
      "error_text",
      [](int32_t kind, const std::string& message, nb::handle parts) {
        const Value given = to_value(parts);
        Value error, text;
        check(tenon_error_create(kind, message.c_str(), given.get(), error.out()));
        check(tenon_error_text(error.get(), text.out()));
        return to_python(std::move(text));
      },
      nb::arg("kind"), nb::arg("message"), nb::arg("parts"),
      nb::sig("def error_text(kind: int, message: str, parts: tuple[tuple[str, str, str], ...]) -> "
              "str"));
  m.def("processors", &tenon_function_threads,
        "How many processors this process may use, as far as its container lets it.");
#define TENON_CONSTANT(name) m.attr(#name) = static_cast<int>(TENON_##name)
  TENON_CONSTANT(ERROR_USAGE);
  TENON_CONSTANT(ERROR_UNSUPPORTED);
  TENON_CONSTANT(ERROR_DAMAGED);
  TENON_CONSTANT(ERROR_RUNTIME);
  TENON_CONSTANT(ERROR_INTERNAL);
  TENON_CONSTANT(INSTRUMENT_CONTINUE);
  TENON_CONSTANT(INSTRUMENT_SKIP);
  TENON_CONSTANT(MOST_THREADS);
#undef TENON_CONSTANT
  m.def("find", &find, nb::arg("name"), nb::sig("def find(name: str) -> Function"));
  m.def("register", &register_function, nb::arg("name"), nb::arg("function"), nb::arg("replace"),
        nb::arg("for_files") = false,
        nb::sig("def register(name: str, function: collections.abc.Callable[..., typing.Any] | "
                "Function, replace: bool, for_files: bool = False) -> None"));
  m.def("load_library", &load_library, nb::arg("name"), nb::arg("folders"),
        nb::sig("def load_library(name: str, folders: list[str]) -> None"));
}

}  // namespace
}  // namespace tenon::python
