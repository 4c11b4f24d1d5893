#include "driver/model_graph.h"

#include <algorithm>
#include <unordered_map>

#include "driver/shown_names.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/text.h"
#include "graph/ir/walk.h"
#include "graph/pass/fuse_operators.h"
#include "json/json.h"
#include "loop/recurrence.h"
#include "loop/symbol_set.h"
#include "loop/walk.h"

namespace tenon::driver {
namespace {

using Role = GraphNode::Role;

constexpr size_t kMostBundled = 16;

void keep_distinct(std::vector<size_t>* numbers) {
  std::ranges::sort(*numbers);
  const auto repeated = std::ranges::unique(*numbers);
  numbers->erase(repeated.begin(), repeated.end());
}

void cut_texts(GraphNode* node) {
  if (!node->is_kernel) node->label = shown_name(node->label);
  node->type = shown_name(node->type);
  node->sources = shown_names(node->sources);
  node->weights = shown_names(node->weights);
}

std::string label_of(const graph::ExprRef& value) {
  if (const auto* call = value.as<graph::Call>()) {
    return call->kind == graph::CalleeKind::kClosure ? "call" : call->callee.str();
  }
  if (value.is<graph::If>()) return "if";
  if (value.is<graph::Loop>()) return "loop";
  if (value.is<graph::Match>()) return "match";
  if (value.is<graph::FunctionExpr>()) return "function";
  if (value.is<graph::Construct>()) return value.as<graph::Construct>()->constructor.str();
  if (value.is<graph::MatchShape>()) return "match_shape";
  return "";
}

// Builds the nodes of one function. Values that others only rename or bundle (tuples and their
// fields, storage, shape checks) have no node: their users see the nodes that they came from.
class Drawing {
 public:
  std::vector<GraphNode> of(const graph::FunctionExpr& function) {
    for (const graph::VarRef& param : function.params) {
      GraphNode node;
      node.role = Role::Parameter;
      node.label = param->name.str();
      node.type = to_text(param->type);
      makers_[param.get()] = {nodes_.add(std::move(node))};
    }
    for (const auto& binding : function.body->bindings) draw(*binding);
    GraphNode result;
    result.role = Role::Result;
    const Array<String> names = function.result_names();
    for (const String& name : names) {
      result.label += cat(result.label.empty() ? "" : ", ", name.view());
    }
    if (result.label.empty()) result.label = "result";
    result.type = to_text(function.result_type);
    use(function.body->result, &result);
    nodes_.add(std::move(result));
    return nodes_.take();
  }

 private:
  using Makers = std::vector<size_t>;

  void use(const graph::Operand& operand, GraphNode* node) const {
    if (!operand) return;
    if (const auto* constant = operand.as<graph::Constant>()) {
      node->weights.push_back(constant->name.empty() ? to_text(constant->type)
                                                     : constant->name.str());
      return;
    }
    const auto found = makers_.find(operand.get());
    if (found == makers_.end()) return;
    node->inputs.insert(node->inputs.end(), found->second.begin(), found->second.end());
  }

  // What blocks within the value read, too.
  void use_all(const graph::ExprRef& value, GraphNode* node) const {
    graph::for_each_operand(value, [&](const graph::Operand& operand) { use(operand, node); });
    graph::for_each_block(value, [&](const graph::BlockRef& block) {
      for (const auto& binding : block->bindings) use_all(binding->value, node);
      use(block->result, node);
    });
  }

  // The operands that a call without a result writes: those that nothing has made yet, or else the
  // last one, in place.
  std::vector<const graph::Var*> destinations_of(const graph::Call& call) const {
    std::vector<const graph::Var*> fresh;
    const graph::Var* last = nullptr;
    for (const graph::Operand& operand : call.args) {
      if (!operand || !operand.is<graph::Var>()) continue;
      last = operand.as<graph::Var>();
      if (!makers_.contains(last)) fresh.push_back(last);
    }
    if (fresh.empty() && last) fresh.push_back(last);
    return fresh;
  }

  void draw(const graph::Binding& binding) {
    const graph::ExprRef& value = binding.value;
    GraphNode node;
    node.label = label_of(value);
    node.sources = binding.span.nodes;
    const auto* call = value.as<graph::Call>();
    const auto intrinsic = graph::memory_intrinsic(value);
    if (intrinsic == graph::MemoryIntrinsic::kStorage ||
        intrinsic == graph::MemoryIntrinsic::kTensor) {
      return;  // whoever writes to it makes it
    }
    use_all(value, &node);
    if (node.label.empty() || intrinsic || value.is<graph::MatchShape>()) {
      if (node.label.empty()) node.label = "tuple";
      makers_[binding.var.get()] = nodes_.bundle(std::move(node));
      return;
    }
    node.type = to_text(graph::without_known_values(binding.var->type));
    node.is_kernel = call && call->kind == graph::CalleeKind::kKernel;
    std::vector<const graph::Var*> written;
    if (call && graph::is_unit(binding.var->type)) written = destinations_of(*call);
    if (!written.empty()) node.type.clear();
    for (const graph::Var* destination : written) {
      node.type += cat(node.type.empty() ? "" : ", ", to_text(destination->type));
    }
    const Makers maker = {nodes_.add(std::move(node))};
    makers_[binding.var.get()] = maker;
    for (const graph::Var* destination : written) makers_[destination] = maker;
  }

