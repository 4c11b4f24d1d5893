// libFuzzer target for the graph section and the provenance of an executable: the input is the text
// of both.
#include "fuzzer.h"
#include "record_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::fuzz;
  tenon::vm::Unit unit;
  unit.graph = unit.provenance = {reinterpret_cast<const char*>(data), size};
  stop_at(read_records(unit).problem);
  return 0;
}
