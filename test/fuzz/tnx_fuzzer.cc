// libFuzzer target for .tnx files. Hashes aren't checked, to reach the code behind the check, and
// native code isn't run.
#include "fuzzer.h"
#include "tnx_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  stop_at(run_tnx(bytes, false, {}).problem);
  return 0;
}
