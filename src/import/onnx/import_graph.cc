#include "import/onnx/import_graph.h"

#include <algorithm>
#include <utility>

#include "import/onnx/container.h"
#include "import/onnx/count_nodes.h"
#include "import/onnx/custom_operator.h"
#include "import/onnx/node_order.h"
#include "import/onnx/rules.h"
#include "import/onnx/scope.h"
#include "import/onnx/signature.h"
#include "import/onnx/sparse_tensor.h"
#include "import/onnx/translate_node.h"
#include "support/poll.h"

namespace tenon::onnx {

namespace {

// How many nodes may be translated. A few hundred bytes of functions that call functions could
// otherwise expand to 2^50 nodes, and the bodies of nested loops are built several times each.
constexpr int64_t kMaxTranslated = 1'000'000;

// A node with many operands or long attributes counts as several.
constexpr size_t kPartsPerNode = 64;

size_t parts_of(const Node& node) {
  size_t parts = node.inputs.size() + node.outputs.size();
  for (const Attribute& a : node.attributes) {
    parts += 1 + a.ints.size() + a.floats.size() + a.strings.size();
  }
  return parts;
}

constexpr const char* kSources = "the name of an input, an initializer or a node's output";

class GraphImporter {
 public:
  GraphImporter(const Model& model, const ImportOptions& options, ImportedGraph* out)
      : model_(model), options_(options), out_(*out) {
    for (const ModelFunction& f : model.functions) {
      functions_.emplace(function_key(f.domain, f.name, f.overload), &f);
    }
  }

  void run() {
    check_opsets(model_, model_.opsets);
    builder_.at(Span::node(model_.graph.name.empty() ? model_.file : model_.graph.name));
    Scope scope(model_.opsets);
    const Signature signature(model_, options_, builder_, scope);
    out_.inputs = signature.types;
    out_.symbols = signature.symbols.names();
    out_.unsupported = signature.unsupported;
    signature.check_given();
    add_initializers(model_.graph, scope);
    for (const size_t i : run_nodes(model_.graph.nodes, scope)) {
      add_values(model_.graph.nodes[i], scope);
    }
    finish(scope);
  }

 private:
  void add_initializers(const Graph& graph, Scope& scope) {
    for (const SparseData& t : graph.sparse_initializers) {
      add_initializer(t.values.name, problem_of(t), scope, [&] {
        builder_.at(Span::node(t.values.name));
        return dense(builder_, t, t.values.name);
      });
    }
    for (const TensorData& t : graph.initializers) {
      add_initializer(t.name, t.problem, scope, [&] { return graph::constant(t.tensor, t.name); });
    }
  }

  void add_initializer(const std::string& name, const std::string& problem, Scope& scope,
                       const std::function<Operand()>& value) {
    poll();
    if (scope.has(name)) {
      invalid(model_, cat("initializer '", printable(name), "', which is already defined"),
              "one definition of each name");
    }
    if (problem.empty()) return scope.define(name, value());
    out_.unsupported.push_back({Unsupported::What::Initializer, name, "", "", problem});
    scope.define_unusable(name);
  }

  void finish(const Scope& scope) {
    if (model_.graph.outputs.empty()) invalid(model_, "a graph without outputs", "one or more");
    builder_.at(Span::node("(outputs)"));
    Operands results;
    Array<String> names;
    for (const Value& v : model_.graph.outputs) {
      const Scope::Slot* slot = scope.find(v.name);
      if (slot == nullptr) {
        if (!out_.unsupported.empty()) continue;
        invalid(model_, cat("output '", printable(v.name), "', which nothing defines"), kSources);
      }
      TENON_ASSERT(!slot->unusable || !out_.unsupported.empty(), "'", v.name,
                   "' is unusable for no reason");
      results.push_back(slot->value);
      names.push_back(String(v.name));
      out_.outputs.push_back(slot->value ? report_value(v.name, graph::type_of(slot->value))
                                         : ModelReport::Value{v.name, std::nullopt});
    }
    if (!out_.unsupported.empty()) return;
    out_.has_maps = declares_maps(builder_);
    out_.main = builder_.finish("main", results.size() == 1 ? results[0] : builder_.tuple(results),
                                graph::attrs({{graph::kResultsAttr, Any(names)}}));
  }

  void add_values(const Node& node, const Scope& scope) {
    for (const std::string& name : node.outputs) {
      const Scope::Slot* slot = scope.find(name);
      if (slot && slot->value) out_.values.push_back({name, node.name, op_text(node), slot->value});
    }
  }

