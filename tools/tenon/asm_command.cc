// tenon asm and tenon disasm: bytecode from text and to text.
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/program_file.h"
#include "vm/asm/assemble.h"
#include "vm/asm/disassemble.h"
#include "vm/executable/file_format.h"
#include "vm/executable/write_file.h"

namespace tenon::tool {
namespace {

// Refuses to flood a terminal with megabytes of digits.
void check_fits_terminal(const std::string& file, const std::string& text) {
  constexpr size_t kMost = 256 << 10;
  if (text.size() <= kMost || isatty(STDOUT_FILENO) == 0) return;
  throw Error(ErrorKind::Usage, cat("the text of ", file, " is too long for a terminal"))
      .found(bytes_text(text.size()))
      .help(cat("write it to a file with -o, or read it abbreviated: tenon dump --text ", file));
}

// Refuses --json where the result itself goes to standard output.
void check_json_alone(const std::string& output) {
  if (!json_output() || output != "-") return;
  throw Error(ErrorKind::Usage, "--json and --output - both go to standard output")
      .help("write the result to a file");
}

void write_file_written(const std::string& file, const std::string& output, size_t bytes) {
  JsonWriter out = json_document();
  out.begin_object().key("file").value(file).key("output").value(output);
  out.key("bytes").value(static_cast<uint64_t>(bytes));
  print_json(std::move(out.end_object()));
}

}  // namespace

void add_asm_commands(CLI::App* app) {
  auto* assemble =
      app->add_subcommand("asm", "assemble the machine's code from text into a .tnx file");
  assemble->footer(
      "docs/assembly.md documents the text, docs/isa.md the instructions.\n\n  tenon asm sum.tna "
      "-o "
      "sum.tnx");
  auto source = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  assemble->add_option("FILE", *source, "assembly (.tna); - for standard input")->required();
  assemble->add_option("-o,--output", *output, kOutputHelp);
  auto limits = std::make_shared<LimitFlags>();
  limits->add_to(assemble, "assembling the file may");
  add_json(assemble);
  assemble->callback([=] {
    const BudgetedWork work(limits->work(), "assembling", input_name(*source));
    if (output->empty()) *output = default_output(*source, ".tnx");
    check_not_input(*source, *output, "--output");
    check_not_terminal(*output);
    check_json_alone(*output);
    check_writable(*output);
    const std::string bytes = read_input(*source);
    const std::string_view text = driver::without_byte_order_mark(bytes);
    const std::string name = input_name(*source);
    if (vm::begins_like_executable(text)) {
      throw Error(ErrorKind::Usage, cat(printable(name), " is an executable"))
          .expected("assembly")
          .help(cat("`tenon disasm ", printable(*source), "` prints it as assembly"));
    }
    const vm::Unit unit = vm::assemble(text, name);
    size_t size = 0;
    try {
      size = vm::save(unit, *output);
    } catch (Error& error) {
      if (error.kind() == ErrorKind::Damaged) error.help(cat("correct ", name));
      throw;
    }
    if (json_output()) return write_file_written(name, *output, size);
    progress(cat(*output, ": ", size, " bytes"));
  });

  auto* disassemble = app->add_subcommand("disasm", "print a .tnx file as assembly");
  disassemble->footer(
      "The output is input for `tenon asm`: unlike `tenon dump`, it has all constants and native\n"
      "code in full.\n\n"
      "  tenon disasm model.tnx -o model.tna");
  auto file = std::make_shared<std::string>(), text_file = std::make_shared<std::string>();
  disassemble->add_option("FILE", *file, ".tnx; - for standard input")->required();
  disassemble->add_option("-o,--output", *text_file,
                          "the file to write; standard output unless given");
  auto read_limits = std::make_shared<LimitFlags>();
  read_limits->add_to(disassemble, "reading the file may");
  add_json(disassemble);
  disassemble->callback([=] {
    const BudgetedWork work(read_limits->work(), "reading", input_name(*file));
    if (!text_file->empty()) {
      check_not_input(*file, *text_file, "--output");
      check_json_alone(*text_file);
      check_writable(*text_file);
    }
    const vm::LoadedUnit loaded = load_unit(open_executable(*file));
    driver::refuse_shared(loaded.unit, input_name(*file));
    const std::string text = vm::disassemble(loaded.unit);
    if (!text_file->empty()) {
      write_file(*text_file, text);
      if (json_output()) return write_file_written(input_name(*file), *text_file, text.size());
      progress(cat(*text_file, ": ", bytes_text(text.size())));
      return;
    }
    if (json_output()) {
      JsonWriter out = json_document();
      out.begin_object().key("file").value(input_name(*file)).key("text").value(text);
      return print_json(std::move(out.end_object()));
    }
    check_fits_terminal(*file, text);
    std::printf("%s", text.c_str());
  });
}

}  // namespace tenon::tool
