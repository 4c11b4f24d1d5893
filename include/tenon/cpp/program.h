// Programs: compiled files, loaded. Included by tenon/tenon.h.
#pragma once

#include <chrono>
#include <future>

#include "tenon/cpp/data_type.h"
#include "tenon/cpp/function.h"

namespace tenon {
inline namespace v1 {

using Nanoseconds = std::chrono::nanoseconds;

/// Limits of each call; nothing stands for no limit.
struct Limits {
  int threads = 0;                           ///< of parallel loops; 0 for all available
  std::optional<int64_t> fuel = {};          ///< function entries and backward jumps
  std::optional<Nanoseconds> deadline = {};  ///< from the call's start
  std::optional<int64_t> memory = {};        ///< bytes of stack, tensors and other values
  std::optional<int64_t> depth = {};         ///< nested calls; by default 1,048,576
  std::optional<int64_t> stack = {};         ///< bytes of registers from 64 KiB; by default 256 MiB

  /// For the C interface.
  tenon_limits raw() const noexcept {
    return {sizeof(tenon_limits), threads,
            fuel.value_or(-1),    deadline.value_or(Nanoseconds(-1)).count(),
            memory.value_or(-1),  depth.value_or(-1),
            stack.value_or(-1)};
  }
};

struct LoadOptions {
  /// The file's sender isn't trusted: its native code is ignored, and the compiler's library, which
  /// is loaded for it, compiles the kernels from the computes in the file.
  bool untrusted = false;
  std::optional<Nanoseconds> deadline = {};  ///< from the start of loading
  std::optional<int64_t> memory = {};        ///< bytes that loading may allocate
  /// Searched first, in order, for the functions that the program calls.
  std::vector<Module> modules = {};
  /// The weights that the file leaves out, by name, and any others. The program shares their
  /// elements, which must not change.
  std::map<std::string, Tensor> weights = {};
  std::string name = {};  ///< in errors; if empty, the path, or "<memory>" for bytes
};

/// A size of a parameter or result.
struct Dim {
  int64_t size;      ///< -1 if it is symbolic
  std::string text;  ///< "3", "batch", "2*n"
};

/// A parameter or result of a function.
struct Parameter {
  std::string name;  ///< empty for an unnamed result
  std::string type;  ///< "tensor[batch, 3; f32]", "i64"
  int32_t kind;  ///< TENON_TENSOR, TENON_SHAPE, TENON_INT, TENON_BOOL, TENON_FLOAT, TENON_ARRAY,
                 ///< TENON_FUNCTION, or TENON_NONE for anything else
  DLDataType dtype;                      ///< of a tensor or number
  std::optional<std::vector<Dim>> dims;  ///< of a tensor or shape, if known
};

/// A function whose result is a tuple has one result for each field, and returns an Array.
struct Signature {
  std::vector<Parameter> params, results;

  /// "(x: tensor[n; f32]) -> tensor[n; f32]"
  std::string text() const {
    const std::string result = list(results);
    return "(" + list(params) + ") -> " + (results.size() == 1 ? result : "(" + result + ")");
  }

 private:
  static std::string list(const std::vector<Parameter>& values) {
    std::string out;
    for (const Parameter& p : values) {
      out += (out.empty() ? "" : ", ") + p.name + (p.name.empty() ? "" : ": ") + p.type;
    }
    return out;
  }
};

namespace detail {

/// The compiler's library, loaded when it is first asked for.
inline const Module& compiler_library() {
  static const Module library = load_library("tenon_compiler");
  return library;
}
/// For the kernels of an untrusted file. A file without kernels loads without it, too; the load of
/// another then fails and names what it lacks.
inline void prepare_untrusted_load() {
  try {
    compiler_library();
  } catch (const Error&) {
  }
}

}  // namespace detail

/// A compiled program, loaded, verified and linked. Immutable; threads may share it.
class Program : public Value {
 public:
  static constexpr const char* kTypeName = "tenon.Program";
  static bool accepts(const Value& v) { return v.type_key() == kTypeName; }
  static Program unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  Program() = default;
  /// Maps a .tnx file, or a shared object that holds one. The functions that it calls must be
  /// registered before. The file may be replaced or removed afterwards, but not truncated.
  static Program load(const std::filesystem::path& path, const LoadOptions& options = {}) {
    Program out;
    if (options.untrusted) detail::prepare_untrusted_load();
    with_raw(options, [&](const tenon_load_options& o) {
      detail::check(tenon_program_load_with(path.c_str(), &o, out.out()));
    });
    return out;
  }
  /// Loads a file from memory, which is copied.
  static Program from_bytes(std::span<const std::byte> file, const LoadOptions& options = {}) {
    Program out;
    if (options.untrusted) detail::prepare_untrusted_load();
    with_raw(options, [&](const tenon_load_options& o) {
      detail::check(tenon_program_from_bytes(file.data(), file.size(), &o, out.out()));
    });
    return out;
  }

  /// The bytes of the file that the program was loaded from, borrowed from the program. Of an
  /// untrusted file they have its native code: whoever loads them again must say `untrusted` again.
  std::span<const std::byte> file() const noexcept {
    const tenon_text text = tenon_program_file(raw());
    return {reinterpret_cast<const std::byte*>(text.data), text.size};
  }
  /// Writes that file, of which others see all or nothing. Throws UsageError where it can't be
  /// written. This and the next three need the compiler's library.
  void save(const std::filesystem::path& path) const;

  /// What the file holds: functions with their instructions, constants, kernels, native code.
  Map stats() const;
  /// The program as assembly (docs/assembly.md). Constants of more than 64 elements and native code
  /// are left out unless `full`.
  std::string as_text(bool full = false) const;
  /// The program's code in Python's syntax: documentation, to be read and not to be run.
  std::string as_python() const;

  /// The names of the exported functions.
  std::vector<std::string> functions() const {
    Value names;
    detail::check(tenon_program_functions(raw(), names.out()));
    return detail::texts_of(names);
  }
  /// The definitions of the data types in the signatures of these functions.
  std::vector<TypeDefinition> types() const {
    Value texts;
    detail::check(tenon_program_types(raw(), texts.out()));
    std::vector<TypeDefinition> out;
    for (const std::string& text : detail::texts_of(texts)) {
      out.push_back(TypeDefinition::parse(text));
    }
    return out;
  }
  /// A constructor of these data types. Throws UsageError for an unknown name.
  Constructor constructor(const std::string& name) const {
    std::string known;
    for (const TypeDefinition& type : types()) {
      for (size_t tag = 0; tag < type.constructors.size(); ++tag) {
        if (type.constructors[tag].name == name) return {type, tag};
      }
      known += (known.empty() ? "" : "; ") + type.text;
    }
    throw UsageError("the program's data types have no constructor of this name",
                     {{"found", name}, {"expected", known}});
  }
  /// A value of such a type (Parameter::type) as text, with the names of constructors:
  /// "Node(Leaf, 1, Leaf)". What follows 64 KB is elided. Throws DamagedError for a text that is no
  /// type.
  std::string repr(const Value& value, std::string_view type) const {
    return detail::DataPrinter(types()).text(value, Type::parse(type));
  }
  /// The value itself, without a type, as text.
  using Value::repr;
  /// Throws UsageError for a name that the program doesn't export.
  Signature signature(const std::string& function = "main") const {
    int32_t params = 0, results = 0;
    detail::check(tenon_program_signature(raw(), function.c_str(), &params, &results));
    Signature out;
    for (int32_t i = 0; i < params; ++i)
      out.params.push_back(describe(tenon_program_param, function, i));
    for (int32_t i = 0; i < results; ++i) {
      out.results.push_back(describe(tenon_program_result, function, i));
    }
    return out;
  }
  /// A function of the program as a value, whose calls have these limits.
  Function function(const std::string& name, const Limits& limits = {}) const {
    const tenon_limits l = limits.raw();
    Value out;
    detail::check(tenon_program_function(raw(), name.c_str(), &l, out.out()));
    return Function::unchecked(std::move(out));
  }
  Function operator[](const std::string& name) const { return function(name); }
  /// All exported functions.
  Module module(const Limits& limits = {}) const {
    const tenon_limits l = limits.raw();
    Value out;
    detail::check(tenon_program_module(raw(), &l, out.out()));
    return Module::unchecked(std::move(out));
  }
  /// Calls "main". To call a function often, keep `function(name)`, or use a Machine.
  template <class... A>
  Value operator()(A&&... args) const {
    return function("main")(std::forward<A>(args)...);
  }

 private:
  Program(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}

  template <class F>
  static void with_raw(const LoadOptions& options, F&& f) {
    tenon_load_options out = TENON_LOAD_DEFAULTS;
    const Value weights = options.weights;
    if (options.untrusted) out.flags = TENON_UNTRUSTED;
    out.deadline_ns = options.deadline.value_or(Nanoseconds(-1)).count();
    out.memory = options.memory.value_or(-1);
    out.modules = reinterpret_cast<const tenon_any*>(options.modules.data());
    out.module_count = options.modules.size();
    out.weights = weights.raw();
    if (!options.name.empty()) out.name = options.name.c_str();
    f(out);
  }
  template <class Get>
  Parameter describe(Get get, const std::string& function, int32_t index) const {
    tenon_value_info info{};
    info.size = sizeof info;
    detail::check(get(raw(), function.c_str(), index, &info));
    const auto text = [](const tenon_text& t) { return std::string(t.data, t.size); };
    Parameter out{text(info.name), text(info.type), info.kind, info.dtype, {}};
    if (info.dims) {
      out.dims.emplace();
      for (int32_t i = 0; i < info.rank; ++i)
        out.dims->push_back({info.dims[i], text(info.symbols[i])});
    }
    return out;
  }
};

}  // namespace v1
}  // namespace tenon
