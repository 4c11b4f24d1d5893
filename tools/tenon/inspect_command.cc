// tenon inspect: describes a model without compiling it; tenon ops: lists supported operators.
#include <cstdio>

#include "graph/ir/op.h"
#include "graph/op/register.h"
#include "import/onnx/import_model.h"
#include "import/onnx/op_table.h"
#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/program_file.h"
#include "vm/executable/kernel_choice.h"

namespace tenon::tool {
namespace {

// Prints a line that may contain names from an untrusted file.
void print_line(const std::string& line) {
  std::printf("%s\n", printable(line).c_str());
}

// Returns the exit code that importing the model would give.
int inspect_onnx(const driver::Source& source) {
  const onnx::ModelReport report = onnx::inspect_model(driver::read_model(source));
  std::string head = cat(source.name, ": ONNX, IR version ", report.ir_version);
  for (const auto& [domain, version] : report.opsets) {
    head += cat(", ", domain.empty() ? "ai.onnx" : domain, " opset ", version);
  }
  print_line(cat(head, report.producer.empty() ? "" : ", by ", report.producer));
  auto values = [](const std::vector<onnx::ModelReport::Value>& some) {
    std::vector<NameAndType> out;
    out.reserve(some.size());
    for (const auto& value : some) out.push_back({value.name, value.type});
    return out;
  };
  std::printf("%s", signature_lines(values(report.inputs), values(report.outputs)).c_str());
  if (!report.symbols.empty()) print_line(cat("  symbols ", join(report.symbols, ", ")));
  print_line(cat("  ", counted(static_cast<uint64_t>(report.nodes), "node"), ", ",
                 counted(static_cast<uint64_t>(report.constants), "constant"), " of ",
                 bytes_text(static_cast<uint64_t>(report.constant_bytes))));
  for (const auto& [op, count] : report.operators) {
    std::printf("  %6lld  %s\n", static_cast<long long>(count), printable(op).c_str());
  }
  for (const auto& node : report.unsupported) {
    print_line(cat("  unsupported: ", node.node, "  ", node.op, "  ", node.reason));
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

// Describes bytecode without linking it or opening its kernels.
void inspect_code(const vm::Unit& unit) {
  for (const vm::FunctionUnit& function : unit.functions) {
    if (function.exported) std::printf("%s", signature_text(signature_of(function)).c_str());
  }
  const vm::KernelTarget* taken = unit.kernels.size() > 1 ? vm::choose_kernels(unit) : nullptr;
  for (const vm::KernelTarget& target : unit.kernels) {
    print_line(cat("native code for ", target.triple, ", ", target.cpu,
                   &target == taken ? ": this machine takes it" : ""));
  }
  if (!unit.computes.empty()) {
    print_line("computes of its kernels, for untrusted loads and other machines");
  }
  for (const std::string& library : unit.libraries) {
    print_line(cat("needs library ", library));
  }
  for (const vm::Constant& constant : unit.constants) {
    if (!constant.late) continue;
    print_line(cat("needs weight ", constant.name, ": ",
                   tensor_type_text(constant.late->dtype, constant.late->shape)));
  }
}

void print_signature(const String& name, const graph::FunctionRef& function) {
  std::vector<NameAndType> inputs, outputs;
  for (const graph::VarRef& param : function->params) {
    inputs.push_back({std::string(param->name), graph::to_text(param->type)});
  }
  std::vector<std::string> types = {graph::to_text(function->result_type)};
  if (const auto* tuple = function->result_type.as<graph::TupleType>()) {
    types.clear();
    for (const graph::TypeRef& field : tuple->fields) types.push_back(graph::to_text(field));
  }
  const Array<String> given = function->result_names();
  const std::vector<std::string> names = output_names({given.begin(), given.end()}, types.size());
  for (size_t i = 0; i < types.size(); ++i) outputs.push_back({names[i], types[i]});
  print_line(std::string(name));
  std::printf("%s", signature_lines(inputs, outputs).c_str());
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
  command->callback([file, limits, exit_code] {
    driver::initialise();
    WorkBudget budget(limits->work(), "reading", input_name(*file));
    const WorkBudget::Scope scope(&budget);
    const driver::Source source = open_input(*file);
    if (source.kind == driver::SourceKind::Model) {
      *exit_code = inspect_onnx(source);
      return;
    }
    if (!source.is_graph()) return inspect_code(driver::read_code(source));
    const graph::Module module = driver::read_module(source);
    for (const auto& [name, function] : module->functions) print_signature(name, function);
  });
}

void add_ops_command(CLI::App* app) {
  auto* command =
      app->add_subcommand("ops", "list the operators: ONNX's that are imported, and Tenon's own");
  command->footer(
      "Each line has an operator and the first version that can be imported.\n\n"
      "  tenon ops\n"
      "  tenon ops --ir");
  auto own = std::make_shared<bool>(false);
  command->add_flag("--ir", *own, "the operators of graph IR, as docs/operators.md has them");
  command->callback([own] {
    driver::initialise();
    if (*own) {
      std::printf("%s", graph::operators_document().c_str());
      return;
    }
    for (const auto& [name, since] : onnx::OpTable::global().all()) {
      std::printf("%s-%lld\n", name.c_str(), static_cast<long long>(since));
    }
  });
}

}  // namespace tenon::tool
