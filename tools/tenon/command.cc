#include "tools/tenon/command.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "driver/options.h"
#include "object/library.h"
#include "support/error.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/parse_number.h"
#include "tools/tenon/quantity.h"
#include "tools/tenon/status_line.h"

namespace tenon::tool {
namespace {

int current_verbosity = 1;

int64_t size_of(std::string_view text, const std::string& flag, const char* expected) {
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < 0) {
    throw Error(ErrorKind::Usage, cat(flag, ": '", text, "' is not a size")).expected(expected);
  }
  return *value;
}

void read(std::string_view text, const std::string& flag, int64_t* size) {
  *size = size_of(text, flag, "an integer, 0 or larger");
}

// Sizes separated by x.
void read(std::string_view text, const std::string& flag, std::vector<int64_t>* sizes) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    sizes->push_back(size_of(text.substr(at, end - at), flag,
                             "integers, 0 or larger, with an x between them: 3x64"));
    at = end + 1;
  }
}

// The values of a flag that is given as NAME=VALUE.
template <typename T>
void read_named(const std::vector<std::string>& given, const std::string& flag,
                const std::string& example, std::map<std::string, T>* values) {
  for (const std::string& text : given) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw Error(ErrorKind::Usage, cat(flag, ": '", text, "' is not of the form NAME=VALUE"))
          .expected(cat("such as ", flag, " ", example));
    }
    const auto [value, is_new] = values->try_emplace(text.substr(0, equals));
    if (!is_new) {
      throw Error(ErrorKind::Usage, cat(flag, ": '", value->first, "' is given twice"))
          .help(cat("leave out one ", flag, " ", value->first, "=..."));
    }
    read(std::string_view(text).substr(equals + 1), flag, &value->second);
  }
}

}  // namespace

int verbosity() {
  return current_verbosity;
}
void set_verbosity(int level) {
  current_verbosity = level;
}

void progress(const std::string& line) {
  if (current_verbosity == 0) return;
  StatusLine::make_room();
  std::fprintf(stderr, "%s\n", printable(line).c_str());
}

void detail(const std::string& line) {
  if (current_verbosity >= 2) progress(line);
}

void add_verbosity(CLI::App* app) {
  app->add_flag_callback(
      "-v,--verbose", [] { set_verbosity(2); },
      "print what is done, and time and memory, on standard error");
  app->add_flag_callback(
      "-q,--quiet", [] { set_verbosity(0); }, "print only results and errors");
}

CLI::Validator between(int64_t least, int64_t most) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        const auto value = parse_number<int64_t>(text);
        if (value && *value >= least && *value <= most) return "";
        return most == INT64_MAX ? cat("'", text, "' is not an integer >= ", least)
                                 : cat("'", text, "' is not an integer from ", least, " to ", most);
      },
      "");
}

CLI::Validator not_negative() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        const auto value = parse_number<double>(text);
        if (value && std::isfinite(*value) && *value >= 0) return "";
        return cat("'", text, "' is not a number >= 0");
      },
      "");
}

CLI::Option* add_mode(CLI::App* command, Mode& mode, CompileFlags& flags) {
  const auto set = [&mode, &flags](const std::string& name) {
    mode = name == kInterpret              ? Mode::Interpret
           : name == driver::kBytecodeMode ? Mode::Bytecode
                                           : Mode::Compiled;
    if (mode != Mode::Interpret) flags.options.mode = name;
  };
  return command
      ->add_option_function<std::string>(
          "--mode", set,
          "compiled: machine code where the program has control flow; bytecode;\n"
          "or interpret: walk the graph, operator by operator")
      ->check(CLI::IsMember({driver::kCompiledMode, driver::kBytecodeMode, kInterpret}))
      ->default_str(driver::kCompiledMode);
}

std::vector<CLI::Option*> add_criterion(CLI::App* command, Criterion* criterion) {
  const bool of_onnx = criterion->atol.has_value();
  return {command->add_option("--rtol", criterion->rtol, "relative tolerance of comparisons")
              ->check(not_negative())
              ->capture_default_str(),
          command
              ->add_option("--atol", criterion->atol,
                           cat("absolute tolerance; by default 1e-7",
                               of_onnx ? ""
                                       : ", or 1e-4 of a value's greatest\nmagnitude if that is "
                                         "more (docs/semantics.md)"))
              ->check(not_negative())};
}

namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code missing;  // if set, a file is missing and the two differ
  return std::filesystem::equivalent(a, b, missing) && !missing;
}

}  // namespace

void check_not_input(const std::string& input, const std::string& output, const std::string& flag) {
  if (input == "-" || !is_same_file(input, output)) return;
  throw Error(ErrorKind::Usage, cat(flag, ": ", output, " is also the input file"))
      .help(cat("it would be overwritten; choose an output other than ", input));
}

void check_not_read(const graph::ReferencedFiles& read, const std::string& output,
                    const std::string& flag) {
  for (const std::string& path : read.paths()) {
    if (!is_same_file(path, output)) continue;
    throw Error(ErrorKind::Usage, cat(flag, ": ", output, " is a file that the input refers to"))
        .help(cat("it would be overwritten; choose an output other than ", path));
  }
}

void check_writable(const std::string& path) {
  if (path == "-") return;
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool exists = fs::exists(path, ignored);
  int reason = 0;
  if (exists && fs::is_directory(path)) {
    reason = EISDIR;
  } else if (exists && !fs::is_regular_file(path)) {
    reason = access(path.c_str(), W_OK) == 0 ? 0 : errno;
  } else {
    const fs::path folder = fs::weakly_canonical(fs::absolute(path), ignored).parent_path();
    reason = access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
    if (reason == 0 && !fs::is_directory(folder)) reason = ENOTDIR;
  }
  if (reason == 0) return;
  throw Error::of_system(ErrorKind::Usage, cat("cannot write ", path), reason);
}

