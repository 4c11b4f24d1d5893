// libFuzzer target for sequences of calls of the C interface; the input makes their choices.
#include <span>

#include "fuzzer.h"
#include "sequence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  stop_at(call_c_api(Choices(std::span(data, size))).problem);
  return 0;
}
