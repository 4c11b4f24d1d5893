// libFuzzer target for .onnx files; external data is refused, and no native code is generated.
#include "fuzzer.h"
#include "onnx_target.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tenon::driver::initialise();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  stop_at(run_onnx({reinterpret_cast<const char*>(data), size}, {}).problem);
  return 0;
}
