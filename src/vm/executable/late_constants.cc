#include "vm/executable/late_constants.h"

#include "support/error.h"
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
    throw Error(ErrorKind::Usage, cat("weight ", quoted(c.name), " doesn't fit ", name))
        .found(to_text(tensor))
        .expected(tensor_type_text(late.dtype, late.shape));
  }
  const auto address = reinterpret_cast<uintptr_t>(tensor.data());
  if (tensor.compact() && address % late.alignment == 0) return tensor;
  return aligned_copy(tensor, late.alignment);
}

}  // namespace

void bind_late_constants(Unit& unit, const WeightSource& source, const std::string& name) {
  std::vector<std::string> missing;
  for (Constant& c : unit.constants) {
    if (!c.late || !c.value.is_none()) continue;
    const Tensor tensor = source ? source(c.name) : Tensor();
    if (tensor) {
      c.value = Any(fitting(c, tensor, name).as_constant());
    } else {
      missing.push_back(printable(c.name));
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::Usage, cat(name, " needs weights that weren't provided"))
      .found(cat("no ", join_some(missing)))
      .help("load it with the weight file that it was compiled with");
}

}  // namespace tenon::vm
