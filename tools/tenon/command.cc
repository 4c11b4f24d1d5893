#include "tools/tenon/command.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "support/error.h"
#include "tools/tenon/parse_number.h"

namespace tenon::tool {
namespace {

int current_verbosity = 1;

int64_t number(std::string_view text, const std::string& flag) {
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < 0) {
    throw Error(ErrorKind::Usage, cat(flag, ": '", text, "' is not a size"))
        .expected("an integer, 0 or larger");
  }
  return *value;
}

std::pair<std::string, std::string> key_and_value(const std::string& text, const std::string& flag,
                                                  const std::string& example) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorKind::Usage, cat(flag, ": '", text, "' is not of the form NAME=VALUE"))
        .expected(cat("such as ", flag, " ", example));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Error given_twice(const std::string& flag, const std::string& name) {
  return Error(ErrorKind::Usage, cat(flag, ": '", name, "' is given twice"))
      .help(cat("leave out one ", flag, " ", name, "=..."));
}

}  // namespace

int verbosity() {
  return current_verbosity;
}
void set_verbosity(int level) {
  current_verbosity = level;
}

void progress(const std::string& line) {
  if (current_verbosity >= 1) std::fprintf(stderr, "%s\n", printable(line).c_str());
}

void detail(const std::string& line) {
  if (current_verbosity >= 2) std::fprintf(stderr, "%s\n", printable(line).c_str());
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

void check_not_input(const std::string& input, const std::string& output, const std::string& flag) {
  std::error_code missing;  // if set, a file is missing and the two differ
  if (!std::filesystem::equivalent(input, output, missing) || missing) return;
  throw Error(ErrorKind::Usage, cat(flag, ": ", output, " is also the input file"))
      .help(cat("it would be overwritten; choose an output other than ", input));
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
  throw Error(ErrorKind::Usage, cat("cannot write ", path, ": ", std::strerror(reason)));
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
  throw Error(ErrorKind::Usage, cat("cannot write into ", folder, ": ", std::strerror(reason)));
}

void CompileFlags::add_to(CLI::App* command, bool writes_file) {
  CLI::Option* cpu =
      add_repeated(command, "--cpu", code.cpus,
                   writes_file
                       ? "CPU to compile for: native (the default), x86-64-v2, -v3, -v4, or a\n"
                         "name such as znver4; may be repeated for code for several CPUs"
                       : "CPU to compile for: native (the default), x86-64-v2, -v3, -v4, or a\n"
                         "name such as znver4")
          ->group("Compilation");
  if (!writes_file) cpu->expected(1);
  compilation_.push_back(cpu);
  if (writes_file) {
    command
        ->add_option("--target", code.target,
                     "what the file runs on: x86_64-linux-gnu, aarch64-linux-gnu; by default this\n"
                     "machine. A target of another architecture implies --libraries none")
        ->group("Compilation");
    command
        ->add_flag("--keep-computes", code.keep_computes,
                   "also store the computes of kernels, so that a loader that doesn't trust\n"
                   "the file can compile them again; implies --libraries none")
        ->group("Compilation");
  }
  compilation_.push_back(
      command
          ->add_option(
              "-O", level,
              "0: plain loops, one kernel per operator;\n1: fold constants and plan memory;\n"
              "2: fuse operators, make images channels-last,\n   use libraries;\n"
              "3: libraries also compute ReLU and Clip, which turns NaN into a bound")
          ->check(CLI::IsMember({0, 1, 2, 3}))
          ->capture_default_str()
          ->group("Compilation"));
  add_repeated(command, "--dim", dims, "size of a symbolic dimension: batch=1")
      ->group("Compilation");
  add_repeated(command, "--shape", shapes, "shape of an input: x=1x3x224x224")
      ->group("Compilation");
  compilation_.push_back(
      command
          ->add_option("--libraries", code.libraries,
                       "onednn (the default), or none for only Tenon's own kernels")
          ->check(CLI::IsMember({"onednn", "none"}))
          ->group("Compilation"));
  compilation_.push_back(
      command->add_option("--fold-limit", fold_limit, "bytes of constants that folding may create")
          ->check(between(0))
          ->capture_default_str()
          ->group("Compilation"));
  compilation_.push_back(
      command
          ->add_option("--fold-work", fold_work, "elements that folding of constants may compute")
          ->check(between(0))
          ->capture_default_str()
          ->group("Compilation"));
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

driver::CompileOptions CompileFlags::options() const {
  driver::CompileOptions options;
  code.apply_to(&options);
  options.level = level;
  options.fold_limit = fold_limit;
  options.fold_work = fold_work;
  return options;
}

std::map<std::string, int64_t> CompileFlags::dim_values() const {
  std::map<std::string, int64_t> out;
  for (const std::string& dim : dims) {
    auto [name, value] = key_and_value(dim, "--dim", "batch=1");
    if (!out.emplace(name, number(value, "--dim")).second) throw given_twice("--dim", name);
  }
  return out;
}

std::map<std::string, std::vector<int64_t>> CompileFlags::shape_values() const {
  std::map<std::string, std::vector<int64_t>> out;
  for (const std::string& shape : shapes) {
    auto [name, value] = key_and_value(shape, "--shape", "x=1x3x224x224");
    if (out.contains(name)) throw given_twice("--shape", name);
    std::vector<int64_t>& sizes = out[name];
    for (size_t at = 0; at <= value.size();) {
      const size_t end = std::min(value.find('x', at), value.size());
      sizes.push_back(number(std::string_view(value).substr(at, end - at), "--shape"));
      at = end + 1;
    }
  }
  return out;
}

}  // namespace tenon::tool
