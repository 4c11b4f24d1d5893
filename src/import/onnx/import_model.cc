#include "import/onnx/import_model.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "import/onnx/count_nodes.h"
#include "import/onnx/node_context.h"
#include "import/onnx/node_order.h"
#include "import/onnx/read_model.h"

namespace tenon::onnx {

namespace {

using graph::Builder;

// So many nodes may be translated: a few hundred bytes of functions that call functions could else
// ask for 2^50, and the bodies of nested loops are built several times each.
constexpr int64_t kMaxTranslated = 1'000'000;

// A symbol of graph IR: a letter or underscore, then letters, digits, underscores.
std::string symbol_text(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool digit = c >= '0' && c <= '9';
    if (digit && out.empty()) out.push_back('d');
    out.push_back(letter || digit ? c : '_');
  }
  if (out.empty()) out.push_back('d');
  return out;
}

// The names of one graph or function body. Graphs see those of the graph around them.
struct Scope {
  struct Slot {
    Operand value;
    bool unusable = false;  // comes from a node that cannot be imported
  };
  std::unordered_map<std::string, Slot> names;
  const Scope* outer = nullptr;
  const OpsetImports* opsets = nullptr;
  // In a function's body: its call's attributes by name, null ones absent; and the call's name.
  const std::map<std::string, const Attribute*>* arguments = nullptr;
  std::string prefix;
  int function_depth = 0;

  const Slot* find(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer) {
      auto found = s->names.find(name);
      if (found != s->names.end()) return &found->second;
    }
    return nullptr;
  }
};

// "x: tensor[n, 4; f32], w: tensor[4; f32]".
std::string operands_text(const Node& n, const Operands& operands) {
  constexpr size_t kMost = 6;  // Concat may have hundreds
  std::vector<std::string> parts;
  for (size_t i = 0; i < operands.size() && i < kMost; ++i) {
    if (operands[i]) parts.push_back(cat(n.inputs[i], ": ", graph::type_of(operands[i])));
  }
  if (operands.size() > kMost) parts.push_back(cat("and ", operands.size() - kMost, " more"));
  return printable(join(parts, ", "));
}

