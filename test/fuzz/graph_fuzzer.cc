// libFuzzer target for the semantics of programs: the first eight bytes are the number of a random
// graph (test/random), which is run in every way. A difference is a finding.
#include <cstring>

#include "check_program.h"
#include "driver/compile.h"
#include "fuzzer.h"
#include "graph_program.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tenon::driver::initialise();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  uint64_t seed = 0;
  if (size < sizeof seed) return 0;
  std::memcpy(&seed, data, sizeof seed);
  const graph::Module module = random_programs::graph_program(seed, seed % 2 == 0);
  const auto inputs =
      random_programs::random_inputs(**module->functions.find("main"), seed, /*special=*/false);
  fuzz::stop_at(random_programs::find_difference(module, inputs, {}));
  return 0;
}
