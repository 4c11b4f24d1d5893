#include "import/onnx/import_model.h"

#include <algorithm>

#include "import/onnx/container.h"
#include "import/onnx/count_nodes.h"
#include "import/onnx/import_graph.h"
#include "import/onnx/read_model.h"

namespace tenon::onnx {

namespace {

std::string opset_text(const Model& model) {
  std::vector<std::string> parts;
  for (const auto& [domain, version] : model.opsets) {
    parts.push_back(domain.empty() ? cat("opset ", version) : cat(domain, " ", version));
  }
  return parts.empty() ? "no opset" : join(parts, ", ");
}

// An input whose rank neither the model nor the options state, or null.
const Value* input_of_any_rank(const Model& model, const ImportOptions& options) {
  const std::set<std::string> constants = model.graph.initializer_names();
  const auto found = std::ranges::find_if(model.graph.inputs, [&](const Value& input) {
    return input.type.kind == ValueType::kTensor && !input.type.has_shape &&
           !options.shapes.contains(input.name) && !constants.contains(input.name);
  });
  return found == model.graph.inputs.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const Model& model, const ImportOptions& options,
                         const std::vector<Unsupported>& unsupported) {
  // The table also lists inputs and initializers of types that aren't implemented.
  const int64_t count =
      std::ranges::count(unsupported, Unsupported::What::Node, &Unsupported::what);
  const int64_t nodes = count_nodes(model).nodes;
  const std::string what = count == 0
                               ? cat(unsupported.size(), " of its inputs and initializers")
                               : cat(count, " of ", counted(static_cast<uint64_t>(nodes), "node"));
  Error e(ErrorKind::Unsupported, cat(printable(model.file), ": ", what, " cannot be imported (",
                                      printable(opset_text(model)), ")"));
  e.table({"node", "operator", "reason"});
  for (const Unsupported& u : unsupported) {
    e.table({printable(u.name), printable(u.op_text()), printable(u.reason)});
  }
  // The first operator of a foreign domain.
  const auto foreign =
      std::ranges::find_if(unsupported, [](const Unsupported& u) { return !u.domain.empty(); });
  std::string help = "`tenon ops` lists what is supported";
  if (foreign != unsupported.end()) {
    help += cat("; a registered function '", printable(foreign->op_text()),
                "' would compute that operator: see --custom and docs/custom-operators.md");
  }
  if (const Value* open = input_of_any_rank(model, options)) {
    const std::string name = printable(open->name);
    help = cat("`--shape ", name, "=...` (in Python, `shapes`) states the shape of '", name,
               "', which the model leaves open; ", help);
  }
  throw e.help(help + "; nothing was written");
}

std::vector<std::string> names_of(const std::vector<ModelReport::Value>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const ModelReport::Value& v : values) names.push_back(v.name);
  return names;
}

}  // namespace

std::string Unsupported::op_text() const {
  switch (what) {
    case What::Node:
      return onnx::op_text(domain, op);
    case What::Input:
      return "(input)";
    case What::Initializer:
      return "(initializer)";
  }
  return "";
}

ImportResult import_model(const Model& model, const ImportOptions& options) {
  ImportedGraph imported;
  import_graph(model, options, &imported);
  if (!imported.unsupported.empty()) refuse(model, options, imported.unsupported);
  Map<String, graph::FunctionRef> functions;
  functions.set("main", imported.main);
  Map<String, Ref<const graph::AdtDefinition>> types;
  if (const auto map = map_definition(); imported.has_maps) types.set(map->name, map);
  return {graph::make_module(functions, {}, types), names_of(imported.inputs),
          names_of(imported.outputs), std::move(imported.values)};
}

ImportResult import_model(const std::string& path, const ImportOptions& options) {
  return import_model(read_model(path), options);
}

ModelReport inspect_model(const Model& model, const ImportOptions& options) {
  ModelReport r;
  r.file = model.file;
  r.producer = model.metadata.producer;
  r.ir_version = model.ir_version;
  r.opsets = model.opsets;
  for (const TensorData& t : model.graph.initializers) {
    ++r.constants;
    if (t.tensor) r.constant_bytes += t.tensor.bytes();
  }
  ImportedGraph imported;
  try {
    import_graph(model, options, &imported);
  } catch (const Error& e) {
    r.problem = e.render();
    r.problem_kind = e.kind();
  }
  r.inputs = imported.inputs;
  r.outputs = imported.outputs;
  r.symbols = imported.symbols;
  r.unsupported = imported.unsupported;
  NodeCount count = count_nodes(model);
  r.operators = std::move(count.operators);
  r.nodes = count.nodes;
  return r;
}

ModelReport inspect_model(const std::string& path, const ImportOptions& options) {
  return inspect_model(read_model(path), options);
}

}  // namespace tenon::onnx
