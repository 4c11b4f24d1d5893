// tenon dump: shows the contents of a .tnx file; tenon verify: checks whether it is valid.
#include <cstdio>
#include <map>
#include <utility>

#include "codegen/llvm/disassemble.h"
#include "driver/code_stats.h"
#include "driver/model_graph.h"
#include "driver/provenance.h"
#include "driver/shown_names.h"
#include "report/code_calls.h"
#include "report/picture.h"
#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/memory_text.h"
#include "tools/tenon/program_file.h"
#include "vm/asm/disassemble.h"
#include "vm/executable/late_constants.h"

namespace tenon::tool {
namespace {

// The values of --graph.
constexpr char kSvg[] = "svg", kDot[] = "dot", kCode[] = "code";

std::string code_text(const vm::Unit& unit, bool in_full) {
  vm::DisassembleOptions options;
  bool abbreviated = false;
  if (!in_full) {
    options.max_constant_elements = vm::kShownConstantElements;
    options.kernel_objects = false;
    abbreviated = !unit.kernels.empty();
    for (const vm::Constant& constant : unit.constants) {
      const auto tensor = constant.value.try_as<Tensor>();
      if (tensor && *tensor && tensor->count() > vm::kShownConstantElements) abbreviated = true;
    }
  }
  if (abbreviated) progress("large constants and native code are left out: --full prints them");
  return vm::disassemble(unit, options);
}

std::map<std::string, int64_t> instruction_counts(const vm::Unit& unit) {
  std::map<std::string, int64_t> counts;
  for (const vm::FunctionUnit& function : unit.functions) {
    report::for_each_step(unit, function, [&](const report::CodeStep& step) {
      ++counts[std::string(step.instruction.info->mnemonic)];
    });
  }
  return counts;
}

void print_stats(const vm::LoadedUnit& loaded, const std::string& path) {
  const vm::Unit& unit = loaded.unit;
  std::printf("%s: format %u, %s\n", printable(path).c_str(), loaded.table.version,
              printable(unit.producer).c_str());
  for (const std::string& line : driver::provenance_lines(unit.provenance)) {
    std::printf("  %s\n", printable(line).c_str());
  }
  for (const vm::SectionEntry& section : loaded.table.entries) {
    std::printf("  %-16s %12llu bytes at 0x%llx\n", vm::section_name(section).c_str(),
                static_cast<unsigned long long>(section.size),
                static_cast<unsigned long long>(section.offset));
  }
  std::printf("  %s, %s of %s, %s\n", counted(unit.functions.size(), "function").c_str(),
              counted(unit.constants.size(), "constant").c_str(),
              bytes_text(constant_bytes(unit)).c_str(),
              counted(unit.packed.size(), "packed function").c_str());
  for (const vm::KernelTarget& target : unit.kernels) {
    for (const vm::KernelImage& image : target.images) {
      std::string device;
      if (&image != target.host_object()) {
        device = cat(" (", vm::to_text(image.kind), image.architecture.empty() ? "" : " ",
                     printable(image.architecture), ")");
      }
      std::printf("  native code for %s, %s%s: %s\n", printable(target.triple).c_str(),
                  printable(target.cpu).c_str(), device.c_str(),
                  bytes_text(image.bytes.size()).c_str());
    }
  }
  if (unit.shared_code) {
    for (const vm::KernelTarget& target : unit.kernels) {
      std::printf("  native code for %s, %s, in this shared object: %s\n",
                  printable(target.triple).c_str(), printable(target.cpu).c_str(),
                  bytes_text(unit.shared_code).c_str());
    }
  }
  for (const std::string& library : unit.libraries)
    std::printf("  needs library %s\n", printable(library).c_str());
  for (const auto& [mnemonic, count] : instruction_counts(unit)) {
    std::printf("  %8lld  %s\n", static_cast<long long>(count), mnemonic.c_str());
  }
}

// The file's form, and what driver::code_stats says of its content.
void write_stats(JsonWriter& out, const vm::LoadedUnit& loaded, size_t file_bytes) {
  out.key("format").value(static_cast<int64_t>(loaded.table.version));
  out.key("sections").begin_array();
  for (const vm::SectionEntry& section : loaded.table.entries) {
    out.begin_object().key("name").value(vm::section_name(section));
    out.key("bytes").value(static_cast<uint64_t>(section.size));
    out.key("offset").value(static_cast<uint64_t>(section.offset)).end_object();
  }
  out.end_array();
  for (const auto& [name, value] : driver::code_stats(loaded.unit, file_bytes)) {
    write_plain(out.key(std::string(name)), value);
  }
}

std::string native_text(const vm::Unit& unit, std::string_view file) {
  std::string text;
  for (const vm::KernelTarget& target : unit.kernels) {
    const vm::KernelImage* object = target.host_object();
    if (!object && !unit.shared_code) continue;
    text += cat("; ", printable(target.triple), ", ", printable(target.cpu), "\n",
                codegen::disassemble(unit.shared_code ? file : object->bytes));
  }
  return text;
}

// A name for a quoted string in DOT.
std::string label_text(const std::string& name) {
  const std::string text = tenon::quoted(driver::shown_name(name));
  return text.substr(1, text.size() - 2);
}

// Prints each function as a graph with an edge from the instruction that writes a register to those
// that read it, in the order of the code.
void print_code_graph(const vm::Unit& unit) {
  std::printf("digraph program {\n  node [shape=box, fontname=monospace];\n");
  int64_t next = 0;
  for (const vm::FunctionUnit& function : unit.functions) {
    std::map<uint32_t, int64_t> writer;
    const std::string name = label_text(function.name);
    std::printf("  subgraph \"cluster_%s\" {\n    label=\"%s\";\n", name.c_str(), name.c_str());
    for (uint32_t i = 0; i < function.params.size(); ++i) {
      writer[i] = next;
      std::printf("    n%lld [label=\"%s\", shape=ellipse];\n", static_cast<long long>(next++),
                  label_text(function.params[i].name).c_str());
    }
    report::for_each_step(unit, function, [&](const report::CodeStep& step) {
      const int64_t node = next++;
      std::string label(step.instruction.info->mnemonic);
      if (step.callee) label += cat("\\n", label_text(step.callee->label()));
      std::printf("    n%lld [label=\"%s\"];\n", static_cast<long long>(node), label.c_str());
      for (const uint32_t reg : step.reads) {
        const auto it = writer.find(reg);
        if (it == writer.end()) continue;
        std::printf("    n%lld -> n%lld;\n", static_cast<long long>(it->second),
                    static_cast<long long>(node));
      }
      for (const uint32_t reg : step.writes) writer[reg] = node;
    });
    std::printf("  }\n");
  }
  std::printf("}\n");
}

// Prints a picture of a model: as it was before it was compiled, if that is known.
void print_graph(const report::Picture& picture, const std::string& form) {
  std::printf("%s", (form == kDot ? report::to_dot(picture) : report::to_svg(picture)).c_str());
}

report::Picture picture_of(const vm::Unit& unit, const std::string& name) {
  if (unit.graph.empty()) return report::picture_of_code(unit);
  std::vector<report::Drawing> drawings;
  for (driver::FunctionGraph& f : driver::model_graph_from_json(unit.graph, name).functions) {
    drawings.push_back({f.name, std::move(f.before)});
  }
  return drawings;
}

report::Picture picture_of(const graph::Module& module) {
  std::vector<report::Drawing> drawings;
  for (const auto& [name, f] : module->functions) {
    if (f->is_exported()) drawings.push_back({name.str(), driver::graph_of(f)});
  }
  return drawings;
}

// What `tenon verify` says of a file that is valid.
struct Verified {
  size_t functions;
  bool data_hashed;  // or there is none
  bool native_code, computes;
};

// Each step is held to the limits, as in `tenon run`.
Verified verify(const driver::Source& source, const vm::WeightSource& weights,
                const WorkLimits& limits) {
  const BudgetedWork work(limits, "verifying", source.name);
  vm::LoadedUnit loaded = load_unit(source);
  if (weights) {
    refuse_unused_weights(loaded.unit, source.name);
    vm::bind_late_constants(loaded.unit, weights, source.name);
  }
  for (const vm::SectionEntry& section : loaded.table.entries) {
    detail(cat("  ", vm::section_name(section), ": ", bytes_text(section.size), " at ",
               hex(section.offset)));
  }
  const bool data_hashed = vm::check_data_hashes(loaded.file, loaded.table, source.name);
  return {loaded.unit.functions.size(), data_hashed || constant_bytes(loaded.unit) == 0,
          !loaded.unit.kernels.empty(), !loaded.unit.computes.empty()};
}

void print_verified(const Verified& verified, const std::string& name) {
  const char* code = !verified.native_code ? "no native code"
                     : verified.computes
                         ? "native code, which is as trusted as any program, and the computes that "
                           "untrusted loads compile instead"
                         : "native code, which is as trusted as any program";
  std::printf("%s: verified; %s%s, %s\n", printable(name).c_str(),
              counted(verified.functions, "function").c_str(),
              verified.data_hashed ? "" : ", weights without a hash (format 1)", code);
}

void write_verified(const Verified& verified, const std::string& name, bool untrusted) {
  JsonWriter out = json_document();
  out.begin_object().key("file").value(name).key("verified").value(true);
  out.key("functions").value(static_cast<uint64_t>(verified.functions));
  out.key("weights_hashed").value(verified.data_hashed);
  out.key("native_code").value(verified.native_code).key("computes").value(verified.computes);
  out.key("accepted_untrusted");
  untrusted ? out.value(true) : out.null();
  print_json(std::move(out.end_object()));
}

}  // namespace

void add_dump_commands(CLI::App* app) {
  auto* dump = app->add_subcommand("dump", "show what a .tnx file holds");
  dump->footer(
      "  tenon dump model.tnx --memory --dim batch=8\n"
      "  tenon dump model.tnx --text | less\n"
      "  tenon dump model.onnx --graph > model.svg\n"
      "  tenon dump model.tnx --graph=dot | dot -Tpdf > model.pdf");
  auto file = std::make_shared<std::string>();
  auto text = std::make_shared<bool>(false), stats = std::make_shared<bool>(false);
  auto full = std::make_shared<bool>(false);
  auto graph = std::make_shared<std::string>();
  auto memory = std::make_shared<bool>(false);
  auto native = std::make_shared<bool>(false);
  dump->add_option(
          "FILE", *file,
          ".tnx; with --graph also a model (.onnx) or program (.tn); - for\nstandard input")
      ->required();
  add_source_flags(dump);
  dump->add_flag(
      "--text", *text,
      "the code as assembly, without constants of more than 64 elements and native code");
  dump->add_flag("--full", *full, "with --text: include those, too");
  dump->add_flag("--stats", *stats, "sections, counts and sizes (the default)");
  dump->add_flag("--graph{svg}", *graph,
                 "a picture (SVG) of the model, with the names and shapes of its nodes;\n"
                 "--graph=dot: the same for Graphviz; --graph=code: instructions and registers\n"
                 "for Graphviz. A .tnx shows the model as it was before it was compiled if\n"
                 "`tenon compile --keep-graph` stored that, and otherwise its kernels")
      ->check(CLI::IsMember({kSvg, kDot, kCode}));
  dump->add_flag("--memory", *memory,
                 "the most bytes of tensor memory that each function has at once, as a formula of\n"
                 "sizes, and its storages and registers");
  auto sizes = std::make_shared<CompileFlags>();
  add_repeated(dump, "--dim", sizes->dims,
               "with --memory: the value of a symbol of the formulas, such as batch=8");
  dump->add_flag("--native", *native, "the native code as assembly, for each of its CPUs");
  auto dump_limits = std::make_shared<LimitFlags>();
  dump_limits->add_to(dump, "reading the file and describing it may", "--memory-limit");
  add_json(dump);
  dump->callback([=] {
    if (*text + *stats + !graph->empty() + *memory + *native > 1) {
      throw Error(ErrorKind::Usage,
                  "more than one of --text, --stats, --graph, --memory and --native is given")
          .help("each prints another form of the file: give one at a time");
    }
    if (!graph->empty() && json_output()) {
      throw Error(ErrorKind::Usage, "--graph has no JSON form")
          .help("leave out --json, or --graph for the counts and sizes");
    }
    if (*full && !*text) {
      throw Error(ErrorKind::Usage, "--full needs --text").help("the other forms hold no elements");
    }
    const Sizes given = sizes->import_options().dims;
    if (!given.empty() && !*memory) {
      throw Error(ErrorKind::Usage, "--dim needs --memory")
          .help("the other forms have no formulas of sizes");
    }
    const BudgetedWork work(dump_limits->work(), "reading", input_name(*file));
    const bool draws = *graph == kSvg || *graph == kDot;
    const driver::Source source = draws ? open_input(*file) : open_executable(*file);
    if (draws && source.is_graph()) {
      prepare_runtime();
      return print_graph(picture_of(driver::read_module(source, {})), *graph);
    }
    const vm::LoadedUnit loaded = load_unit(source);
    const std::string lines = *text     ? code_text(loaded.unit, *full)
                              : *native ? native_text(loaded.unit, source.content())
                                        : "";
    if (json_output()) {
      JsonWriter out = json_document();
      out.begin_object().key("file").value(source.name);
      if (*text || *native) {
        out.key("text").value(lines);
      } else if (*memory) {
        write_memory(out, loaded.unit, given);
      } else {
        write_stats(out, loaded, source.content().size());
      }
      return print_json(std::move(out.end_object()));
    }
    std::printf("%s", lines.c_str());
    if (draws) print_graph(picture_of(loaded.unit, source.name), *graph);
    if (*graph == kCode) print_code_graph(loaded.unit);
    if (*memory) print_memory(loaded.unit, given);
    if (*stats || !(*text || !graph->empty() || *memory || *native))
      print_stats(loaded, source.name);
  });

  auto* command = app->add_subcommand("verify", "check a .tnx file without running anything of it");
  command->footer(
      "Exit code 0: every section matches its hash and every instruction follows the rules of\n"
      "docs/isa.md; otherwise 4. Loading checks the same except the hash of the weights, because "
      "no\n"
      "weight can do harm and reading all of them takes long. Files of format 1 have no such "
      "hash.\n"
      "Hashes detect damage; only a checksum from the sender detects deliberate changes.\n\n"
      "  tenon verify model.tnx\n"
      "  tenon verify found.tnx --untrusted --deadline 10s --memory 1GB");
  auto verified = std::make_shared<std::string>();
  command->add_option("FILE", *verified, ".tnx; - for standard input")->required();
  auto limits = std::make_shared<LimitFlags>();
  limits->add_to(command, "reading the file, verifying it, and loading it may each");
  auto untrusted = std::make_shared<bool>(false);
  auto weights = std::make_shared<std::string>();
  command->add_flag("--untrusted", *untrusted,
                    "also load it like `tenon run --untrusted`, which compiles its kernels;\n"
                    "exit code 3 if that would be refused");
  command->add_option("--weights", *weights, cat(kWeightsHelp, ": checks that they fit"));
  add_json(command);
  command->callback([=] {
    const driver::Source source =
        require_executable(open_input(*verified, *untrusted, limits->work()), *verified);
    const vm::WeightSource given = weight_source(*weights, limits->work());
    const Verified result = verify(source, given, limits->work());
    if (!json_output()) print_verified(result, source.name);
    if (*untrusted) {
      open_program(source, {}, {.trusted = false, .limits = limits->work(), .weights = given});
    }
    if (json_output()) return write_verified(result, source.name, *untrusted);
    if (!*untrusted) return;
    std::printf("%s: accepted as an untrusted file\n", printable(source.name).c_str());
  });
}

}  // namespace tenon::tool
