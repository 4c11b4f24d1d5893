// The compiler: models and programs in, programs to run out. Included by tenon/tenon.h.
//
// These functions load libtenon_compiler.so when they are first used. Their options are maps, whose
// entries docs/compiler-library.md lists; an unknown one is an error.
#pragma once

#include <set>

#include "tenon/cpp/machine.h"
#include "tenon/cpp/memory_file.h"

namespace tenon {
inline namespace v1 {
namespace detail {

/// A function of the compiler's library.
inline Function compiler_function(const std::string& name) {
  return compiler_library()[name];
}
/// The options of `compile(path)`, for its two steps. An unknown one is left to the compilation,
/// whose error suggests a name.
struct SplitOptions {
  std::vector<Map::Entry> import, compile;
  std::string known;  ///< all that there are
  bool all_known = true;
};
inline SplitOptions split(const Map& options) {
  SplitOptions out;
  std::set<std::string, std::less<>> import, compile;
  for (const Map& row : compiler_function("tenon.list_options")().as<std::vector<Map>>()) {
    const auto of = row["of"].as<std::string>(), name = row["name"].as<std::string>();
    if (of == "interpret") continue;
    if (of != "compile") import.insert(name);
    if (of != "import") compile.insert(name);
    out.known += (out.known.empty() ? "" : ", ") + name;
  }
  for (const auto& [key, value] : options) {
    const auto name = key.get_if<std::string>();
    const bool imports = name && import.contains(*name);
    if (imports) out.import.emplace_back(key, value);
    if (imports && !compile.contains(*name)) continue;
    out.compile.emplace_back(key, value);
    if (!name || !compile.contains(*name)) out.all_known = false;
  }
  return out;
}

}  // namespace detail

/// Programs as the compiler sees them. Modules, functions, operands and types are values with
/// fields (Value::field), and immutable.
namespace ir {

/// A program in the compiler's representation.
class Module : public Value {
 public:
  static constexpr const char* kTypeName = "graph.Module";
  static bool accepts(const Value& v) { return v.type_key() == kTypeName; }
  static Module unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  Module() = default;
  /// Reads an ONNX model or a program in Tenon's language; the content decides which it is.
  static Module open(const std::filesystem::path& path, const Map& import_options = {}) {
    return detail::compiler_function("tenon.open")(path.string(), import_options).as<Module>();
  }
  /// Imports an ONNX model from the bytes of its ModelProto.
  static Module from_onnx(std::span<const std::byte> model, const Map& import_options = {}) {
    return detail::compiler_function("tenon.import_onnx")(Bytes(model), import_options)
        .as<Module>();
  }
  /// Parses a program in Tenon's language; `name` is the file's name in errors. Files that it
  /// imports lie in the folder of `name` or below it, or in one of the folders of the option
  /// "import_path".
  static Module parse(std::string_view text, std::string_view name = "<string>",
                      const Map& options = {}) {
    return detail::compiler_function("tenon.parse")(text, name, options).as<Module>();
  }
  /// The module that `to_json` wrote.
  static Module from_json(std::string_view text) {
    return detail::compiler_function("tenon.from_json")(text, nullptr).as<Module>();
  }

  /// The module as text for `parse`, without large constants.
  std::string text() const {
    return detail::compiler_function("tenon.print")(*this).as<std::string>();
  }
  /// Writes the module as text, and large constants to PATH.weights beside it.
  void save(const std::filesystem::path& path) const {
    detail::compiler_function("tenon.save")(*this, path.string());
  }
  /// On one line if `indent` is 0, else with so many spaces for each level, up to 16.
  std::string to_json(int indent = 0) const {
    return detail::compiler_function("tenon.to_json")(*this, indent).as<std::string>();
  }
  /// The functions by name.
  Map functions() const { return field("functions").as<Map>(); }
  /// Runs a function by walking its graph, without compiling the module.
  Value interpret(const std::string& function, const Array& arguments,
                  const Map& options = {}) const {
    return detail::compiler_function("tenon.interpret")(*this, function, arguments, options);
  }
  /// Runs passes in order; the module is checked after each. A name is one of `list_passes`, or
  /// that of a registered function `pass(ir::Module, Map context) -> ir::Module`.
  Module run_passes(const std::vector<std::string>& passes, const Map& compile_options = {}) const {
    return detail::compiler_function("tenon.run_passes")(*this, passes, compile_options)
        .as<Module>();
  }

 private:
  Module(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
};

struct PassInfo {
  std::string name;
  int64_t level;  ///< the lowest level that runs it
  std::string summary;
};
/// The compiler's passes in the order in which they run.
inline std::vector<PassInfo> list_passes() {
  std::vector<PassInfo> out;
  for (const Map& p : detail::compiler_function("tenon.list_passes")().as<std::vector<Map>>()) {
    out.push_back(
        {p["name"].as<std::string>(), p["level"].as<int64_t>(), p["summary"].as<std::string>()});
  }
  return out;
}
/// The names of the passes that a compilation of the level runs: the option "passes", to insert
/// passes of your own.
inline std::vector<std::string> passes(int level = 2) {
  std::vector<std::string> out;
  for (const PassInfo& p : list_passes()) {
    if (p.level <= level) out.push_back(p.name);
  }
  return out;
}

}  // namespace ir

inline void Program::save(const std::filesystem::path& path) const {
  const std::span bytes(reinterpret_cast<const uint8_t*>(file().data()), file().size());
  detail::compiler_function("tenon.write_file")(
      path.string(), Tensor::borrow(bytes, {static_cast<int64_t>(bytes.size())}));
}
inline Map Program::stats() const {
  return detail::compiler_function("tenon.stats")(Bytes(file()), nullptr).as<Map>();
}
inline std::string Program::as_text(bool full) const {
  return detail::compiler_function("tenon.disassemble")(Bytes(file()), full, nullptr)
      .as<std::string>();
}
inline std::string Program::as_python() const {
  return detail::compiler_function("tenon.to_python")(Bytes(file()), nullptr).as<std::string>();
}
/// The bytes of the .tnx file of a program in assembly.
inline Bytes assemble(std::string_view text) {
  return detail::compiler_function("tenon.assemble")(text, nullptr).as<Bytes>();
}

/// Compiles a module to the bytes of a .tnx file, which may be for another machine (option
/// "target").
inline Bytes compile_to_bytes(const ir::Module& module, const Map& options = {}) {
  return detail::compiler_function("tenon.compile")(module, options).as<Bytes>();
}
namespace detail {
/// `name` is the program's name in errors.
inline Program compile(const ir::Module& module, const Map& options, std::string name) {
  const MemoryFile file;
  compiler_function("tenon.compile_to_file")(module, options, file.path());
  return Program::load(file.path(), {.name = std::move(name)});
}
}  // namespace detail

/// Compiles a module for this machine and loads the program.
///
///   Program program = compile(module, {{"level", 3}, {"libraries", "none"}});
inline Program compile(const ir::Module& module, const Map& options = {}) {
  return detail::compile(module, options, "<module>");
}
/// Compiles an ONNX model or a program in Tenon's language. The options are those of the
/// compilation and of the import:
///
///   Program program = compile("model.onnx", {{"dims", Map{{"batch", 1}}}, {"level", 3}});
inline Program compile(const std::filesystem::path& path, const Map& options = {}) {
  detail::SplitOptions split = detail::split(options);
  const Map import(split.import);
  const ir::Module module = ir::Module::open(path, import);
  if (!options.find("origin")) {
    split.compile.emplace_back("origin",
                               detail::compiler_function("tenon.origin")(path.string(), import));
  }
  try {
    return detail::compile(module, Map(split.compile), path.string());
  } catch (const UsageError& e) {
    // The compilation's own error about an unknown option omits those of the import.
    if (split.all_known) throw;
    throw UsageError(e.message(), {{"expected", "one of " + split.known}, {"help", e.help()}});
  }
}

}  // namespace v1
}  // namespace tenon
