// libFuzzer's target for .tnx files; hashes aren't checked, so that it reaches what lies behind.
#include "tnx_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz::run_tnx(std::string(reinterpret_cast<const char*>(data), size), false, {});
  return 0;
}
