#include "tools/tenon/version.h"

#include "codegen/llvm/target.h"
#include "library/onednn/register.h"
#include "support/text.h"

namespace tenon::tool {

std::string version_text() {
  return cat("tenon ", TENON_VERSION, "\nLLVM ", codegen::llvm_version(), " (",
             join(codegen::llvm_code_generators(), ", "), ")\noneDNN ", onednn_version(), "\nCPU ",
             codegen::to_text(codegen::host_target()));
}

const char* tenon_version() {
  return TENON_VERSION;
}

}  // namespace tenon::tool