void check_folder_writable(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path made_in = fs::weakly_canonical(fs::absolute(folder), ignored);
  while (!fs::exists(made_in, ignored) && made_in != made_in.root_path()) {
    made_in = made_in.parent_path();
  }
  int reason = access(made_in.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  if (!fs::is_directory(made_in, ignored)) reason = ENOTDIR;
  if (reason == 0) return;
  throw Error::of_system(ErrorKind::Usage, cat("cannot write into ", folder), reason);
}

namespace {

// An option of driver/options.def as a flag.
CLI::Option* add_flag(CLI::App* command, const char* name, bool& value, const char* meaning,
                      const driver::Allowed&) {
  return command->add_flag(name, value, meaning);
}
CLI::Option* add_flag(CLI::App* command, const char* name, std::vector<std::string>& value,
                      const char* meaning, const driver::Allowed&) {
  return add_repeated(command, name, value, meaning);
}
CLI::Option* add_flag(CLI::App* command, const char* name, std::string& value, const char* meaning,
                      const driver::Allowed& allowed) {
  CLI::Option* option = command->add_option(name, value, meaning);
  if (!allowed.words.empty() && !allowed.other_words) option->check(CLI::IsMember(allowed.words));
  return option;
}
template <std::integral T>
CLI::Option* add_flag(CLI::App* command, const char* name, T& value, const char* meaning,
                      const driver::Allowed& allowed) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (allowed.bytes) return add_size(command, name, value, kBytes, Zero::Accepted, meaning);
  }
  return command->add_option(name, value, meaning)
      ->check(between(allowed.least, allowed.most))
      ->capture_default_str();
}

// Loads a library of --custom, and returns the name that files have for it.
std::string load_custom(const std::string& file) {
  constexpr std::string_view kPrefix = "libtenon_", kSuffix = ".so";
  const std::filesystem::path path(file);
  const std::string base = path.filename();
  if (!base.starts_with(kPrefix) || !base.ends_with(kSuffix)) {
    throw Error(ErrorKind::Usage, cat("--custom: ", printable(file), " is not a library's name"))
        .expected("libtenon_NAME.so: a compiled file refers to it by NAME");
  }
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string name = base.substr(3, base.size() - 3 - kSuffix.size());
  if (!load_library(name, std::array{folder})) {
    throw Error(ErrorKind::Usage, cat("--custom: there is no file ", printable(file)));
  }
  return name.substr(kPrefix.size() - 3);
}

}  // namespace

CLI::Option* add_custom(CLI::App* command, std::vector<std::string>* names) {
  return command
      ->add_option_function<std::vector<std::string>>(
          "--custom",
          [names](const std::vector<std::string>& files) {
            for (const std::string& file : files) names->push_back(load_custom(file));
          },
          "FOLDER/libtenon_NAME.so: a library of functions that compute a model's own operators\n"
          "(docs/custom-operators.md)")
      ->allow_extra_args(false);
}

void add_source_flags(CLI::App* command) {
#define TENON_SOURCE_OPTION(type, name, flag, takes, meaning) \
  add_repeated(command, flag, source_options().name, meaning)->type_name(takes);
#include "driver/options.def"
}

void CompileFlags::add_to(CLI::App* command, bool writes_file) {
  const auto add = [&](const driver::Flag& flag, const char* meaning,
                       const driver::Allowed& allowed, auto& value) {
    if (flag.only_files && !writes_file) return;
    CLI::Option* option = add_flag(command, flag.name, value, meaning, allowed);
    option->group("Compilation");
    std::string text = meaning;
    if (option->get_items_expected_max() > 1) {
      if (writes_file) {
        option->delimiter(',');
        text += "; several, separated by commas";
      } else {
        option->expected(1);
      }
    }
    if (!flag.of_executable) {
      compilation_.push_back(option);
    } else if (!writes_file && *flag.of_executable != 0) {
      text += cat(".\nOf an executable: ", flag.of_executable);
    }
    option->description(text);
  };
#define TENON_COMPILE_OPTION(type, name, initial, text, allowed, flag, record, meaning) \
  add(driver::flag, meaning, driver::allowed, options.name);
#define TENON_HOST_OPTION(...)
#define TENON_IMPORT_OPTION(name, least, flag, example, meaning) \
  add_repeated(command, flag, name, cat(meaning, ", such as " example))->group("Compilation");
#define TENON_SOURCE_OPTION(type, name, flag, takes, meaning)                        \
  compilation_.push_back(add_repeated(command, flag, source_options().name, meaning) \
                             ->type_name(takes)                                      \
                             ->group("Compilation"));
#include "driver/options.def"
  add_custom(command, &options.custom)->group("Compilation");
}

void CompileFlags::check_unused(const std::string& executable) const {
  for (const CLI::Option* option : compilation_) {
    if (option->count() == 0) continue;
    throw Error(ErrorKind::Usage, cat(option->get_name(), " has no effect on ", executable,
                                      ", which is already compiled"))
        .help(cat("give ", option->get_name(), " to `tenon compile`, or leave it out"));
  }
}

void CompileFlags::check_no_sizes(const std::string& text) const {
  if (dims.empty() && shapes.empty()) return;
  throw Error(ErrorKind::Usage, "--dim and --shape have no effect on a textual program")
      .help(cat("write the sizes in ", text));
}

onnx::ImportOptions CompileFlags::import_options() const {
  onnx::ImportOptions out;
#define TENON_IMPORT_OPTION(name, least, flag, example, meaning) \
  read_named(name, flag, example, &out.name);
#include "driver/options.def"
  return out;
}

}  // namespace tenon::tool