  GraphNodes nodes_;
  std::unordered_map<const graph::Expr*, Makers> makers_;
};

// The operations on data of an expression, with shared parts counted once.
int64_t operations(const loop::ExprRef& root) {
  int64_t count = 0;
  loop::post_order(root, [&](const loop::ExprRef& e) {
    const bool computes = e->kind == loop::ExprKind::kUnary || e->kind == loop::ExprKind::kBinary;
    if (computes && e->dtype != i64 && !e->dtype.is_bool()) ++count;
  });
  return count;
}

Dim elements(const Array<Dim>& shape) {
  Dim product = 1;
  for (const Dim& d : shape) product = product * d;
  return product;
}

std::optional<Dim> flops_of(const loop::Compute& compute) {
  try {
    Dim all = 0;
    for (const auto& stage : compute.stages) {
      const Dim outputs = elements(stage->out->shape);
      const Dim steps = elements(stage->reduce_extents);
      const int64_t body = operations(stage->body);
      switch (stage->kind) {
        case loop::StageKind::kMap:
        case loop::StageKind::kScan:
          all = all + outputs * body;
          break;
        case loop::StageKind::kReduce:
          all = all + outputs * steps * (body + 1);
          break;
        case loop::StageKind::kScatter:
          all = all + outputs * body + steps * (operations(stage->update) + 1);
          break;
      }
    }
    return all;
  } catch (const SizeError&) {  // too many terms
    return std::nullopt;
  }
}

std::optional<Dim> flops_of(const loop::Recurrence& repeated) {
  const auto step = flops_of(*repeated.step);
  if (!step) return std::nullopt;
  try {
    return repeated.trip_count * *step;
  } catch (const SizeError&) {  // too many terms
    return std::nullopt;
  }
}

std::vector<KernelFacts::Symbol> symbols_of(const loop::KernelInterface& kernel, const Dim& size) {
  SymbolSet wanted;
  collect_symbols(size, &wanted);
  std::vector<KernelFacts::Symbol> found;
  const auto need = [&](const std::string& name) {
    return wanted.contains(name) &&
           std::ranges::find(found, name, &KernelFacts::Symbol::name) == found.end();
  };
  size_t argument = 0;
  for (const auto* buffers : {&kernel.inputs, &kernel.outputs}) {
    for (const auto& buffer : *buffers) {
      for (size_t axis = 0; axis < buffer->shape.size(); ++axis) {
        const Dim& dim = buffer->shape[axis];
        if (dim.kind() != DimKind::kSymbol) continue;
        if (const std::string name = dim.node().name.str(); need(name)) {
          found.push_back({name, argument, axis});
        }
      }
      ++argument;
    }
  }
  for (const String& integer : kernel.integers) {
    if (need(integer.str())) found.push_back({integer.str(), argument, std::nullopt});
    ++argument;
  }
  return found;
}

KernelFacts facts_of(const loop::KernelInterfaceRef& kernel, const String& name) {
  KernelFacts facts;
  facts.text = graph::to_text(kernel, name);
  if (const auto* compute = kernel.as<loop::Compute>()) facts.flops = flops_of(*compute);
  if (const auto* repeated = kernel.as<loop::Recurrence>()) facts.flops = flops_of(*repeated);
  if (facts.flops) facts.symbols = symbols_of(*kernel, *facts.flops);
  return facts;
}

// ---- JSON ----

constexpr int64_t kVersion = 1;

void write(JsonWriter& out, const std::vector<GraphNode>& nodes) {
  out.begin_array();
  for (const GraphNode& node : nodes) {
    out.begin_object();
    out.key("role").value(static_cast<int64_t>(node.role));
    out.key("label").value(node.label).key("type").value(node.type);
    out.key("kernel").value(node.is_kernel).key("sources").value(node.sources);
    out.key("weights").value(node.weights).key("inputs").begin_array();
    for (const size_t input : node.inputs) out.value(static_cast<int64_t>(input));
    out.end_array().end_object();
  }
  out.end_array();
}

// Reads JSON of the form above; anything else is damage.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ModelGraph read() {
    const Json root = parse_json(text_, ErrorKind::Damaged, source());
    if (integer(member(root, "version")) != kVersion) fail(root, "another version");
    ModelGraph graph;
    for (const Json& one : array(member(root, "functions"))) {
      FunctionGraph function;
      function.name = string(member(one, "name"));
      function.before = nodes(member(one, "before"));
      function.after = nodes(member(one, "after"));
      graph.functions.push_back(std::move(function));
    }
    for (const Json& one : array(member(root, "kernels"))) {
      graph.kernels[string(member(one, "name"))] = facts(one);
    }
    return graph;
  }

