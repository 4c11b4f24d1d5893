// The packed functions of a unit, each name once.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "vm/isa/unit.h"

namespace tenon::codegen {

class PackedTable {
 public:
  explicit PackedTable(vm::Unit* unit) : unit_(unit) {}
  uint32_t kernel(std::string_view name);
  // Calls may give one function different effects: the strongest goes into the file.
  uint32_t function(std::string_view name, Effect effect);

 private:
  using Indices = std::unordered_map<std::string, uint32_t>;
  uint32_t index(Indices* indices, std::string_view name, bool kernel);

  vm::Unit* unit_;
  Indices kernels_, functions_;
};

}  // namespace tenon::codegen
