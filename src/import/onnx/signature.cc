#include "import/onnx/signature.h"

#include <algorithm>

#include "graph/ir/name_text.h"
#include "import/onnx/container.h"
#include "import/onnx/rules.h"

namespace tenon::onnx {

namespace {

// The name as a symbol of graph IR: a letter or underscore, then letters, digits, underscores.
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

// Keys of other types are no class labels or names of features, and ONNX's operators take only
// numbers and strings as values.
std::string map_problem(const ValueType& type) {
  const auto key = dtype_of(type.element);
  if (!key || !(key->is_int() || *key == string_elements))
    return cat("maps with keys of ", data_type_name(type.element), " are not implemented");
  if (!type.held || type.held->kind != ValueType::kTensor)
    return "maps of values that are not tensors are not implemented";
  const auto value = dtype_of(type.held->element);
  return value ? "" : cat(data_type_name(type.held->element), " is not implemented");
}

// Why an input can't have the type, or "".
std::string type_problem(const ValueType& type) {
  switch (type.kind) {
    case ValueType::kTensor:
      return dtype_of(type.element) ? "" : cat(data_type_name(type.element), " is not implemented");
    case ValueType::kNone:
      return "an input without a type";
    case ValueType::kSequence:
    case ValueType::kOptional:
      return type.held ? type_problem(*type.held) : "an input without a type";
    case ValueType::kMap:
      return map_problem(type);
    case ValueType::kSparse:
      return "sparse tensors are not implemented";
    case ValueType::kOpaque:
      return "opaque values are not implemented";
  }
  return "";
}

// Whether the ranks of all tensors in a value of the type are known.
bool ranks_known(const graph::TypeRef& type) {
  if (const auto* tensor = type.as<graph::TensorType>()) {
    return tensor->rank != graph::kUnknownRank;
  }
  return !holds_others(type) || ranks_known(held_type(type));
}

}  // namespace

ModelReport::Value report_value(const std::string& name, const graph::TypeRef& type) {
  return {name, to_text(type), ranks_known(type)};
}

Signature::Signature(const Model& model, const ImportOptions& options, graph::Builder& builder,
                     Scope& scope)
    : model_(model), options_(options), builder_(builder) {
  const std::set<std::string> constants = model.graph.initializer_names();
  for (const Value& v : model.graph.inputs) {
    if (!constants.contains(v.name)) take_shape(v);
  }
  for (const Value& v : model.graph.inputs) {
    if (constants.contains(v.name)) continue;
    if (v.name.empty()) invalid(model, "an input without a name", "a name for each input");
    if (scope.has(v.name)) {
      invalid(model, cat("input '", printable(v.name), "' twice"), "one definition of each name");
    }
    const std::string problem = type_problem(v.type);
    if (!problem.empty()) {
      unsupported.push_back({Unsupported::What::Input, v.name, "", "", problem});
      types.push_back({v.name, std::nullopt});
      scope.define_unusable(v.name);
      continue;
    }
    const graph::TypeRef type = type_of(v);
    types.push_back(report_value(v.name, type));
    graph::collect_symbols(type, &symbols);
    scope.define(v.name, builder.param(v.name, type));
  }
}

namespace {

// The type of the tensors, or maps, in a value of the type.
const ValueType& tensor_in(const ValueType& type) {
  const ValueType* inner = &type;
  while (inner->held && inner->kind != ValueType::kMap) inner = inner->held.get();
  return *inner;
}

}  // namespace

void Signature::take_shape(const Value& input) {
  const auto given = options_.shapes.find(input.name);
  const ValueType& tensor = tensor_in(input.type);
  if (given == options_.shapes.end()) return;
  const auto mismatch = [&] {
    return Error(ErrorKind::Usage, cat("the shape given for '", printable(input.name),
                                       "' does not fit ", printable(model_.file)));
  };
  if (tensor.kind == ValueType::kMap)
    throw mismatch().found("an input of maps").expected("no shape");
  if (!tensor.has_shape) return;
  const std::vector<Dimension>& shape = tensor.shape;
  const std::vector<int64_t>& sizes = given->second;
  if (sizes.size() != shape.size()) {
    throw mismatch().found(cat("rank ", sizes.size())).expected(cat("rank ", shape.size()));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (sizes[i] < 0) continue;
    if (shape[i].value >= 0 && shape[i].value != sizes[i]) {
      throw mismatch()
          .found(cat(sizes[i]), cat("axis ", i))
          .expected(cat(shape[i].value))
          .help("the model fixes this size: export it with a symbolic one to change it");
    }
    if (!shape[i].symbol.empty()) {
      fix(shape[i].symbol, {sizes[i], cat("the shape of '", input.name, "'")});
    }
  }
}

void Signature::fix(const std::string& symbol, Given given) {
  const auto [it, is_new] = fixed_.emplace(symbol, given);
  if (is_new || it->second.size == given.size) return;
  throw Error(ErrorKind::Usage, cat("the size '", printable(symbol), "' of ",
                                    printable(model_.file), " is given twice, and differs"))
      .found(cat(it->second.size), it->second.source)
      .found(cat(given.size), given.source)
      .expected("one size");
}

graph::TypeRef Signature::type_of(const Value& input) {
  if (input.type.held) return type_of_held(input, input.type);
  const DataType dtype = *dtype_of(input.type.element);
  std::vector<Dimension> shape = input.type.shape;
  const auto given = options_.shapes.find(input.name);
  const bool is_given = given != options_.shapes.end();
  if (!input.type.has_shape) {
    if (!is_given) return graph::tensor_type_unknown(dtype);
    shape.resize(given->second.size());
  }
  require_rank(input, shape.size());
  std::vector<Dim> dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    dims.push_back(size_of(shape[i], is_given ? given->second[i] : -1, input.name, i));
  }
  return graph::tensor_type(dtype, dims);
}

