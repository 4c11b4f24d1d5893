#include "vm/executable/late_constants.h"

#include <map>
#include <utility>

#include "support/error.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/executable/file_format.h"

namespace tenon::vm {
namespace {

Tensor aligned_copy(const Tensor& tensor, uint32_t alignment) {
  const int64_t size[] = {tensor.bytes() + alignment};
  const Tensor block = Tensor::empty(size, u8);
  const auto address = reinterpret_cast<uintptr_t>(block.data());
  char* data = block.data_as<char>() + (align_up(address, alignment) - address);
  tensor.copy_elements(data);
  return Tensor::view(data, tensor.shape(), tensor.dtype(), block.ref());
}

Tensor fitting(const Constant& c, const Tensor& tensor, const std::string& name) {
  const LateTensor& late = *c.late;
  const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  if (tensor.dtype() != late.dtype || shape != late.shape ||
      tensor.device().device_type != kDLCPU) {
    throw_misuse(cat("weight ", quoted(c.name), " doesn't fit ", name), to_text(tensor),
                 tensor_type_text(late.dtype, late.shape));
  }
  const auto address = reinterpret_cast<uintptr_t>(tensor.data());
  if (tensor.compact() && address % late.alignment == 0) return tensor;
  return aligned_copy(tensor, late.alignment);
}

}  // namespace

void bind_late_constants(Unit& unit, const WeightSource& source, const std::string& name) {
  // Constants of one name share its tensor, or its copy, so they are bound in the order of their
  // names, and first the one that requires the highest alignment.
  std::multimap<std::pair<std::string_view, int64_t>, Constant*> late;
  for (Constant& c : unit.constants) {
    if (!c.late || !c.value.is_none()) continue;
    late.emplace(std::pair(std::string_view(c.name), -int64_t{c.late->alignment}), &c);
  }
  std::string_view bound;  // the name of `tensor`
  Tensor tensor;
  for (const auto& [key, c] : late) {
    if (!bound.data() || bound != key.first) {
      bound = key.first;
      tensor = source ? source(bound) : Tensor();
    }
    if (!tensor) continue;
    tensor = fitting(*c, tensor, name).as_constant();
    c->value = Any(tensor);
  }
  std::vector<std::string> missing;
  for (const Constant& c : unit.constants) {
    if (c.late && c.value.is_none()) missing.push_back(printable(c.name));
  }
  if (missing.empty()) return;
  throw failure(ErrorKind::Usage, cat(name, " needs weights that weren't provided"),
                cat("no ", join_some(missing)))
      .help(
          "give the weight file that it was compiled with: --weights FILE.safetensors, or in C the "
          "member `weights` of tenon_load_options");
}

}  // namespace tenon::vm