  // ---- nodes ----

  // Returns the order in which the nodes ran.
  std::vector<size_t> run_nodes(const std::vector<Node>& list, Scope& scope) {
    // Checked before sorting, since a node that redefines one of the graph's names would look like
    // a cycle.
    for (const Node& n : list) {
      for (const std::string& name : n.outputs) {
        if (!name.empty() && scope.has(name)) defined_twice(n, name);
      }
    }
    std::vector<size_t> order = node_order(list, model_.file);
    for (const size_t i : order) run_node(list[i], scope);
    return order;
  }

  void run_node(const Node& node, Scope& scope) {
    count_translated(1 + parts_of(node) / kPartsPerNode);
    Node storage;
    const Node& n = scope.resolve(node, &storage);
    const bool custom = is_custom(n);
    const auto f = functions_.find(function_key(n.domain, n.op, n.overload));
    if (!custom && f != functions_.end()) return call_function(n, *f->second, scope);
    // Domains other than ai.onnx are often used without being imported.
    const int64_t opset = scope.opset(n.domain, n.domain.empty() ? kNewestOpset : 1);
    const Translate translate =
        custom ? translate_custom : OpTable::global().find(n.domain, n.op, opset);
    Operands operands;
    bool usable = collect_inputs(n, scope, &operands);
    if (translate == nullptr) {
      refuse(n, OpTable::global().reason_against(n.domain, n.op));
      usable = false;
    }
    if (!usable) {
      look_through(n, scope);
      return define_outputs(n, {}, scope);
    }
    const Translation translation =
        translate_node(model_, n, translate, std::move(operands), opset, builder_,
                       [&](const Graph& graph, const Operands& inputs) {
                         return run_inner_graph(n, graph, inputs, scope);
                       });
    if (!translation.problem.empty()) refuse(n, translation.problem);
    define_outputs(n, translation.results, scope);
  }

  void count_translated(size_t count = 1) {
    poll();
    translated_ += static_cast<int64_t>(count);
    if (translated_ <= kMaxTranslated) return;
    throw Error(ErrorKind::Usage, cat(printable(model_.file), " is too large"))
        .found(cat("more than ", kMaxTranslated,
                   " nodes once functions are expanded, loops unrolled and their bodies built"))
        .expected(cat("at most ", kMaxTranslated));
  }

  void refuse(const Node& n, const std::string& reason) {
    out_.unsupported.push_back({Unsupported::What::Node, n.name, n.domain, n.op, reason});
  }

  [[noreturn]] void defined_twice(const Node& n, const std::string& name) const {
    throw against_rules(model_, n)
        .found(cat("output '", printable(name), "', which is already defined"))
        .expected("one definition of each name");
  }

  // Returns false if an operand comes from a node that can't be imported.
  bool collect_inputs(const Node& n, const Scope& scope, Operands* out) {
    bool usable = true;
    for (const std::string& name : n.inputs) {
      if (name.empty()) {
        out->push_back({});
        continue;
      }
      const Scope::Slot* slot = scope.find(name);
      if (slot == nullptr) {
        throw against_rules(model_, n)
            .found(cat("operand '", printable(name), "', which nothing defines"))
            .expected(kSources);
      }
      usable = usable && !slot->unusable;
      out->push_back(slot->value);
    }
    return usable;
  }

  // Outputs without a value in `values` become unusable.
  void define_outputs(const Node& n, const Operands& values, Scope& scope) {
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const std::string& name = n.outputs[i];
      if (name.empty()) continue;
      if (scope.has(name)) defined_twice(n, name);
      if (i < values.size() && values[i]) {
        scope.define(name, values[i]);
      } else {
        scope.define_unusable(name);
      }
    }
  }

  // ---- inner graphs ----

