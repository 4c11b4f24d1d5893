#include "codegen/bytecode/constant_pool.h"

#include "object/reflect.h"
#include "object/tensor.h"

namespace tenon::codegen {

uint32_t ConstantPool::of(const graph::Constant& constant) {
  return of_value(constant.value, constant.name);
}

uint32_t ConstantPool::of_value(const Any& value, const String& name) {
  const auto add = [&] { return unit_->add_constant(value, std::string(name)); };
  if (auto tensor = value.try_as<Tensor>()) {
    auto [it, fresh] = by_tensor_.try_emplace(tensor->get(), 0);
    if (fresh) it->second = add();
    return it->second;
  }
  const uint64_t hash = structural_hash(value);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Any& known = unit_->constants[it->second].value;
    if (known.type_index == value.type_index && structural_equal(known, value)) return it->second;
  }
  return by_hash_.emplace(hash, add())->second;
}

}  // namespace tenon::codegen
