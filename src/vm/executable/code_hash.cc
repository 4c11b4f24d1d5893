#include "vm/executable/code_hash.h"

#include "vm/executable/hash.h"

namespace tenon::vm {

uint64_t code_hash(std::span<const FunctionUnit> functions) {
  Xxh64 hash;
  for (const FunctionUnit& f : functions) {
    const uint64_t sizes[] = {f.code.size(), f.register_count, f.params.size()};
    hash.update({reinterpret_cast<const char*>(sizes), sizeof sizes});
    hash.update({reinterpret_cast<const char*>(f.code.data()), f.code.size() * sizeof(Word)});
  }
  return hash.digest();
}

}  // namespace tenon::vm
