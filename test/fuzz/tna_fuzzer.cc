// libFuzzer target for assembly: assembles it, prints it and assembles that to the same unit,
// writes and reads the unit, verifies and runs it.
#include "fuzzer.h"
#include "tnx_target.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

namespace {

using namespace tenon;

std::string run_assembly(std::string_view text) {
  try {
    vm::Unit unit = vm::assemble(text, "mutant.tna");
    const std::string once = vm::disassemble(unit);
    std::string twice;
    try {
      twice = vm::disassemble(vm::assemble(once, "once.tna"));
    } catch (const Error& e) {
      return cat("what was printed can't be assembled: ", e.render(), "\n", once);
    }
    if (twice != once) return cat("printed\n", once, "\nand assembled again it is\n", twice);
    return fuzz::run_tnx(vm::write_to_bytes(unit), true, {}).problem;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) return e.render();
  }
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::vm::register_builtins();
  fuzz::stop_at(run_assembly({reinterpret_cast<const char*>(data), size}));
  return 0;
}
