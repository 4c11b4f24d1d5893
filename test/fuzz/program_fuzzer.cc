// libFuzzer target for programs generated from the table of instructions; the input makes the
// generator's choices.
#include "fuzzer.h"
#include "program_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  tenon::vm::register_builtins();
  Choices choices(std::span(data, size));
  stop_at(run_program(choices).problem);
  return 0;
}
