// Sequences of calls of the compiler's packed functions (driver/functions.def), whose signatures
// there say what to pass: mostly a value of that kind, which earlier calls returned, and sometimes
// any other. So builders get operands of others, and passes modules that were made by hand. The
// functions that they call build more. Each must end in a value or in an error that isn't a bug of
// Tenon. Files are written in the current folder.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "driver/functions.h"
#include "graph/ir/module.h"
#include "graph/ir/op.h"
#include "graph/ir/type.h"
#include "host_memory.h"
#include "library/onednn/register.h"
#include "object/array.h"
#include "object/map.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "sequence.h"
#include "vm/builtin/register.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

struct Parameter {
  std::string name, kind;  // of "builder": the same
};

struct Called {
  std::string name;
  std::vector<Parameter> parameters;
  std::string result;  // its kind
};

// Reads "(builder, name: string) -> operand".
Called called(const char* name, std::string_view signature) {
  Called out{name, {}, {}};
  size_t at = 1, depth = 1;
  std::string text;
  const auto end_parameter = [&] {
    if (text.empty()) return;
    const size_t colon = text.find(": ");
    const std::string kind = colon == std::string::npos ? text : text.substr(colon + 2);
    out.parameters.push_back({text.substr(0, colon), kind});
    text.clear();
  };
  for (; at < signature.size(); ++at) {
    const char c = signature[at];
    depth += c == '(';
    depth -= c == ')';
    if (depth == 0) break;
    if (c == ',' && depth == 1) {
      end_parameter();
    } else if (c != ' ' || !text.empty()) {
      text += c;
    }
  }
  end_parameter();
  const size_t arrow = signature.find("-> ", at);
  if (arrow != std::string_view::npos) out.result = signature.substr(arrow + 3);
  return out;
}

const std::vector<Called>& all_functions() {
  static const std::vector<Called> all = [] {
    std::vector<Called> out;
#define TENON_GROUP(title)
#define TENON_FUNCTION(function, name, signature, summary) out.push_back(called(name, signature));
#include "driver/functions.def"
#undef TENON_FUNCTION
#undef TENON_GROUP
    return out;
  }();
  return all;
}

// Texts by the name or kind of the parameter that takes them.
const std::vector<std::string>& texts_for(const std::string& parameter) {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"type",
       {"tensor[n, 4; f32]", "tensor[2, 3; f32]", "tensor[*; f32]", "tensor[n; i64]", "i64", "bool",
        "f32", "string", "any", "(i64, tensor[n; f32])", "fn(i64) -> i64", "array[i64]", "list[T]",
        "list[i64]", "shape[2]", "fn[T](list[T]) -> i64", "tensor[n+; f32]", "()"}},
      {"names", {"i", "x", "_"}},
      {"function", {"f", "g", "main", "h", "test.f"}},
      {"path", {"made", "made.tn", "made.tnx", ""}},
      {"weights", {"made.weights", "made.tn"}},
      {"dtype", {"f32", "i64", "bool", "bf16", "string", "i3"}},
      {"kind", {"equal", "less_equal", "broadcast", "none"}},
      {"constructor", {"Nil", "Cons", "Nothing"}},
      {"patterns", {"Nil", "Cons(h, t)", "Cons(h, Nil)", "_", "x", "3", "true", "(a, b)", "Cons("}},
      {"passes", {"fold", "fuse", "lower", "simplify", "nothing"}},
      {"text",
       {"type pair[T] { Pair(T, T) }", "fn @g(%x: i64) -> i64 {\n  %x\n}\n",
        "fn @h(%x: tensor[n; f32]) -> tensor[n; f32] {\n  add(%x, %x)\n}\n",
        "fn @g(%l: list[i64]) -> i64 {\n  match %l {\n    "
        "Nil -> 0,\n    Cons(%h, %t) -> @g(%t)\n  }\n}\n",
        "func @main(x: i64) -> i64 {\n  ret %0\n}\n", "fn @", "{\"type\": \"graph.Module\"}"}},
  };
  static const std::vector<std::string> names = {"f",        "g",       "h",  "main", "x",
                                                 "l.map",    "2*n",     "n",  "",     "std/list.tn",
                                                 "tenon.ml", "a\x1b[b", "add"};
  const auto found = all.find(parameter);
  return found == all.end() ? names : found->second;
}