 private:
  std::string source() const { return cat("the graph of ", file_); }
  [[noreturn]] void fail(const Json& at, const char* found) const {
    throw json_error(text_, ErrorKind::Damaged, source(), at.offset, found)
        .help(cat("compile the file again with ", kKeepGraph));
  }
  const Json& member(const Json& object, std::string_view name) const {
    const Json* found = object.find(name);
    if (!found) fail(object, "a member is missing");
    return *found;
  }
  const std::string& string(const Json& value) const {
    if (value.kind != Json::Kind::String) fail(value, "no string");
    return value.string;
  }
  int64_t integer(const Json& value) const {
    if (value.kind != Json::Kind::Int || value.integer < 0) fail(value, "no number >= 0");
    return value.integer;
  }
  const std::vector<Json>& array(const Json& value) const {
    if (value.kind != Json::Kind::Array) fail(value, "no array");
    return value.array;
  }
  std::vector<std::string> strings(const Json& value) const {
    std::vector<std::string> out;
    for (const Json& one : array(value)) out.push_back(string(one));
    return out;
  }

  std::vector<GraphNode> nodes(const Json& value) const {
    std::vector<GraphNode> out;
    for (const Json& one : array(value)) {
      GraphNode node;
      const int64_t role = integer(member(one, "role"));
      if (role > static_cast<int64_t>(Role::Result)) fail(one, "an unknown role");
      node.role = static_cast<Role>(role);
      node.label = string(member(one, "label"));
      node.type = string(member(one, "type"));
      node.is_kernel = member(one, "kernel").boolean;
      node.sources = strings(member(one, "sources"));
      node.weights = strings(member(one, "weights"));
      for (const Json& input : array(member(one, "inputs"))) {
        const auto index = static_cast<size_t>(integer(input));
        if (index >= out.size()) fail(input, "an input that is not an earlier node");
        node.inputs.push_back(index);
      }
      cut_texts(&node);
      out.push_back(std::move(node));
    }
    return out;
  }

  KernelFacts facts(const Json& value) const {
    KernelFacts out;
    out.text = string(member(value, "text"));
    if (const Json& flops = member(value, "flops"); !flops.is_null()) {
      try {
        out.flops = graph::parse_size(string(flops));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::Usage) throw;
        fail(flops, "no size");
      }
    }
    for (const Json& one : array(member(value, "symbols"))) {
      KernelFacts::Symbol symbol;
      symbol.name = string(member(one, "name"));
      symbol.argument = static_cast<size_t>(integer(member(one, "argument")));
      if (const Json* axis = one.find("axis")) symbol.axis = static_cast<size_t>(integer(*axis));
      out.symbols.push_back(std::move(symbol));
    }
    return out;
  }

  std::string_view text_;
  const std::string& file_;
};

}  // namespace

size_t GraphNodes::add(GraphNode node) {
  keep_distinct(&node.inputs);
  cut_texts(&node);
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

std::vector<size_t> GraphNodes::bundle(GraphNode node) {
  keep_distinct(&node.inputs);
  if (node.inputs.size() <= kMostBundled) return std::move(node.inputs);
  return {add(std::move(node))};
}

std::vector<GraphNode> graph_of(const graph::FunctionRef& function) {
  return Drawing().of(*function);
}

std::string operators_of_kernel(const std::string& kernel) {
  return graph::fused_operators(kernel);
}

ModelGraph describe_model(const graph::Module& module, const graph::Module& lowered) {
  ModelGraph out;
  for (const auto& [name, function] : module->functions) {
    const graph::FunctionRef* after = lowered->functions.find(name);
    if (!function->is_exported() || !after) continue;
    out.functions.push_back({name.str(), graph_of(function), graph_of(*after)});
  }
  for (const auto& [name, kernel] : lowered->kernels) {
    out.kernels[name.str()] = facts_of(kernel, name);
  }
  return out;
}

std::string to_json(const ModelGraph& graph) {
  JsonWriter out;
  out.begin_object().key("version").value(kVersion).key("functions").begin_array();
  for (const FunctionGraph& function : graph.functions) {
    out.begin_object().key("name").value(function.name).key("before");
    write(out, function.before);
    out.key("after");
    write(out, function.after);
    out.end_object();
  }
  out.end_array().key("kernels").begin_array();
  for (const auto& [name, facts] : graph.kernels) {
    out.begin_object().key("name").value(name).key("text").value(facts.text).key("flops");
    if (facts.flops) {
      out.value(to_text(*facts.flops));
    } else {
      out.null();
    }
    out.key("symbols").begin_array();
    for (const KernelFacts::Symbol& symbol : facts.symbols) {
      out.begin_object().key("name").value(symbol.name);
      out.key("argument").value(static_cast<int64_t>(symbol.argument));
      if (symbol.axis) out.key("axis").value(static_cast<int64_t>(*symbol.axis));
      out.end_object();
    }
    out.end_array().end_object();
  }
  return out.end_array().end_object().take();
}

ModelGraph model_graph_from_json(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace tenon::driver
