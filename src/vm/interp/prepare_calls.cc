// Preparation of a program's calls.
#include <cstring>

#include "device/device.h"
#include "device/preparation.h"
#include "object/file_bytes.h"
#include "vm/interp/dispatch.h"

namespace tenon::vm {
namespace {

constexpr size_t kMostArguments = 64;

// Zeros for a parameter; None unless it is a tensor of known dimensions.
Any argument_for(const SignatureType& type) {
  int64_t shape[kMaxRank];
  int64_t* end = shape;
  if (type.kind != SignatureType::Kind::Tensor || !type.dims_known ||
      type.dtype == string_elements) {
    return {};
  }
  for (const SignatureDim& dim : type.dims) {
    if (!dim.is_constant() || end == std::end(shape)) return {};
    *end++ = dim.value;
  }
  Tensor zeros = tenon::allocate_tensor({shape, end}, type.dtype);
  std::memset(zeros.data(), 0, static_cast<size_t>(zeros.bytes()));
  return Any(std::move(zeros));
}

}  // namespace

// While a machine prepares, the program's functions run, and those that prepare. The constants that
// others read are mapped for the first call.
[[gnu::cold]] bool Dispatch::skips_in_preparation(Machine& m, const Op& op,
                                                  std::span<const AnyView> args) {
  if (m.running_ != m.home_ || !m.running_->decoded().locate(&op, nullptr)) return false;
  const CallOperands& call = op.as<OpClass::Call>();
  if (call.callee) return false;
  if (!call.slot)
    return !ClosureObj::of_program(value_of(call.args[kClosure], m.base_), m.running_);
  const PackedTarget* target = call.slot->target.load(std::memory_order_acquire);
  if (target && target->prepares) return false;
  for (const AnyView& arg : args) {
    if (arg.type_index != TypeIndex::Tensor) continue;
    if (const auto& tensor = payload_as<Tensor>(arg); tensor->is_ours()) map_pages(tensor);
  }
  return true;
}

[[gnu::cold]] void Machine::prepare_call(const FunctionCode& code) {
  Any zeros[kMostArguments];
  Any* end = zeros;
  for (const Param& param : home_->function_unit(code).params) {
    if (end == std::end(zeros)) return;
    *end = argument_for(param.type);
    if (end++->is_none()) return;
  }
  const AnyView* const first = zeros;
  call_code(*home_, code, {}, {first, static_cast<const AnyView*>(end)}, *account_);
}

[[gnu::cold]] void Machine::prepare_calls() {
  const PreparationScope scope;
  preparing_ = true;
  for (const FunctionCode& code : home_->decoded().functions) {
    try {
      if (home_->function_unit(code).exported) prepare_call(code);
    } catch (...) {
      // The first call reports it, if it occurs there.
    }
  }
  preparing_ = false;
}

}  // namespace tenon::vm