class Sequence {
 public:
  explicit Sequence(Choices choices) : choices_(std::move(choices)) {}

  SequenceOutcome outcome;

  void run() {
    call(named("tenon.build_begin"));
    for (uint64_t calls = 10 + choices_.below(60); calls > 0 && outcome.problem.empty(); --calls)
      step();
    for (const char* name : {"tenon.build_finish", "tenon.build_module", "tenon.run_passes",
                             "tenon.compile", "tenon.interpret"}) {
      if (outcome.problem.empty()) call(named(name));
    }
  }

 private:
  static const Called& named(std::string_view name) {
    for (const Called& f : all_functions()) {
      if (f.name == name) return f;
    }
    std::abort();
  }

  void step() {
    if (choices_.one_in(4)) return call_operator();
    // What builds is called most, and what begins or ends a function least.
    const Called* f = &choices_.of(all_functions());
    for (int tries = 0; tries < 3 && is_rare(f->name); ++tries) f = &choices_.of(all_functions());
    call(*f);
  }
  static bool begins(const std::string& name) {
    return has(name, "begin") || has(name, "discard") || has(name, "finish");
  }
  static bool is_rare(const std::string& name) {
    return !has(name, ".build_") || begins(name) || has(name, "_module");
  }

  void call(const Called& f) {
    std::vector<Any> arguments;
    length_ = choices_.below(3);
    for (const Parameter& p : f.parameters) arguments.push_back(argument(p));
    if (choices_.one_in(64) && !arguments.empty()) arguments.pop_back();
    call(f, arguments);
  }

  void call(const Called& f, const std::vector<Any>& arguments) {
    const std::vector<AnyView> views(arguments.begin(), arguments.end());
    Any result;
    if (find_function(f.name).call(views.data(), static_cast<int32_t>(views.size()), &result)) {
      ++outcome.errors;
      const Error e = take_error();
      if (e.kind() == ErrorKind::Internal)
        outcome.problem = cat(f.name, ": ", e.render(), printed(views));
      return;
    }
    ++outcome.values;
    if (!f.result.empty()) keep(f.result, result);
    if (!begins(f.name)) return;
    kept_["operand"].clear();  // they belong to the function before
    for (uint64_t n = choices_.below(4); n > 0 && outcome.problem.empty(); --n) {
      call(named("tenon.build_param"));
    }
  }

  // The module that a call got, for a finding.
  static std::string printed(std::span<const AnyView> arguments) {
    Any text;
    const bool is_module = !arguments.empty() && arguments[0].is<graph::Module>();
    if (!is_module || find_function("tenon.print").call(arguments.data(), 1, &text)) return "";
    return cat("\n", text.as<String>().view());
  }

  // A call of an operator as it should be, with constants.
  void call_operator() {
    static const std::vector<const graph::Operator*> all = graph::OperatorTable::global().all();
    const graph::Operator& op = *choices_.of(all);
    if (!op.sample) return;
    const graph::Sample sample = op.sample(op, choices_.below(1000));
    Array<Any> operands;
    for (const graph::TypeRef& type : sample.operands) operands.push_back(operand_of(type));
    Map<String, Any> attributes;
    for (const auto& [name, value] : sample.attrs) attributes.set(name, Any(value));
    if (choices_.one_in(8) && !operands.empty()) operands.set(0, any());
    call(named("tenon.build_op"), {value_of("builder"), Any(String(op.name)), Any(operands),
                                   choices_.one_in(16) ? any() : Any(attributes)});
  }

  // A parameter or constant of that type.
  Any operand_of(const graph::TypeRef& type) {
    if (!type) return Any();
    const auto* tensor = graph::type_as<graph::TensorType>(type);
    if (!tensor || choices_.one_in(4)) return value_of("operand");
    return tensor_like(*tensor);
  }
  Any tensor_like(const graph::TensorType& type) {
    std::vector<int64_t> sizes;
    for (const Dim& d : type.dims) sizes.push_back(d.as_const().value_or(2));
    const auto bytes = byte_count(sizes, type.dtype);
    if (!bytes || *bytes > 1 << 16 || type.dtype == string_elements) return value_of("operand");
    Tensor t = Tensor::empty(sizes, type.dtype);
    std::memset(t.data(), 0, static_cast<size_t>(t.bytes()));
    return Any(t);
  }

