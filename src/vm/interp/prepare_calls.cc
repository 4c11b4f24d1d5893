// Preparation of a program's calls.
#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "device/device.h"
#include "device/preparation.h"
#include "vm/interp/machine.h"

namespace tenon::vm {
namespace {

// Ends a loop whose condition kernels would compute.
constexpr int64_t kMostFuel = 1 << 16;

// Zeros for a parameter; None unless it is a tensor of known dimensions.
Any argument_for(const SignatureType& type) {
  if (type.kind != SignatureType::Kind::Tensor || !type.dims_known) return {};
  std::vector<int64_t> shape;
  for (const SignatureDim& dim : type.dims) {
    if (!dim.is_constant()) return {};
    shape.push_back(dim.value);
  }
  Tensor zeros = allocate_tensor(shape, type.dtype);
  std::memset(zeros.data(), 0, static_cast<size_t>(zeros.bytes()));
  return Any(std::move(zeros));
}

}  // namespace

[[gnu::cold]] void Machine::prepare_calls() noexcept {
  Limits limits = account_->limits;
  limits.fuel = std::min(limits.fuel, kMostFuel);
  const PreparationScope scope;
  preparing_ = true;
  for (const FunctionUnit& unit : home_->unit().functions) {
    if (!unit.exported) continue;
    try {
      std::vector<Any> zeros;
      for (const Param& param : unit.params) {
        Any argument = argument_for(param.type);
        if (argument.is_none()) break;
        zeros.push_back(std::move(argument));
      }
      if (zeros.size() != unit.params.size()) continue;
      const std::vector<AnyView> args(zeros.begin(), zeros.end());
      const auto index = static_cast<uint32_t>(&unit - home_->unit().functions.data());
      call_code(*home_, home_->code(index), {}, args, *Account::of(limits, calls_));
    } catch (const std::exception&) {
      // The first call reports it, if it occurs there.
    }
  }
  preparing_ = false;
}

}  // namespace tenon::vm
