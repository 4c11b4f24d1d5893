// tenon asm and tenon disasm: bytecode from text and to text.
#include <unistd.h>

#include <cstdio>

#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
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
  assemble->callback([=] {
    if (output->empty()) *output = default_output(*source, ".tnx");
    check_not_input(*source, *output, "--output");
    check_not_terminal(*output);
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
  disassemble->callback([=] {
    if (!text_file->empty()) {
      check_not_input(*file, *text_file, "--output");
      check_writable(*text_file);
    }
    const std::string text = vm::disassemble(load_unit(open_executable(*file)).unit);
    if (!text_file->empty()) {
      write_file(*text_file, text);
      progress(cat(*text_file, ": ", bytes_text(text.size())));
      return;
    }
    check_fits_terminal(*file, text);
    std::printf("%s", text.c_str());
  });
}

}  // namespace tenon::tool