  void keep(const std::string& kind, const Any& value) {
    std::vector<Any>& of_kind = kept_[kind];
    constexpr size_t kMost = 12;
    if (of_kind.size() < kMost) return of_kind.push_back(value);
    of_kind[choices_.below(kMost)] = value;
  }
  Any value_of(const std::string& kind) {
    const std::vector<Any>& of_kind = kept_[kind];
    if (of_kind.empty()) return any();
    // The latest ones most often: operands of the function that is being built.
    return choices_.one_in(3) ? choices_.of(of_kind) : of_kind.back();
  }

  Any any() {
    switch (choices_.below(10)) {
      case 0:
        return Any();
      case 1:
        return Any(any_number(choices_));
      case 2:
        return Any(choices_.one_in(2));
      case 3:
        return Any(0.5);
      case 4:
        return Any(String(choices_.of(texts_for(choices_.one_in(2) ? "text" : "name"))));
      case 5:
        return array_of({"", "any"});
      case 6: {
        Tensor t = Tensor::empty({2, 3}, choices_.one_in(2) ? f32 : i64);
        std::memset(t.data(), 0, static_cast<size_t>(t.bytes()));
        return Any(t);
      }
      case 7:
        return function();
      default: {
        if (kept_.empty()) return Any();
        auto of_kind = kept_.begin();
        std::advance(of_kind, static_cast<std::ptrdiff_t>(choices_.below(kept_.size())));
        // A builder in its own module would be a cycle, which nothing releases.
        if (of_kind->first == "builder") return Any();
        return of_kind->second.empty() ? Any() : choices_.of(of_kind->second);
      }
    }
  }

  Any array_of(const Parameter& element) {
    Array<Any> out;
    const uint64_t length = choices_.one_in(8) ? choices_.below(4) : length_;
    for (uint64_t n = 0; n < length; ++n) out.push_back(argument(element));
    return Any(out);
  }

  static bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  Any argument(const Parameter& p) {
    if (choices_.one_in(14)) return any();
    const std::string& kind = p.kind;
    if (has(p.name, "option")) return options(kind);
    if (has(kind, "array")) {
      if (has(kind, "functions")) return array_of({"", "function"});
      if (p.name == "names" || p.name == "patterns" || p.name == "passes") {
        return has(kind, "none") && choices_.one_in(2) ? Any() : array_of({p.name, "string"});
      }
      if (p.name == "type arguments" && !choices_.one_in(4)) return Any(Array<Any>());
      if (has(p.name, "type")) return array_of({"type", "type"});
      if (p.name == "sizes") return array_of({"", "size"});
      return array_of({"", "operand"});
    }
    if (p.name == "operator") return operator_name();
    if (p.name == "type key") return type_key();
    if (p.name == "fields") return fields();
    if (has(kind, "type")) {
      return choices_.one_in(3) && !kept_["type"].empty()
                 ? value_of("type")
                 : Any(String(choices_.of(texts_for("type"))));
    }
    if (p.name == "text" && choices_.one_in(2)) return Any(String(choices_.of(texts_for("type"))));
    if (kind == "string") return Any(String(choices_.of(texts_for(p.name))));
    if (has(kind, "bytes")) return value_of("bytes");
    if (kind == "bool") return Any(choices_.one_in(2));
    if (kind == "int") return Any(static_cast<int64_t>(choices_.below(4)));
    if (kind == "size" || p.name == "size") {
      return choices_.one_in(2) ? Any(static_cast<int64_t>(choices_.below(6)))
                                : Any(String(choices_.of(texts_for("size"))));
    }
    if (kind == "function") return function();
    if (kind == "map") return attributes();
    if (has(kind, "module")) return value_of("module");
    if (kind == "node") return value_of("any");
    if (p.name == "condition" && choices_.one_in(2)) return Any(choices_.one_in(2));
    if (kind == "any") return any();
    return value_of(kind);
  }

  Any operator_name() {
    static const std::vector<const graph::Operator*> all = graph::OperatorTable::global().all();
    return Any(String(choices_.of(all)->name));
  }
  Any attributes() {
    Map<String, Any> out;
    static constexpr const char* kNames[] = {"axis",   "axes",  "results", "export",
                                             "inline", "dtype", "to",      "shape"};
    for (uint64_t n = choices_.below(3); n > 0; --n) {
      const bool list = choices_.one_in(3);
      out.set(String(choices_.of(kNames)), list ? array_of({"", "size"}) : any());
    }
    return Any(out);
  }

