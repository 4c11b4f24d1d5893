// libFuzzer target for sequences of calls of the compiler's functions; the input makes their
// choices.
#include <span>

#include "fuzzer.h"
#include "sequence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  stop_at(call_compiler(Choices(std::span(data, size))).problem);
  return 0;
}
