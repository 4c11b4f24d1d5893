// Preparation of a program's calls.
#include <cstring>

#include "device/device.h"
#include "device/preparation.h"
#include "vm/interp/machine.h"

namespace tenon::vm {
namespace {

// Arguments.
struct Zeros {
  static constexpr size_t kMost = 64;

  AnyView values[kMost];  // owned
  size_t count = 0;

  ~Zeros() {
    while (count > 0) release(values[--count].v.object);
  }

  // Adds zeros for a parameter; false unless it is a tensor of known dimensions, and there is room.
  bool add(const SignatureType& type) {
    int64_t shape[kMaxRank];
    size_t rank = 0;
    if (count == kMost || type.kind != SignatureType::Kind::Tensor || !type.dims_known)
      return false;
    for (const SignatureDim& dim : type.dims) {
      if (!dim.is_constant() || rank == kMaxRank) return false;
      shape[rank++] = dim.value;
    }
    Tensor tensor = tenon::allocate_tensor({shape, rank}, type.dtype);
    std::memset(tensor.data(), 0, static_cast<size_t>(tensor.bytes()));
    values[count++] = Any(std::move(tensor)).leak();
    return true;
  }
};

}  // namespace

[[gnu::cold]] void Machine::prepare_call(const FunctionCode& code) {
  Zeros zeros;
  for (const Param& param : home_->function_unit(code).params) {
    if (!zeros.add(param.type)) return;
  }
  call_code(*home_, code, {}, {zeros.values, zeros.count}, *account_);
}

[[gnu::cold]] void Machine::prepare_calls() {
  preparing_ = true;
  set_preparing(true);
  for (const FunctionCode& code : home_->decoded().functions) {
    try {
      if (home_->function_unit(code).exported) prepare_call(code);
    } catch (...) {
      // The first call reports it, if it occurs there.
    }
  }
  set_preparing(false);
  preparing_ = false;
}

}  // namespace tenon::vm
