// tenon inspect: describes a model without compiling it; tenon ops: lists supported operators.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "driver/provenance.h"
#include "graph/ir/op.h"
#include "graph/op/register.h"
#include "import/onnx/import_model.h"
#include "import/onnx/op_table.h"
#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/program_file.h"
#include "vm/executable/kernel_choice.h"

namespace tenon::tool {
namespace {

// Prints a line that may contain names from an untrusted file.
void print_line(const std::string& line) {
  std::printf("%s\n", printable(line).c_str());
}

std::vector<NameAndType> types_of(const std::vector<onnx::ModelReport::Value>& values) {
  std::vector<NameAndType> out;
  out.reserve(values.size());
  for (const auto& value : values) out.push_back({value.name, value.type.value_or("unknown")});
  return out;
}

// With -v: every node of the graph, in the model's order.
void detail_nodes(const onnx::Model& model) {
  for (const onnx::Node& node : model.graph.nodes) {
    detail(cat("  ", node.name, " = ", node.op, "(", join(node.inputs, ", "), ") -> ",
               join(node.outputs, ", ")));
  }
}

// Returns the exit code that importing the model would give.
int inspect_onnx(const driver::Source& source) {
  const onnx::Model model = driver::read_model(source);
  const onnx::ModelReport report = onnx::inspect_model(model);
  detail_nodes(model);
  std::string head = cat(source.name, ": ONNX, IR version ", report.ir_version);
  for (const auto& [domain, version] : report.opsets) {
    head += cat(", ", domain.empty() ? "ai.onnx" : domain, " opset ", version);
  }
  print_line(cat(head, report.producer.empty() ? "" : ", by ", report.producer));
  std::printf("%s", signature_lines(types_of(report.inputs), types_of(report.outputs)).c_str());
  if (!report.symbols.empty()) print_line(cat("  symbols ", join(report.symbols, ", ")));
  print_line(cat("  ", counted(static_cast<uint64_t>(report.nodes), "node"), ", ",
                 counted(static_cast<uint64_t>(report.constants), "constant"), " of ",
                 bytes_text(static_cast<uint64_t>(report.constant_bytes))));
  for (const auto& [op, count] : report.operators) {
    std::printf("  %6lld  %s\n", static_cast<long long>(count), printable(op).c_str());
  }
  for (const onnx::Unsupported& part : report.unsupported) {
    print_line(cat("  unsupported: ", part.name, "  ", part.op_text(), "  ", part.reason));
  }
  // The problem is the text of an error, which has several lines and is already escaped.
  if (!report.problem.empty()) {
    std::printf("  cannot be imported: %s\n", report.problem.c_str());
    return exit_code(report.problem_kind);
  }
  if (!report.unsupported.empty()) return exit_code(ErrorKind::Unsupported);
  print_line("  all nodes are supported");
  return 0;
}

void write_types(JsonWriter& out, const std::vector<NameAndType>& values) {
  out.begin_array();
  for (const NameAndType& value : values) {
    out.begin_object().key("name").value(value.name).key("type").value(value.type).end_object();
  }
  out.end_array();
}

int inspect_onnx_as_json(const driver::Source& source) {
  const onnx::ModelReport report = onnx::inspect_model(driver::read_model(source));
  JsonWriter out = json_document();
  out.begin_object().key("file").value(source.name).key("kind").value("model");
  out.key("ir_version").value(report.ir_version).key("producer").value(report.producer);
  out.key("opsets").begin_object();
  for (const auto& [domain, version] : report.opsets) {
    out.key(domain.empty() ? "ai.onnx" : domain).value(version);
  }
  out.end_object();
  write_types(out.key("inputs"), types_of(report.inputs));
  write_types(out.key("outputs"), types_of(report.outputs));
  out.key("symbols").value(report.symbols);
  out.key("nodes").value(report.nodes).key("constants").value(report.constants);
  out.key("constant_bytes").value(report.constant_bytes);
  out.key("operators").begin_object();
  for (const auto& [op, count] : report.operators) out.key(op).value(count);
  out.end_object().key("unsupported").begin_array();
  for (const onnx::Unsupported& part : report.unsupported) {
    out.begin_object().key("node").value(part.name).key("operator").value(part.op_text());
    out.key("reason").value(part.reason).end_object();
  }
  out.end_array().key("problem");
  report.problem.empty() ? out.null() : out.value(report.problem);
  print_json(std::move(out.end_object()));
  if (!report.problem.empty()) return exit_code(report.problem_kind);
  return report.unsupported.empty() ? 0 : exit_code(ErrorKind::Unsupported);
}

// Describes bytecode without linking it or opening its kernels.
void inspect_code(const vm::Unit& unit) {
  for (const vm::PackedName& called : unit.packed) {
    detail(cat("  calls ", called.kernel ? "kernel " : "", called.name));
  }
  for (const vm::FunctionUnit& function : unit.functions) {
    if (function.exported) std::printf("%s", signature_text(signature_of(function)).c_str());
  }
  for (const std::string& type : without_prelude(unit.types)) print_line(cat("type ", type));
  const vm::KernelTarget* taken = unit.kernels.size() > 1 ? vm::choose_kernels(unit) : nullptr;
  for (const vm::KernelTarget& target : unit.kernels) {
    print_line(cat("native code for ", target.triple, ", ", target.cpu,
                   &target == taken ? ": this machine takes it" : ""));
  }
  if (lacks_code(unit)) print_line(kLacksCode);
  if (!unit.computes.empty()) {
    print_line("computes of its kernels, for untrusted loads and other machines");
  }
  for (const std::string& library : unit.libraries) {
    print_line(cat("needs library ", library));
  }
  for (const std::string& line : driver::provenance_lines(unit.provenance)) print_line(line);
  for (const vm::Constant& constant : unit.constants) {
    if (!constant.late) continue;
    print_line(cat("needs weight ", constant.name, ": ",
                   tensor_type_text(constant.late->dtype, constant.late->shape)));
  }
}

void inspect_code_as_json(const vm::Unit& unit, const std::string& file) {
  JsonWriter out = json_document();
  out.begin_object().key("file").value(file).key("kind").value("executable");
  out.key("functions").begin_array();
  for (const vm::FunctionUnit& function : unit.functions) {
    if (function.exported) write_signature(out, signature_of(function));
  }
  out.end_array().key("types").value(without_prelude(unit.types));
  out.key("native_code").begin_array();
  const vm::KernelTarget* taken = unit.kernels.empty() ? nullptr : vm::choose_kernels(unit);
  for (const vm::KernelTarget& target : unit.kernels) {
    out.begin_object().key("triple").value(target.triple).key("cpu").value(target.cpu);
    out.key("taken_by_this_machine").value(&target == taken).end_object();
  }
  out.end_array().key("computes").value(!unit.computes.empty());
  write_plain(out.key("provenance"), driver::provenance_data(unit.provenance));
  out.key("libraries").value(unit.libraries);
  out.key("weights").begin_array();
  for (const vm::Constant& constant : unit.constants) {
    if (!constant.late) continue;
    out.begin_object().key("name").value(constant.name);
    write_tensor_type(out, constant.late->dtype, constant.late->shape);
    out.end_object();
  }
  print_json(std::move(out.end_array().end_object()));
}

struct ModuleFunction {
  std::string name;
  std::vector<NameAndType> inputs, outputs;
};

ModuleFunction describe(const String& name, const graph::FunctionRef& function) {
  ModuleFunction out{std::string(name), {}, {}};
  for (const graph::VarRef& param : function->params) {
    out.inputs.push_back({std::string(param->name), graph::to_text(param->type)});
  }
  std::vector<std::string> types = {graph::to_text(function->result_type)};
  if (const auto* tuple = function->result_type.as<graph::TupleType>()) {
    types.clear();
    for (const graph::TypeRef& field : tuple->fields) types.push_back(graph::to_text(field));
  }
  const Array<String> given = function->result_names();
  const std::vector<std::string> names = output_names({given.begin(), given.end()}, types.size());
  for (size_t i = 0; i < types.size(); ++i) out.outputs.push_back({names[i], types[i]});
  return out;
}

void inspect_module(const graph::Module& module, const std::string& file) {
  JsonWriter out = json_document();
  out.begin_object().key("file").value(file).key("kind").value("program");
  out.key("functions").begin_array();
  for (const auto& [name, function] : module->functions) {
    const ModuleFunction described = describe(name, function);
    if (!json_output()) {
      print_line(described.name);
      std::printf("%s", signature_lines(described.inputs, described.outputs).c_str());
      continue;
    }
    out.begin_object().key("name").value(described.name);
    write_types(out.key("inputs"), described.inputs);
    write_types(out.key("outputs"), described.outputs);
    out.end_object();
  }
  if (json_output()) print_json(std::move(out.end_array().end_object()));
}

// An operator's name, or a part of it in any case; all operators if it is empty.
bool is_asked(const std::string& part, std::string_view name) {
  const auto same = [](char a, char b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
    return lower(a) == lower(b);
  };
  const auto at = std::search(name.begin(), name.end(), part.begin(), part.end(), same);
  return at != name.end() || part.empty();
}

std::string_view name_of(const graph::Operator* op) {
  return op->name;
}
std::string_view name_of(const std::pair<std::string, int64_t>& onnx) {
  return onnx.first;
}

// The operators of the table with `part` in their names. Throws Usage if there are none.
template <class Row>
std::vector<Row> asked_for(const std::vector<Row>& all, const std::string& part) {
  std::vector<Row> out;
  std::vector<std::string> names;
  for (const Row& op : all) {
    names.emplace_back(name_of(op));
    if (is_asked(part, name_of(op))) out.push_back(op);
  }
  if (!out.empty()) return out;
  const std::string near = nearest(part, names);
  throw Error(ErrorKind::Usage, cat("no operator has '", printable(part), "' in its name"))
      .help(near.empty() ? "`tenon ops` lists all of ONNX's that are imported, `tenon ops --ir` "
                           "Tenon's own"
                         : cat("did you mean ", near, "?"));
}

void list_own_operators(const std::string& part) {
  const auto ops = asked_for(graph::OperatorTable::global().all(), part);
  if (json_output()) {
    JsonWriter out = json_document();
    out.begin_object().key("operators").begin_array();
    for (const graph::Operator* op : ops) {
      out.begin_object().key("name").value(op->name).key("summary").value(op->summary);
      out.key("operands").begin_array();
      for (const graph::OperandSpec& operand : op->operands) out.value(operand.name);
      out.end_array().key("attributes").begin_array();
      for (const graph::AttrSpec& attribute : op->attrs) out.value(attribute.name);
      out.end_array().end_object();
    }
    print_json(std::move(out.end_array().end_object()));
  } else if (part.empty()) {
    std::printf("%s", graph::operators_document().c_str());
  } else {
    for (const graph::Operator* op : ops) print_line(cat(op->name, "  ", op->summary));
  }
}

void list_onnx_operators(const std::string& part) {
  const auto ops = asked_for(onnx::OpTable::global().all(), part);
  if (json_output()) {
    JsonWriter out = json_document();
    out.begin_object().key("operators").begin_array();
    for (const auto& [name, since] : ops) {
      out.begin_object().key("name").value(name).key("since").value(since).end_object();
    }
    print_json(std::move(out.end_array().end_object()));
  } else {
    for (const auto& [name, since] : ops) print_line(cat(name, "-", since));
  }
}

}  // namespace

void add_inspect_command(CLI::App* app, int* exit_code) {
  auto* command =
      app->add_subcommand("inspect", "describe a model or executable without compiling it");
  command->footer(
      "Lists every node that cannot be imported, with the reason. The exit code is that of\n"
      "compiling: 3 if something is not supported. Nothing in the file is run.\n\n"
      "  tenon inspect model.onnx\n"
      "  tenon inspect model.tnx");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, kAnyFileHelp)->required();
  auto limits = std::make_shared<LimitFlags>();
  limits->add_to(command, "reading the file may");
  auto custom = std::make_shared<std::vector<std::string>>();
  add_custom(command, custom.get());
  add_source_flags(command);
  add_json(command);
  // Only loading the libraries of --custom matters here.
  command->callback([file, limits, custom, exit_code] {
    driver::initialise();
    const BudgetedWork work(limits->work(), "reading", input_name(*file));
    const driver::Source source = open_input(*file);
    if (source.kind == driver::SourceKind::Model) {
      *exit_code = json_output() ? inspect_onnx_as_json(source) : inspect_onnx(source);
      return;
    }
    if (source.is_graph()) return inspect_module(driver::read_module(source), source.name);
    const vm::Unit unit = driver::read_code(source);
    json_output() ? inspect_code_as_json(unit, source.name) : inspect_code(unit);
  });
}

void add_ops_command(CLI::App* app) {
  auto* command =
      app->add_subcommand("ops", "list the operators: ONNX's that are imported, and Tenon's own");
  command->footer(
      "Each line has an operator and the first version that can be imported.\n\n"
      "  tenon ops\n"
      "  tenon ops pool\n"
      "  tenon ops --ir");
  auto part = std::make_shared<std::string>();
  command->add_option("NAME", *part, "only operators with this in their name, in any case");
  auto own = std::make_shared<bool>(false);
  command->add_flag("--ir", *own, "the operators of graph IR, as docs/operators.md has them");
  add_json(command);
  command->callback([own, part] {
    driver::initialise();
    *own ? list_own_operators(*part) : list_onnx_operators(*part);
  });
}

}  // namespace tenon::tool
