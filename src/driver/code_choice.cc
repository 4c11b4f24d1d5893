#include "driver/code_choice.h"

#include <algorithm>

#include "support/error.h"

namespace tenon::driver {
namespace {

void require_apart(const codegen::Target& a, const codegen::Target& b) {
  if (a.architecture != b.architecture) {
    throw Error(ErrorKind::Usage,
                cat("the CPUs ", a.cpu, " and ", b.cpu, " are of different architectures"))
        .help("compile a file for each");
  }
  if (a.cpu == b.cpu) {
    throw Error(ErrorKind::Usage, cat("the CPU ", a.cpu, " is given twice")).help("leave one out");
  }
  if (a.features == b.features) {
    throw Error(ErrorKind::Usage,
                cat("code for ", a.cpu, " and code for ", b.cpu, " need the same CPU features"))
        .help(a.architecture->features
                  ? "leave one out: a machine chooses code by its features"
                  : cat("leave one out: a machine chooses code by its features, and a CPU of ",
                        a.architecture->name, " only tunes code that runs on all of them"));
  }
}

void require_shareable(const CompileOptions& options, const std::vector<codegen::Target>& targets) {
  if (targets.size() > 1) {
    std::vector<std::string> names;
    for (const codegen::Target& target : targets) names.push_back(target.cpu);
    throw Error(ErrorKind::Usage, "a shared object has code for one CPU")
        .found(join(names, ", "))
        .help(
            "give the lowest of them, compile an object for each, or write a .tnx file, which "
            "may have code for several");
  }
  if (options.keep_computes) {
    throw Error(ErrorKind::Usage, "keep-computes has no effect on a shared object")
        .help("leave it out: only .tnx files are loaded without their native code");
  }
}

}  // namespace

CodeChoice choose_code(const CompileOptions& options) {
  const codegen::Architecture* wanted =
      options.target.empty() ? nullptr : &codegen::architecture_of(options.target);
  CodeChoice code;
  for (const std::string& cpu : options.cpu) {
    const codegen::Target added = codegen::parse_target(cpu, wanted);
    for (const codegen::Target& other : code.targets) require_apart(other, added);
    code.targets.push_back(added);
  }
  if (code.targets.empty()) {
    const bool elsewhere = wanted && wanted != &codegen::host_architecture();
    code.targets = {elsewhere ? codegen::base_target(*wanted) : codegen::host_target()};
  }
  const codegen::Architecture* architecture = code.targets[0].architecture;
  const bool foreign = architecture != &codegen::host_architecture();
  if (options.libraries == kOneDnn && foreign) {
    throw Error(ErrorKind::Usage,
                cat("libraries onednn can't be used in code for ", architecture->name))
        .help("leave libraries out: oneDNN is only used for this machine's architecture");
  }
  if (options.libraries == kOneDnn && options.keep_computes) {
    throw Error(ErrorKind::Usage, "libraries onednn can't be used with keep-computes")
        .help("leave out one: a library call has no compute to keep");
  }
  if (options.shared) require_shareable(options, code.targets);
  std::ranges::sort(code.targets, codegen::is_lower);
  code.libraries = options.libraries != kNoLibraries && !foreign && !options.keep_computes;
  return code;
}

}  // namespace tenon::driver