// Thrown through a node whose inner graph could not be imported; its reason is listed already.
struct GiveUp {};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options) : model_(model), options_(options) {
    for (const ModelFunction& f : model.functions) {
      functions_.emplace(function_key(f.domain, f.name, f.overload), &f);
    }
  }

  // Builds @main's body; problems of nodes are gathered in unsupported().
  void run() {
    check_opsets(model_.opsets);
    builder_.at(Span::node(model_.graph.name.empty() ? model_.file : model_.graph.name));
    Scope scope;
    scope.opsets = &model_.opsets;
    add_inputs(scope);
    add_initializers(model_.graph, scope);
    run_nodes(model_.graph.nodes, scope);
    finish(scope);
  }

  graph::FunctionRef main;
  std::vector<std::string> inputs, outputs;
  std::vector<ModelReport::Value> input_types, output_types;
  std::vector<std::string> symbols;
  std::vector<UnsupportedNode> unsupported;

 private:
  class Runner;

  [[noreturn]] void invalid(const std::string& found, const std::string& expected) const {
    throw against_rules().found(found).expected(expected);
  }

  Error against_rules() const {
    Error e(ErrorKind::Usage, cat(printable(model_.file), " breaks ONNX's rules"));
    return e.help("export the model again, or correct it; `onnx.checker` lists what is wrong");
  }

  std::string node_text(const Node& n) const {
    return cat("node '", printable(n.name), "' (", printable(op_text(n)), ") of ",
               printable(model_.file));
  }

  [[noreturn]] void made_twice(const Node& n, const std::string& name) const {
    throw against_rules()
        .at(Span::node(n.name))
        .where(node_text(n))
        .found(cat("output '", printable(name), "', which something else makes"))
        .expected("one definition of each name");
  }

  void count_translated() {
    if (++translated_ <= kMaxTranslated) return;
    throw Error(ErrorKind::Usage, cat(printable(model_.file), " is too large"))
        .found(cat("more than ", kMaxTranslated,
                   " nodes once functions are expanded, loops unrolled and their bodies built"))
        .expected(cat("at most ", kMaxTranslated));
  }

  void check_opsets(const OpsetImports& opsets) const {
    auto found = opsets.find("");
    if (found != opsets.end() && (found->second < 1 || found->second > kNewestOpset)) {
      throw Error(ErrorKind::Unsupported,
                  cat(printable(model_.file), " uses operators of an unknown version"))
          .found(cat("opset ", found->second))
          .expected(cat("1 to ", kNewestOpset))
          .help("export it for an earlier opset; `onnx.version_converter` may convert it");
    }
  }

  // ---- the graph's border ----

  void add_inputs(Scope& scope) {
    std::set<std::string> constants;
    for (const TensorData& t : model_.graph.initializers) constants.insert(t.name);
    for (const std::string& name : model_.graph.sparse_initializers) constants.insert(name);
    for (const auto& [name, shape] : options_.shapes) {
      bool known = std::any_of(model_.graph.inputs.begin(), model_.graph.inputs.end(),
                               [&name = name](const Value& v) { return v.name == name; });
      if (!known || constants.count(name) > 0) {
        throw Error(ErrorKind::Usage,
                    cat(printable(model_.file), " has no input '", printable(name), "'"))
            .found(cat("a shape for '", printable(name), "'"))
            .expected(cat("one of ", printable(join(input_names(constants), ", "))));
      }
    }
    for (const Value& v : model_.graph.inputs) {
      if (constants.count(v.name) > 0) continue;
      if (v.name.empty()) invalid("an input without a name", "a name for each input");
      if (scope.names.count(v.name) > 0) {
        invalid(cat("input '", printable(v.name), "' twice"), "one definition of each name");
      }
      inputs.push_back(v.name);
      std::string problem = type_problem(v.type);
      if (!problem.empty()) {
        unsupported.push_back({v.name, "(input)", problem});
        scope.names[v.name] = {{}, true};
        input_types.push_back({v.name, problem});
        continue;
      }
      graph::TypeRef type = input_type(v);
      input_types.push_back({v.name, to_text(type)});
      graph::collect_symbols(type, &symbols);
      scope.names[v.name] = {builder_.param(v.name, type), false};
    }
    check_given_dims();
  }

  static std::string type_problem(const ValueType& type) {
    switch (type.kind) {
      case ValueType::kTensor:
        return dtype_of(type.element) ? ""
                                      : cat(data_type_name(type.element), " is not implemented");
      case ValueType::kNone:
        return "an input without a type";
      case ValueType::kSequence:
        return "sequences are not implemented";
      case ValueType::kMap:
        return "maps are not implemented";
      case ValueType::kOptional:
        return "optional values are not implemented";
      case ValueType::kSparse:
        return "sparse tensors are not implemented";
      case ValueType::kOpaque:
        return "opaque values are not implemented";
    }
    return "";
  }

  graph::TypeRef input_type(const Value& v) {
    DataType dtype = *dtype_of(v.type.element);
    std::vector<Dimension> shape = v.type.shape;
    bool known = v.type.has_shape;
    auto given = options_.shapes.find(v.name);
    if (given != options_.shapes.end()) {
      if (known && given->second.size() != shape.size()) {
        throw Error(ErrorKind::Usage, cat("the shape given for '", printable(v.name),
                                          "' does not fit ", printable(model_.file)))
            .found(cat("rank ", given->second.size()))
            .expected(cat("rank ", shape.size()));
      }
      shape.resize(given->second.size());
      known = true;
      for (size_t i = 0; i < shape.size(); ++i) {
        if (given->second[i] >= 0) shape[i] = {given->second[i], ""};
      }
    }
    if (!known) return graph::tensor_type_unknown(dtype);
    if (shape.size() > static_cast<size_t>(kMaxRank)) {
      invalid(cat("input '", printable(v.name), "' of rank ", shape.size()),
              cat("at most ", kMaxRank));
    }
    std::vector<Dim> dims;
    for (size_t i = 0; i < shape.size(); ++i) dims.push_back(size_of(shape[i], v.name, i));
    return graph::tensor_type(dtype, dims);
  }

  Dim size_of(const Dimension& d, const std::string& input, size_t axis) {
    if (d.value >= 0) return d.value;
    if (d.symbol.empty()) return given_or_fresh("", cat(symbol_text(input), "_", axis));
    auto found = symbol_names_.find(d.symbol);
    if (found != symbol_names_.end()) return found->second;
    return symbol_names_.emplace(d.symbol, given_or_fresh(d.symbol, symbol_text(d.symbol)))
        .first->second;
  }

  // The size given for a symbol, by ONNX's name of it or by the one that a signature shows.
  Dim given_or_fresh(const std::string& name, const std::string& symbol) {
    offered_dims_.push_back(symbol);
    auto given = options_.dims.find(name);
    if (given == options_.dims.end()) given = options_.dims.find(symbol);
    if (given == options_.dims.end()) return builder_.fresh_symbol(symbol);
    used_dims_.insert(given->first);
    return given->second;
  }

  void check_given_dims() const {
    for (const auto& [name, size] : options_.dims) {
      if (used_dims_.count(name) > 0) continue;
      throw Error(ErrorKind::Usage,
                  cat(printable(model_.file), " has no size '", printable(name), "'"))
          .found(cat("a size for '", printable(name), "'"))
          .expected(offered_dims_.empty() ? "none: the sizes of its inputs are fixed"
                                          : cat("one of ", printable(join(offered_dims_, ", "))));
    }
  }

  std::vector<std::string> input_names(const std::set<std::string>& constants) const {
    std::vector<std::string> names;
    for (const Value& v : model_.graph.inputs) {
      if (constants.count(v.name) == 0) names.push_back(v.name);
    }
    return names;
  }

  void add_initializers(const Graph& graph, Scope& scope) {
    for (const std::string& name : graph.sparse_initializers) {
      unsupported.push_back({name, "(initializer)", "sparse tensors are not implemented"});
      scope.names[name] = {{}, true};
    }
    for (const TensorData& t : graph.initializers) {
      if (scope.names.count(t.name) > 0) {
        invalid(cat("initializer '", printable(t.name), "', which something else makes"),
                "one definition of each name");
      }
      if (t.tensor) {
        scope.names[t.name] = {graph::constant(t.tensor, t.name), false};
      } else {
        unsupported.push_back({t.name, "(initializer)", t.problem});
        scope.names[t.name] = {{}, true};
      }
    }
  }

  void finish(const Scope& scope) {
    Operands results;
    bool usable = true;
    if (model_.graph.outputs.empty()) invalid("a graph without outputs", "one or more");
    builder_.at(Span::node("(outputs)"));
    for (const Value& v : model_.graph.outputs) {
      outputs.push_back(v.name);
      const Scope::Slot* slot = scope.find(v.name);
      if (slot == nullptr) {
        if (unsupported.empty()) {
          invalid(cat("output '", printable(v.name), "', which nothing makes"),
                  "the name of an input, an initializer or a node's output");
        }
        usable = false;
        continue;
      }
      usable = usable && !slot->unusable;
      results.push_back(slot->value);
      output_types.push_back(
          {v.name, slot->value ? to_text(graph::type_of(slot->value)) : "unknown"});
    }
    TENON_ASSERT(usable || !unsupported.empty(), "an output is unusable for no reason");
    if (!unsupported.empty()) return;
    Array<String> names;
    for (const std::string& name : outputs) names.push_back(String(name));
    main = builder_.finish("main", results.size() == 1 ? results[0] : builder_.tuple(results),
                           graph::attrs({{"results", Any(names)}}));
  }

  // ---- nodes ----

  void run_nodes(const std::vector<Node>& list, Scope& scope) {
    // Before they are ordered: one that makes again what the graph has would look like a cycle.
    for (const Node& n : list) {
      for (const std::string& name : n.outputs) {
        if (!name.empty() && scope.names.count(name) > 0) made_twice(n, name);
      }
    }
    for (size_t i : node_order(list, model_.file)) run_node(list[i], scope);
  }

  void run_node(const Node& node, Scope& scope) {
    count_translated();
    Node named;  // only where something changes
    const Node* n = &node;
    if (scope.arguments != nullptr || !scope.prefix.empty()) {
      named = node;
      if (!scope.prefix.empty()) named.name = cat(scope.prefix, "/", node.name);
      if (scope.arguments != nullptr) resolve_attributes(named, *scope.arguments);
      n = &named;
    }
    auto function = functions_.find(function_key(n->domain, n->op, n->overload));
    if (function != functions_.end()) {
      call_function(*n, *function->second, scope);
      return;
    }
    auto version = scope.opsets->find(n->domain);
    // Domains other than ai.onnx are often used without being imported.
    int64_t opset = version != scope.opsets->end() ? version->second
                    : n->domain.empty()            ? kNewestOpset
                                                   : 1;
    Translate translate = OpTable::global().find(n->domain, n->op, opset);
    Operands operands;
    bool usable = collect_inputs(*n, scope, &operands);
    if (translate == nullptr) {
      refuse(*n, "not implemented");
      usable = false;
    }
    if (!usable) {
      look_through(*n, scope);
      set_outputs(*n, {}, scope);
      return;
    }
    translate_node(*n, translate, std::move(operands), opset, scope);
  }

  void translate_node(const Node& n, Translate translate, Operands operands, int64_t opset,
                      Scope& scope);

  void refuse(const Node& n, const std::string& reason) {
    unsupported.push_back({n.name, op_text(n), reason});
  }

  bool collect_inputs(const Node& n, const Scope& scope, Operands* out) const {
    bool usable = true;
    for (const std::string& name : n.inputs) {
      if (name.empty()) {
        out->push_back({});
        continue;
      }
      const Scope::Slot* slot = scope.find(name);
      if (slot == nullptr) {
        throw against_rules()
            .at(Span::node(n.name))
            .where(node_text(n))
            .found(cat("operand '", printable(name), "', which nothing makes"))
            .expected("the name of an input, an initializer or a node's output");
      }
      usable = usable && !slot->unusable;
      out->push_back(slot->value);
    }
    return usable;
  }

  // Null outputs where `values` has none: they are unusable.
  void set_outputs(const Node& n, const Operands& values, Scope& scope) {
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const std::string& name = n.outputs[i];
      if (name.empty()) continue;
      if (scope.names.count(name) > 0) made_twice(n, name);
      Operand value = i < values.size() ? values[i] : Operand();
      scope.names[name] = {value, !value};
    }
  }

  // Lists what cannot be imported in the inner graphs of a node that is not run.
  void look_through(const Node& n, const Scope& scope) {
    for (const Attribute& a : n.attributes) {
      if (a.graph == nullptr) continue;
      for (const Node& inner : a.graph->nodes) {
        count_translated();
        auto version = scope.opsets->find(inner.domain);
        int64_t opset = version != scope.opsets->end() ? version->second : kNewestOpset;
        bool known = functions_.count(function_key(inner.domain, inner.op, inner.overload)) > 0 ||
                     OpTable::global().find(inner.domain, inner.op, opset) != nullptr;
        if (!known) refuse(inner, "not implemented");
        look_through(inner, scope);
      }
    }
  }

  // ---- model functions ----

  static void resolve_attributes(Node& n,
                                 const std::map<std::string, const Attribute*>& arguments) {
    std::vector<Attribute> resolved;
    for (Attribute& a : n.attributes) {
      if (a.reference.empty()) {
        resolved.push_back(std::move(a));
        continue;
      }
      auto found = arguments.find(a.reference);
      if (found == arguments.end() || found->second == nullptr) continue;  // absent in the call
      Attribute value = *found->second;
      value.name = a.name;
      resolved.push_back(std::move(value));
    }
    n.attributes = std::move(resolved);
  }

  // A result may be an operand of a function, and that operand may be left out of the call.
  void check_given(const Scope::Slot& slot, const std::string& name, const std::string& of) const {
    if (slot.unusable || slot.value) return;
    invalid(cat("result '", printable(name), "' of ", of, ", an operand that a call leaves out"),
            "a value for each result");
  }

  void call_function(const Node& n, const ModelFunction& f, Scope& scope) {
    if (scope.function_depth >= kMaxFunctionDepth) {
      throw Error(ErrorKind::Usage, cat(printable(model_.file), " nests functions too deeply"))
          .where(cat("function '", printable(f.name), "'"))
          .found("functions that call each other without end, or more deeply than that")
          .expected(cat("at most ", kMaxFunctionDepth, " levels"));
    }
    check_opsets(f.opsets);
    std::map<std::string, const Attribute*> arguments;
    for (const Attribute& a : f.defaults) arguments[a.name] = &a;
    for (const Attribute& a : n.attributes) arguments[a.name] = &a;
    Scope body;
    body.opsets = f.opsets.empty() ? scope.opsets : &f.opsets;
    body.arguments = &arguments;
    body.prefix = n.name;
    body.function_depth = scope.function_depth + 1;
    Operands operands;
    collect_inputs(n, scope, &operands);
    if (operands.size() > f.inputs.size()) {
      throw against_rules()
          .at(Span::node(n.name))
          .where(node_text(n))
          .found(cat(operands.size(), " operands"))
          .expected(
              cat("at most ", f.inputs.size(), ", as the function '", printable(f.name), "' has"));
    }
    if (n.outputs.size() > f.outputs.size()) {
      throw against_rules()
          .at(Span::node(n.name))
          .where(node_text(n))
          .found(cat(n.outputs.size(), " outputs"))
          .expected(
              cat("at most ", f.outputs.size(), ", as the function '", printable(f.name), "' has"));
    }
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      const Scope::Slot* slot =
          i < n.inputs.size() && !n.inputs[i].empty() ? scope.find(n.inputs[i]) : nullptr;
      body.names[f.inputs[i]] = slot != nullptr ? *slot : Scope::Slot{};
    }
    run_nodes(f.nodes, body);
    builder_.at(Span::node(n.name));
    Operands results;
    for (const std::string& name : f.outputs) {
      const Scope::Slot* slot = body.find(name);
      if (slot == nullptr) {
        invalid(cat("output '", printable(name), "' of the function '", printable(f.name),
                    "', which nothing makes"),
                "the name of an input or of a node's output");
      }
      check_given(*slot, name, cat("function '", printable(f.name), "'"));
      results.push_back(slot->value);
    }
    set_outputs(n, results, scope);
  }

  const Model& model_;
  const ImportOptions& options_;
  Builder builder_;
  std::map<std::string, const ModelFunction*> functions_;
  std::map<std::string, Dim> symbol_names_;
  int64_t translated_ = 0;
  std::vector<std::string> offered_dims_;  // the inputs' symbols, as a signature shows them
  std::set<std::string> used_dims_;        // the sizes given that had a symbol to fix

  friend class Runner;
};

