#include "tools/tenon/file_argument.h"

#include <unistd.h>

#include <filesystem>

#include "support/error.h"

namespace tenon::tool {
namespace {

driver::Source open_with(const std::string& path, driver::FileAccess access) {
  driver::Source source = is_stream(path) ? driver::source_of(read_input(path), input_name(path))
                                          : driver::open_source(path, access);
  source.import_path = source_options().import_path;
  if (source.import_path.empty() || source.is_graph()) return source;
  throw Error(ErrorKind::Usage, cat("--import-path has no effect on ", printable(source.name)))
      .found(driver::to_text(source.kind))
      .help("leave it out: only programs in Tenon's language import files");
}

}  // namespace

driver::Source& source_options() {
  static driver::Source options;
  return options;
}

std::string read_input(const std::string& path) {
  return InputStream(path).read_rest();
}

driver::Source open_input(const std::string& path) {
  return open_with(path, driver::FileAccess::Mapped);
}

driver::Source open_input(const std::string& path, bool untrusted, const WorkLimits& limits) {
  const BudgetedWork work(limits, "reading", input_name(path));
  return open_with(path, untrusted ? driver::FileAccess::Copied : driver::FileAccess::Mapped);
}

driver::Source open_executable(const std::string& path) {
  return require_executable(open_input(path), path);
}

driver::Source require_executable(driver::Source source, const std::string& path) {
  if (source.kind == driver::SourceKind::Executable) return source;
  const char* command = source.is_graph() ? "compile" : "asm";
  throw Error(ErrorKind::Usage, cat(printable(source.name), " is not an executable"))
      .found(driver::to_text(source.kind))
      .expected("a .tnx file")
      .help(cat("make one with `tenon ", command, " ", printable(path), "`"));
}

std::string default_output(const std::string& input, std::string_view extension) {
  if (input == "-") return input;
  return std::filesystem::path(input).replace_extension(extension).string();
}

void check_not_terminal(const std::string& output) {
  if (output != "-" || isatty(STDOUT_FILENO) == 0) return;
  throw Error(ErrorKind::Usage, "an executable is not written to a terminal")
      .help("write it to a file with -o FILE, or to a pipe");
}

}  // namespace tenon::tool
