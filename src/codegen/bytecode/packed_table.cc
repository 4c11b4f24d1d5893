#include "codegen/bytecode/packed_table.h"

#include <algorithm>

namespace tenon::codegen {

uint32_t PackedTable::index(Indices* indices, std::string_view name, bool kernel) {
  std::vector<vm::PackedName>& packed = unit_->packed;
  const auto [it, fresh] = indices->try_emplace(std::string(name), packed.size());
  if (fresh) packed.push_back({it->first, kernel, Effect::Pure});
  return it->second;
}

uint32_t PackedTable::kernel(std::string_view name) {
  return index(&kernels_, name, true);
}

uint32_t PackedTable::function(std::string_view name, Effect effect) {
  const uint32_t i = index(&functions_, name, false);
  Effect& strongest = unit_->packed[i].effect;
  strongest = std::max(strongest, effect);
  return i;
}

}  // namespace tenon::codegen
