// Preparation of a program's calls.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <vector>

#include "device/preparation.h"
#include "object/file_bytes.h"
#include "vm/interp/dispatch.h"

namespace tenon::vm {
namespace {

// What all of it may take at most, since nobody has called anything yet; the machine's own limits
// hold, too. Fuel ends loops, whose conditions kernels would compute.
constexpr int64_t kFuel = 1 << 13, kLeastFuelOfAFunction = 64;
constexpr size_t kMemory = size_t{1} << 30;
constexpr std::chrono::seconds kTime{10};

// Read-only zeros, which take address space instead of memory.
struct Zeros : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;

  explicit Zeros(size_t bytes)
      : data(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
        size(bytes) {
    if (data == MAP_FAILED) throw std::bad_alloc();
  }
  Zeros(const Zeros&) = delete;
  ~Zeros() { munmap(data, size); }

  void* const data;
  const size_t size;
};

// Zeros for a parameter; None unless it is a tensor of known dimensions.
Any argument_for(const SignatureType& type) {
  int64_t shape[kMaxRank];
  int64_t* end = shape;
  if (type.kind != SignatureType::Kind::Tensor || !type.dims_known ||
      type.dtype == string_elements) {
    return {};
  }
  int64_t bytes = type.dtype.bytes();
  for (const SignatureDim& dim : type.dims) {
    if (!dim.is_constant() || end == std::end(shape)) return {};
    *end++ = dim.value;
    if (__builtin_mul_overflow(bytes, dim.value, &bytes)) return {};
  }
  auto zeros = make<Zeros>(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  void* const data = zeros->data;
  return Any(Tensor::view(data, {shape, end}, type.dtype, std::move(zeros), /*read_only=*/true));
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

[[gnu::cold]] void Machine::prepare_call(const FunctionCode& code, const Account& account) {
  std::vector<Any> zeros;
  for (const Param& param : home_->function_unit(code).params) {
    zeros.push_back(argument_for(param.type));
    if (zeros.back().is_none()) return;
  }
  const AnyView* const first = zeros.data();
  call_code(*home_, code, {}, {first, zeros.size()}, account);
}

[[gnu::cold]] void Machine::prepare_calls() {
  using Clock = std::chrono::steady_clock;
  const PreparationScope scope;
  preparing_ = true;
  const auto& functions = home_->decoded().functions;
  Limits limits = account_->limits;
  limits.memory = stricter(limits.memory, kMemory);
  limits.fuel = std::min(limits.fuel, std::max(kLeastFuelOfAFunction,
                                               kFuel / static_cast<int64_t>(functions.size() + 1)));
  const auto start = Clock::now();
  for (const FunctionCode& code : functions) {
    const std::chrono::nanoseconds passed = Clock::now() - start;
    if (passed > std::min<std::chrono::nanoseconds>(kTime, account_->limits.deadline)) break;
    limits.deadline = account_->limits.deadline - passed;
    try {
      if (home_->function_unit(code).exported) prepare_call(code, *Account::of(limits, calls_));
    } catch (...) {
      // The first call reports it, if it occurs there.
    }
  }
  preparing_ = false;
}

}  // namespace tenon::vm
