// libFuzzer target for files of tensors: .npy, .npz, .pb and .safetensors.
#include "fuzzer.h"
#include "tensor_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  stop_at(run_tensors({reinterpret_cast<const char*>(data), size}).problem);
  return 0;
}