  // Binds the names of the graph's inputs to `inputs` and returns its outputs, or nullopt if a node
  // in it can't be imported.
  std::optional<Operands> run_inner_graph(const Node& node, const Graph& graph,
                                          const Operands& inputs, const Scope& outer) {
    if (graph.inputs.size() != inputs.size()) {
      invalid(model_,
              cat("an inner graph of '", printable(node.name), "' with ", graph.inputs.size(),
                  " inputs"),
              cat(inputs.size()));
    }
    Scope scope = outer.inner();
    for (size_t i = 0; i < inputs.size(); ++i) {
      scope.define(graph.inputs[i].name, Scope::Slot{inputs[i]});
    }
    add_initializers(graph, scope);
    run_nodes(graph.nodes, scope);
    builder_.at(Span::node(node.name));
    Operands out;
    for (const Value& v : graph.outputs) {
      const Scope::Slot* slot = scope.find(v.name);
      if (slot == nullptr) {
        invalid(model_,
                cat("output '", printable(v.name), "' of an inner graph of '", printable(node.name),
                    "', which nothing defines"),
                kSources);
      }
      if (slot->unusable) return std::nullopt;
      check_present(*slot, v.name, cat("the inner graph of '", printable(node.name), "'"));
      out.push_back(slot->value);
    }
    return out;
  }

  // Lists unsupported nodes in the inner graphs of a node that isn't translated.
  void look_through(const Node& n, const Scope& scope) {
    for (const Attribute& a : n.attributes) {
      if (a.graph == nullptr) continue;
      for (const Node& inner : a.graph->nodes) {
        count_translated();
        const int64_t opset = scope.opset(inner.domain, kNewestOpset);
        const bool known =
            is_custom(inner) ||
            functions_.contains(function_key(inner.domain, inner.op, inner.overload)) ||
            OpTable::global().find(inner.domain, inner.op, opset) != nullptr;
        if (!known) refuse(inner, OpTable::global().reason_against(inner.domain, inner.op));
        look_through(inner, scope);
      }
    }
  }

  // Throws if the result is an operand of a function that its call leaves out.
  void check_present(const Scope::Slot& slot, const std::string& name,
                     const std::string& of) const {
    if (slot.unusable || slot.value) return;
    invalid(model_,
            cat("result '", printable(name), "' of ", of, ", an operand that a call leaves out"),
            "a value for each result");
  }

  // ---- model functions ----

  void call_function(const Node& n, const ModelFunction& f, Scope& scope) {
    if (scope.function_depth() >= kMaxFunctionDepth) {
      throw Error(ErrorKind::Usage, cat(printable(model_.file), " nests functions too deeply"))
          .where(cat("function '", printable(f.name), "'"))
          .found("functions that call each other recursively or too deeply")
          .expected(cat("at most ", kMaxFunctionDepth, " levels"));
    }
    // What is read of the function for each call, besides its nodes.
    count_translated((f.inputs.size() + f.outputs.size() + f.defaults.size() + f.opsets.size()) /
                     kPartsPerNode);
    check_opsets(model_, f.opsets);
    Operands operands;
    collect_inputs(n, scope, &operands);
    check_at_most(n, operands.size(), "operands", f.inputs.size(), f);
    check_at_most(n, n.outputs.size(), "outputs", f.outputs.size(), f);
    Scope::Arguments arguments;
    for (const Attribute& a : f.defaults) arguments[a.name] = &a;
    for (const Attribute& a : n.attributes) arguments[a.name] = &a;
    Scope body = scope.body(n, f.opsets, arguments);
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      const Scope::Slot* slot =
          i < n.inputs.size() && !n.inputs[i].empty() ? scope.find(n.inputs[i]) : nullptr;
      body.define(f.inputs[i], slot != nullptr ? *slot : Scope::Slot{});
    }
    run_nodes(f.nodes, body);
    builder_.at(Span::node(n.name));
    Operands results;
    for (const std::string& name : f.outputs) {
      const Scope::Slot* slot = body.find(name);
      if (slot == nullptr) {
        invalid(model_,
                cat("output '", printable(name), "' of the function '", printable(f.name),
                    "', which nothing defines"),
                "the name of an input or of a node's output");
      }
      check_present(*slot, name, cat("function '", printable(f.name), "'"));
      results.push_back(slot->value);
    }
    define_outputs(n, results, scope);
  }

  void check_at_most(const Node& n, size_t count, const char* what, size_t most,
                     const ModelFunction& f) const {
    if (count <= most) return;
    throw against_rules(model_, n)
        .found(cat(count, " ", what))
        .expected(cat("at most ", most, ", as the function '", printable(f.name), "' has"));
  }

  const Model& model_;
  const ImportOptions& options_;
  ImportedGraph& out_;
  graph::Builder builder_;
  std::map<std::string, const ModelFunction*> functions_;
  int64_t translated_ = 0;
};

}  // namespace

void import_graph(const Model& model, const ImportOptions& options, ImportedGraph* out) {
  GraphImporter(model, options, out).run();
}

}  // namespace tenon::onnx