// A sequence's tensors may differ in the sizes that the model names, or leaves out.
graph::TypeRef Signature::type_of_held(const Value& input, const ValueType& type) {
  if (type.kind == ValueType::kSequence) return graph::array_type(type_of_held(input, *type.held));
  if (type.kind == ValueType::kOptional) return option_type(type_of_held(input, *type.held));
  if (type.kind == ValueType::kMap) {
    declare_maps(builder_);
    return map_type(*dtype_of(type.element), *dtype_of(type.held->element));
  }
  const DataType dtype = *dtype_of(type.element);
  const auto given = options_.shapes.find(input.name);
  const bool is_given = given != options_.shapes.end();
  if (!type.has_shape && !is_given) return graph::tensor_type_unknown(dtype);
  const size_t rank = is_given ? given->second.size() : type.shape.size();
  require_rank(input, rank);
  std::vector<Dim> dims;
  for (size_t i = 0; i < rank; ++i) {
    const Dimension stated = i < type.shape.size() ? type.shape[i] : Dimension();
    const auto size = known_size(stated, is_given ? given->second[i] : -1);
    if (size) dims.emplace_back(*size);
  }
  if (dims.size() == rank) return graph::tensor_type(dtype, dims);
  return graph::tensor_type_of_rank(dtype, static_cast<int64_t>(rank));
}

void Signature::require_rank(const Value& input, size_t rank) const {
  if (rank <= static_cast<size_t>(kMaxRank)) return;
  invalid(model_, cat("input '", printable(input.name), "' of rank ", rank),
          cat("at most ", kMaxRank));
}

std::optional<int64_t> Signature::known_size(const Dimension& d, int64_t given) {
  if (d.value >= 0) return d.value;
  if (given >= 0) return given;
  if (d.symbol.empty()) return std::nullopt;
  const std::string symbol = symbol_text(d.symbol);
  auto size = options_.dims.find(d.symbol);
  if (size == options_.dims.end()) size = options_.dims.find(symbol);
  offered_.push_back(symbol);
  if (size == options_.dims.end()) return std::nullopt;
  used_.insert(size->first);
  fix(d.symbol, {size->second, cat("the size given for '", size->first, "'")});
  return size->second;
}

Dim Signature::size_of(const Dimension& d, int64_t given, const std::string& input, size_t axis) {
  if (d.value >= 0) return d.value;
  if (d.symbol.empty()) {
    return given >= 0 ? Dim(given) : given_or_fresh("", cat(symbol_text(input), "_", axis));
  }
  auto found = symbol_names_.find(d.symbol);
  if (found != symbol_names_.end()) return found->second;
  return symbol_names_.emplace(d.symbol, given_or_fresh(d.symbol, symbol_text(d.symbol)))
      .first->second;
}

// The size given for a symbol, by its name in ONNX or in the signature.
Dim Signature::given_or_fresh(const std::string& name, const std::string& symbol) {
  offered_.push_back(symbol);
  auto given = options_.dims.find(name);
  if (given == options_.dims.end()) given = options_.dims.find(symbol);
  if (given != options_.dims.end()) {
    used_.insert(given->first);
    if (name.empty()) return given->second;
    fix(name, {given->second, cat("the size given for '", given->first, "'")});
  }
  const auto fixed = fixed_.find(name);
  return fixed == fixed_.end() ? builder_.fresh_symbol(symbol) : Dim(fixed->second.size);
}

void Signature::check_given() const {
  std::vector<std::string> names;
  for (const ModelReport::Value& input : types) names.push_back(input.name);
  for (const auto& [name, shape] : options_.shapes) {
    if (std::ranges::find(names, name) != names.end()) continue;
    Error e(ErrorKind::Usage, cat(printable(model_.file), " has no input '", printable(name), "'"));
    e.found(cat("a shape for '", printable(name), "'"));
    e.expected(cat("one of ", printable(join(names, ", "))));
    graph::suggest(&e, name, names);
    throw e;
  }
  for (const auto& [name, size] : options_.dims) {
    if (used_.contains(name)) continue;
    Error e(ErrorKind::Usage, cat(printable(model_.file), " has no size '", printable(name), "'"));
    e.found(cat("a size for '", printable(name), "'"));
    e.expected(offered_.empty() ? "none: the sizes of its inputs are fixed"
                                : cat("one of ", printable(join(offered_, ", "))));
    graph::suggest(&e, name, offered_);
    throw e;
  }
}

}  // namespace tenon::onnx
