// tenon inspect: what a model is, without compiling it; tenon ops: what is supported.
#include <cstdio>
#include <filesystem>

#include "graph/ir/op.h"
#include "graph/op/register.h"
#include "import/onnx/import_model.h"
#include "import/onnx/op_table.h"
#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/program_file.h"

namespace tenon::tool {
namespace {

std::string counted(int64_t count, const char* what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

void inspect_onnx(const std::string& path) {
  const onnx::ModelReport report = onnx::inspect_model(path);
  std::printf("%s: ONNX, IR version %lld", path.c_str(), static_cast<long long>(report.ir_version));
  for (const auto& [domain, version] : report.opsets) {
    std::printf(", %s opset %lld", domain.empty() ? "ai.onnx" : domain.c_str(),
                static_cast<long long>(version));
  }
  std::printf("%s%s\n", report.producer.empty() ? "" : ", by ", report.producer.c_str());
  for (const auto& value : report.inputs) {
    std::printf("  input   %s  %s\n", value.name.c_str(), value.type.c_str());
  }
  for (const auto& value : report.outputs) {
    std::printf("  output  %s  %s\n", value.name.c_str(), value.type.c_str());
  }
  if (!report.symbols.empty()) std::printf("  symbols %s\n", join(report.symbols, ", ").c_str());
  std::printf("  %s, %s of %s\n", counted(report.nodes, "node").c_str(),
              counted(report.constants, "constant").c_str(),
              counted(report.constant_bytes, "byte").c_str());
  for (const auto& [op, count] : report.operators) {
    std::printf("  %6lld  %s\n", static_cast<long long>(count), op.c_str());
  }
  for (const auto& node : report.unsupported) {
    std::printf("  unsupported: %s  %s  %s\n", node.node.c_str(), node.op.c_str(),
                node.reason.c_str());
  }
  if (!report.problem.empty()) std::printf("  cannot be imported: %s\n", report.problem.c_str());
  if (report.unsupported.empty() && report.problem.empty())
    std::printf("  all nodes are supported\n");
}

void print_signature(const String& name, const graph::FunctionRef& function) {
  std::printf("%s\n", std::string(name).c_str());
  for (const graph::VarRef& param : function->params) {
    std::printf("  input   %s  %s\n", std::string(param->name).c_str(),
                graph::to_text(param->type).c_str());
  }
  std::printf("  result  %s\n", graph::to_text(function->result_type).c_str());
}

}  // namespace

void add_inspect_command(CLI::App* app, int*) {
  auto* command =
      app->add_subcommand("inspect", "describe a model or executable without compiling it");
  command->footer(
      "Every node that cannot be imported is listed with its reason.\n\n"
      "  tenon inspect model.onnx\n"
      "  tenon inspect model.tnx");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, ".onnx, .tn or .tnx")->required();
  command->callback([file] {
    driver::initialise();
    if (std::filesystem::path(*file).extension() == ".onnx") {
      inspect_onnx(*file);
      return;
    }
    CompileFlags flags;
    if (!is_executable_file(*file)) {
      const graph::Module module = read_module(*file, flags);
      for (const auto& [name, function] : module->functions) print_signature(name, function);
      return;
    }
    const ProgramFile program = open_program(*file, flags);
    for (const vm::FunctionUnit& function : program.program->unit().functions) {
      if (!function.exported) continue;
      std::printf("%s", signature_text(signature_of(*program.program, function.name)).c_str());
    }
  });
}

void add_ops_command(CLI::App* app, int*) {
  auto* command =
      app->add_subcommand("ops", "list the operators: ONNX's that are imported, and Tenon's own");
  command->footer(
      "A line is an operator and the version since when it is imported.\n\n"
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
