#include "driver/code_choice.h"

#include "support/error.h"

namespace tenon::driver {
namespace {

void require_apart(const codegen::Target& a, const codegen::Target& b) {
  if (a.architecture != b.architecture) {
    throw Error(ErrorKind::Usage,
                cat("the CPUs ", a.cpu, " and ", b.cpu, " are of different architectures"))
        .help("compile a file for each");
  }
  if (a.features == b.features) {
    throw Error(ErrorKind::Usage, cat("the CPUs ", a.cpu, " and ", b.cpu,
                                      a.cpu == b.cpu ? " are the same" : " have the same features"))
        .help("leave one out: a machine that runs code for one runs code for the other");
  }
}

}  // namespace

void CodeChoice::apply_to(CompileOptions* options) const {
  const std::string architecture =
      target.empty() ? std::string(codegen::host_architecture()) : codegen::architecture_of(target);
  const bool foreign = architecture != codegen::host_architecture();
  if (libraries == "onednn" && foreign) {
    throw Error(ErrorKind::Usage, cat("libraries onednn can't be used with target ", target))
        .help("leave libraries out: oneDNN is only used for this machine's architecture");
  }
  if (libraries == "onednn" && keep_computes) {
    throw Error(ErrorKind::Usage, "libraries onednn can't be used with keep-computes")
        .help("leave out one: a library call has no compute to keep");
  }
  options->targets.clear();
  for (const std::string& cpu : cpus) {
    const codegen::Target added = codegen::parse_target(cpu, target.empty() ? "" : architecture);
    for (const codegen::Target& other : options->targets) require_apart(other, added);
    options->targets.push_back(added);
  }
  if (cpus.empty()) {
    options->targets = {foreign ? codegen::base_target(architecture) : codegen::host_target()};
  }
  options->libraries = libraries != "none" && !foreign && !keep_computes;
  options->keep_computes = keep_computes;
}

}  // namespace tenon::driver