  // The options that a signature names, with limits in any case.
  Any options(const std::string& kind) {
    Map<String, Any> out;
    struct Row {
      const char *of, *name;
    };
    static constexpr Row kRows[] = {
#define TENON_IMPORT_OPTION(name, ...) {"import", #name},
#define TENON_SOURCE_OPTION(type, name, ...) {"import", #name},
#define TENON_COMPILE_OPTION(type, name, ...) {"compile", #name},
#define TENON_INTERPRET_OPTION(type, name, ...) {"interpret", #name},
#include "driver/options.def"
    };
    if (choices_.one_in(3)) {
      const Row& row = choices_.of(kRows);
      if (has(kind, row.of) || choices_.one_in(8)) {
        out.set(row.name, choices_.one_in(2) ? any() : Any(choices_.one_in(2)));
      }
    }
    out.set("deadline_ns", Any(int64_t{2'000'000'000}));
    out.set("memory", Any(int64_t{256} << 20));
    return Any(out);
  }

  // Objects of the IR, made by hand.
  Any type_key() {
    const char* const* key = &choices_.of(kTypeKeys);
    key_ = *key;
    return Any(String(key_));
  }
  Any fields() {
    Map<String, Any> out;
    const TypeInfo* type = find_type(std::string_view(key_));
    if (!type) return Any(out);
    for (const Field* field : all_fields(*type)) {
      if (choices_.one_in(8)) continue;
      Any value;
      // One that fits, if a few tries find any.
      for (int tries = 0; tries < 12; ++tries) {
        value = choices_.one_in(3) ? array_of({"", "operand"}) : any();
        if (!field->accepts || field->accepts(value)) break;
      }
      out.set(String(field->name), value);
    }
    return Any(out);
  }
  static constexpr const char* kTypeKeys[] = {"graph.Var",         "graph.Constant",
                                              "graph.Binding",     "graph.Block",
                                              "graph.Call",        "graph.Function",
                                              "graph.If",          "graph.Loop",
                                              "graph.Pattern",     "graph.Match",
                                              "graph.Tuple",       "graph.Field",
                                              "graph.Construct",   "graph.Closure",
                                              "graph.Size",        "graph.MatchShape",
                                              "graph.Check",       "graph.TensorType",
                                              "graph.ScalarType",  "graph.ShapeType",
                                              "graph.TupleType",   "graph.FunctionType",
                                              "graph.ArrayType",   "graph.AdtType",
                                              "graph.TypeVar",     "graph.OpaqueType",
                                              "graph.Constructor", "graph.AdtDefinition",
                                              "graph.Module",      "loop.Buffer",
                                              "loop.Var",          "loop.Literal",
                                              "loop.DimValue",     "loop.Load",
                                              "loop.Unary",        "loop.Binary",
                                              "loop.Select",       "loop.Cast",
                                              "loop.CheckedIndex", "loop.Stage",
                                              "loop.Compute",      "loop.Dim"};

  Any function() {
    return Any(Function::from_packed([this](const AnyView* args, int32_t n, Any* result) {
      for (int32_t i = 0; i < n; ++i) {
        if (args[i].type_index == TypeIndex::Array) {
          for (const Any& value : Any(args[i]).as<Array<Any>>()) keep("operand", value);
        }
      }
      if (depth_ < 2) {
        ++depth_;
        for (uint64_t calls = choices_.below(4); calls > 0 && outcome.problem.empty(); --calls)
          step();
        --depth_;
      }
      if (choices_.one_in(24)) throw Error(ErrorKind::Usage, "the host fails");
      *result = choices_.one_in(8) ? any() : value_of("operand");
    }));
  }

  Choices choices_;
  std::map<std::string, std::vector<Any>> kept_;
  std::string key_;
  uint64_t length_ = 0;  // of a call's arrays
  int depth_ = 0;
};

}  // namespace

SequenceOutcome tenon::fuzz::call_compiler(Choices choices) {
  [[maybe_unused]] static const bool is_ready = [] {
    driver::initialise();
    register_onednn();
    driver::register_compiler_functions();
    vm::register_builtins();
    return true;
  }();
  Sequence sequence(std::move(choices));
  sequence.run();
  return sequence.outcome;
}
