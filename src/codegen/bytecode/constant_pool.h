// A unit's constants without duplicates: by value, except tensors, whose bytes may be gigabytes, by
// object.
#pragma once

#include <string>
#include <unordered_map>

#include "graph/ir/expr.h"
#include "vm/isa/unit.h"

namespace tenon::codegen {

class ConstantPool {
 public:
  explicit ConstantPool(vm::Unit* unit) : unit_(unit) {}
  uint32_t of(const graph::Constant& constant);
  uint32_t of_text(const std::string& text) { return of_value(Any(String(text))); }
  // `name` applies to a value's first use.
  uint32_t of_value(const Any& value, const String& name = "");

 private:
  vm::Unit* unit_;
  std::unordered_map<const Object*, uint32_t> by_tensor_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace tenon::codegen