class Importer::Runner final : public GraphRunner {
 public:
  Runner(Importer& importer, Scope& scope, const Node& node)
      : importer_(importer), scope_(scope), node_(node) {}

  std::optional<Operands> run_graph(const Graph& graph, const Operands& inputs) override {
    Scope inner;
    inner.outer = &scope_;
    inner.opsets = scope_.opsets;
    inner.arguments = scope_.arguments;
    inner.prefix = scope_.prefix;
    inner.function_depth = scope_.function_depth;
    if (graph.inputs.size() != inputs.size()) {
      importer_.invalid(cat("an inner graph of '", printable(node_.name), "' with ",
                            graph.inputs.size(), " inputs"),
                        cat(inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      inner.names[graph.inputs[i].name] = {inputs[i], false};
    }
    importer_.add_initializers(graph, inner);
    importer_.run_nodes(graph.nodes, inner);
    importer_.builder_.at(Span::node(node_.name));
    Operands out;
    for (const Value& v : graph.outputs) {
      const Scope::Slot* slot = inner.find(v.name);
      if (slot == nullptr) {
        importer_.invalid(cat("output '", printable(v.name), "' of an inner graph of '",
                              printable(node_.name), "', which nothing makes"),
                          "the name of an input, an initializer or a node's output");
      }
      if (slot->unusable) return std::nullopt;
      importer_.check_given(*slot, v.name, cat("the inner graph of '", printable(node_.name), "'"));
      out.push_back(slot->value);
    }
    return out;
  }

  void give_up() override { throw GiveUp{}; }

 private:
  Importer& importer_;
  Scope& scope_;
  const Node& node_;
};

void Importer::translate_node(const Node& n, Translate translate, Operands operands, int64_t opset,
                              Scope& scope) {
  builder_.at(Span::node(n.name));
  Runner runner(*this, scope, n);
  const std::string types = operands_text(n, operands);
  NodeContext cx(builder_, n, std::move(operands), opset, runner);
  Operands results;
  std::string reason;
  try {
    results = translate(cx);
    if (const Attribute* a = cx.unread()) reason = cat("attribute '", a->name, "' not implemented");
    for (size_t i = 0; i < n.outputs.size() && reason.empty(); ++i) {
      if (cx.wants(i) && (i >= results.size() || !results[i])) {
        reason = cat("output ", i, " ('", n.outputs[i], "') not implemented");
      }
    }
  } catch (const GiveUp&) {
    results.clear();
  } catch (Error& e) {
    if (e.kind() != ErrorKind::Unsupported) {
      e.at(Span::node(n.name));
      bool said = std::any_of(e.rows().begin(), e.rows().end(),
                              [](const Error::Row& r) { return r.label == "where"; });
      if (said) throw;
      if (!types.empty()) e.first_row("operands", types);
      e.first_row("where", node_text(n));
      throw;
    }
    reason = e.message();
  }
  if (!reason.empty()) {
    refuse(n, reason);
    results.clear();
  }
  // Sizes that only running tells get symbols, so that whatever reads the value knows its rank.
  for (Operand& value : results) {
    if (!value) continue;
    graph::TypeRef type = graph::type_of(value);
    const auto* t = graph::type_as<graph::TensorType>(type);
    if (t == nullptr || t->dims_known || t->rank < 0) continue;
    Dims dims;
    for (int64_t i = 0; i < t->rank; ++i) dims.push_back(builder_.fresh_symbol("d"));
    value = builder_.match_shape(value, dims);
  }
  set_outputs(n, results, scope);
}

std::string opset_text(const Model& model) {
  std::vector<std::string> parts;
  for (const auto& [domain, version] : model.opsets) {
    parts.push_back(domain.empty() ? cat("opset ", version) : cat(domain, " ", version));
  }
  return parts.empty() ? "no opset" : join(parts, ", ");
}

}  // namespace

ImportResult import_model(const Model& model, const ImportOptions& options) {
  Importer importer(model, options);
  importer.run();
  if (!importer.unsupported.empty()) {
    // Inputs and initializers of a type that isn't implemented stand in the table too.
    int64_t count =
        std::count_if(importer.unsupported.begin(), importer.unsupported.end(),
                      [](const UnsupportedNode& u) { return u.op.empty() || u.op[0] != '('; });
    int64_t nodes = count_nodes(model).nodes;
    std::string what = count == 0
                           ? cat(importer.unsupported.size(), " of its inputs and initializers")
                           : cat(count, " of ", nodes, nodes == 1 ? " node" : " nodes");
    Error e(ErrorKind::Unsupported, cat(printable(model.file), ": ", what, " cannot be imported (",
                                        printable(opset_text(model)), ")"));
    e.table({"node", "operator", "reason"});
    for (const UnsupportedNode& u : importer.unsupported) {
      e.table({printable(u.node), printable(u.op), printable(u.reason)});
    }
    throw e.help("`tenon ops` lists what is supported; nothing was written");
  }
  Map<String, graph::FunctionRef> functions;
  functions.set("main", importer.main);
  return {graph::make_module(functions), importer.inputs, importer.outputs};
}

ImportResult import_model(const std::string& path, const ImportOptions& options) {
  return import_model(read_model(path), options);
}

ModelReport inspect_model(const Model& model, const ImportOptions& options) {
  ModelReport r;
  r.file = model.file;
  r.producer = model.producer;
  r.ir_version = model.ir_version;
  r.opsets = model.opsets;
  for (const TensorData& t : model.graph.initializers) {
    ++r.constants;
    if (t.tensor) r.constant_bytes += t.tensor.bytes();
  }
  Importer importer(model, options);
  try {
    importer.run();
  } catch (const Error& e) {
    r.problem = e.render();
    r.problem_kind = e.kind();
  }
  r.inputs = importer.input_types;
  r.outputs = importer.output_types;
  r.symbols = importer.symbols;
  NodeCount count = count_nodes(model);
  r.operators = std::move(count.operators);
  r.nodes = count.nodes;
  r.unsupported = importer.unsupported;
  return r;
}

ModelReport inspect_model(const std::string& path, const ImportOptions& options) {
  return inspect_model(read_model(path), options);
}

}  // namespace tenon::onnx
