// libFuzzer target for textual programs: parses, checks, prints, parses again and lowers them.
#include "fuzzer.h"
#include "graph_target.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tenon::driver::initialise();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  stop_at(run_graph_text({reinterpret_cast<const char*>(data), size}, {}));
  return 0;
}
