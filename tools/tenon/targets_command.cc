// tenon targets: lists the targets and CPUs that kernels can be compiled for.
#include <cstdio>
#include <utility>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/target.h"
#include "tools/tenon/command.h"
#include "tools/tenon/json_output.h"

namespace tenon::tool {
namespace {

void print_cpus(const codegen::Architecture& architecture) {
  const std::vector<std::string> names = codegen::cpu_names(architecture);
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) {
    const loop::TargetFacts facts = codegen::parse_target(name, &architecture).facts();
    const bool scalar = facts.vector_bytes == codegen::Capabilities::kScalarPair;
    std::printf("  %-*s  %s%s%s\n", static_cast<int>(width), name.c_str(),
                scalar ? "no vectors" : cat(facts.vector_bytes, "-byte vectors").c_str(),
                facts.dot_products ? ", dot products of int8" : "",
                facts.byte_matrices ? ", matrices of int8" : "");
  }
}

void write_targets() {
  JsonWriter out = json_document();
  out.begin_object().key("targets").begin_array();
  for (const codegen::Architecture& architecture : codegen::architectures()) {
    out.begin_object().key("triple").value(architecture.triple());
    if (&architecture == &codegen::host_architecture()) {
      out.key("native").value(codegen::host_target().cpu);
    }
    out.key("cpus").begin_array();
    for (const std::string& name : codegen::cpu_names(architecture)) {
      const loop::TargetFacts facts = codegen::parse_target(name, &architecture).facts();
      out.begin_object().key("name").value(name);
      out.key("vector_bytes").value(facts.vector_bytes);
      out.key("dot_products").value(facts.dot_products);
      out.key("byte_matrices").value(facts.byte_matrices).end_object();
    }
    out.end_array().end_object();
  }
  print_json(std::move(out.end_array().end_object()));
}

}  // namespace

void add_targets_command(CLI::App* app) {
  auto* command =
      app->add_subcommand("targets", "list what --target and --cpu of `tenon compile` accept");
  command->footer(
      "Code for an x86_64 CPU runs on every machine that has the CPU's features. Code for a CPU\n"
      "of another architecture runs on all that are listed for it and is tuned for the one "
      "named.\n\n"
      "  tenon targets\n"
      "  tenon compile model.onnx --cpu x86-64-v3,x86-64-v4\n"
      "  tenon compile model.onnx --target aarch64-linux-gnu --cpu cortex-a76");
  add_json(command);
  command->callback([] {
    if (json_output()) return write_targets();
    for (const codegen::Architecture& architecture : codegen::architectures()) {
      const bool host = &architecture == &codegen::host_architecture();
      std::printf(
          "%s%s\n", architecture.triple().c_str(),
          host ? cat(" (this machine: native is ", codegen::host_target().cpu, ")").c_str() : "");
      print_cpus(architecture);
    }
  });
}

}  // namespace tenon::tool
