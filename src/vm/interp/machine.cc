#include "vm/interp/machine.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "device/device.h"
#include "object/device_name.h"
#include "support/bulk.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/outputs.h"
#include "vm/interp/values.h"

namespace tenon::vm {
namespace {

// What a tail call's return may write past its frame.
constexpr size_t kStackSlack = 4096;
constexpr size_t kFirstFrames = 1024;
// Stack beyond this goes back to the system after a call.
constexpr size_t kKeptStack = size_t{1} << 20;

// Whether kernels can read the elements where they are.
bool is_usable(const Tensor& t) {
  return t.compact() && t.aligned();
}

}  // namespace

[[gnu::cold]] Machine::Machine(Ref<Program> program, Limits limits, MachineOptions options)
    : Machine(Unowned(), program.get()) {
  held_program_ = std::move(program);
  set_limits(limits);
  pool_->set_poison(options.poison);
  pool_->set_naive(options.naive);
  if (home_->trusted()) inter_op_ = options.inter_op;
  if (home_->begins_preparing(limits.threads)) prepare_calls();
}

[[gnu::cold]] Machine::Machine(Unowned, const Program* program)
    : MachineState(kIdle, program),
      home_(program),
      calls_(make<RunningCalls>()),
      pool_(new Pool(kCpu)) {}

[[gnu::cold]] Machine::~Machine() {
  pool_->close();
}

[[gnu::cold]] void Machine::poll() {
  Dispatch::stop_if_asked(*this);
}

bool Machine::may_write(const Tensor& tensor) const {
  if (tensor.read_only() || !(tensor.layout() & LayoutWord::kPooled)) return false;
  const auto* storage = tensor->owner.as<StorageObj>();
  return storage && pool_->is_of_call(*storage);
}

void Machine::protect_tensor(Any* value) {
  const Tensor& t = payload_as<Tensor>(*value);
  if (is_usable(t)) {
    if (!t.read_only() && !may_write(t)) *value = Any(t.as_read_only());
    return;
  }
  Tensor copy = allocate_tensor(t.shape(), t.dtype());
  t.copy_elements(copy.data());
  *value = Any(std::move(copy));
}

[[gnu::cold]] std::optional<int> Machine::fill_byte() const {
  if (pool_->poisons()) return kPoison;
  // What kernels would have written reads as zeros while preparing, and memory that later calls use
  // is mapped.
  return running_->trusted() && !preparing_ ? std::nullopt : std::optional(0);
}

[[gnu::cold]] Any Machine::take(const Object* function, const AnyView* args, int32_t i) {
  AnyView* reg = current() == this ? Dispatch::last_use(*this, function, i) : nullptr;
  if (!reg || reg->type_index != args[i].type_index || reg->v.bits != args[i].v.bits) {
    return Any(args[i]);
  }
  return Any::adopt(std::exchange(*reg, AnyView()));
}

Any Machine::admitted(const AnyView& argument) {
  if (argument.type_index == TypeIndex::Tensor && argument.v.object) [[likely]] {
    const Tensor& t = payload_as<Tensor>(argument);
    if (t->is_ours() && is_usable(t) && t.read_only()) return Any(argument);
  }
  Any value = admit(argument);
  protect(&value);
  return value;
}

Ref<StorageObj> Machine::allocate(size_t bytes, size_t alignment) {
  return current() == this ? allocate_storage(bytes, alignment) : Ref<StorageObj>();
}

[[gnu::cold]] Limits Machine::checked(Limits limits) {
  limits.depth = std::max(limits.depth, 1u);
  limits.stack_bytes = std::max(limits.stack_bytes, Limits::kLeastStackBytes);
  limits.fuel = std::max<int64_t>(limits.fuel, 0);
  return limits;
}

[[gnu::cold]] void Machine::set_limits(const Limits& limits) {
  if (is_running()) throw Error(ErrorKind::Usage, "a machine's limits can't change while it runs");
  work_for(Account::of(checked(limits), calls_));
}

[[gnu::cold]] void Machine::work_for(Ref<const Account> account) {
  const Limits& limits = account->limits;
  if (limits.depth != depth_ || limits.stack_bytes != stack_bytes_) reserve(limits);
  account_ = std::move(account);
}

[[gnu::cold]] void Machine::reserve(const Limits& limits) {
  if (limits.stack_bytes > kAddressSpace) {  // and what is added to it can't overflow
    throw Error(ErrorKind::Runtime,
                cat("no address space for a stack of ", limits.stack_bytes, " bytes"));
  }
  // Both before anything changes: where the system refuses one, the machine keeps its old stack.
  Reservation registers(limits.stack_bytes + kStackSlack);
  // Two frames more: the entry's own, and the one that is tried past the limit.
  Reservation frames((size_t{limits.depth} + 2) * sizeof(Frame));
  registers_ = std::move(registers);
  frames_ = std::move(frames);
  depth_ = limits.depth;
  stack_bytes_ = limits.stack_bytes;
  base_ = top_ = reinterpret_cast<AnyView*>(registers_.begin());
  frame_ = reinterpret_cast<Frame*>(frames_.end());
  pc_ = nullptr;
  register_limit_ = reinterpret_cast<AnyView*>(registers_.begin() + Limits::kLeastStackBytes);
  frame_limit_ =
      reinterpret_cast<Frame*>(frames_.end()) - std::min<size_t>(kFirstFrames, limits.depth);
  in_force_.registers_end = reinterpret_cast<AnyView*>(registers_.begin() + stack_bytes_);
  in_force_.frames_begin = reinterpret_cast<Frame*>(frames_.end()) - depth_;
}

size_t Machine::stack_committed() const {
  return static_cast<size_t>(reinterpret_cast<char*>(register_limit_) - registers_.begin()) +
         static_cast<size_t>(frames_.end() - reinterpret_cast<char*>(frame_limit_));
}

[[gnu::cold]] void Machine::set_instrument(Instrument instrument) {
  if (is_running())
    throw Error(ErrorKind::Usage, "a machine's instrument can't change while it runs");
  instrument_ = std::move(instrument);
}

[[gnu::cold]] void Machine::stop_with(const Error& error) {
  const Error* none = nullptr;
  auto* const copy = new Error(error);
  if (!host_error_.compare_exchange_strong(none, copy, std::memory_order_acq_rel)) delete copy;
  attention_.fetch_or(kStoppedByHost, std::memory_order_release);
}

[[gnu::cold]] void Machine::forget_host_error() {
  delete host_error_.exchange(nullptr, std::memory_order_relaxed);
}

[[gnu::cold]] bool Machine::demand(Attention bit) {
  // In one step with the question whether a call runs, so that it hits none that begins later.
  uint32_t now = attention_.load(std::memory_order_relaxed);
  bool runs = false;
  while (!(now & kIdle) && !runs) {
    runs = attention_.compare_exchange_weak(now, now | bit, std::memory_order_relaxed);
  }
  return runs;
}

[[gnu::cold]] bool Machine::cancel() {
  const bool runs = demand(kCancelled);
  // Must follow: a call within that one which registers later reads the word itself (Bounds).
  return calls_->interrupt() || runs;
}

[[gnu::cold]] void Machine::request_check() {
  demand(kAsked);
  calls_->request_check();
}

// Returns what a deep call committed to the system.
void Machine::release_stack() noexcept {
  if (stack_committed() <= kKeptStack) return;
  registers_.discard(Limits::kLeastStackBytes);
  register_limit_ = reinterpret_cast<AnyView*>(registers_.begin() + Limits::kLeastStackBytes);
  size_t frames = std::min<size_t>(kFirstFrames, depth_);
  frames_.discard_before(frames_.size() - frames * sizeof(Frame));
  frame_limit_ = reinterpret_cast<Frame*>(frames_.end()) - frames;
}

Pool& Machine::pool_on(DLDevice device) const {
  if (device.device_type != kCpu.device_type || device.device_id != kCpu.device_id) {
    throw_failure(ErrorKind::Unsupported, "this machine can't allocate on the device",
                  tenon::to_text(device), tenon::to_text(kCpu));
  }
  return *pool_;
}

Ref<StorageObj> Machine::allocate_storage(size_t bytes, size_t alignment, DLDevice device) {
  auto storage = Ref<StorageObj>::adopt(pool_on(device).allocate(bytes, alignment));
  if (auto byte = fill_byte()) [[unlikely]]
    fill_memory(storage->data, *byte, bytes);
  return storage;
}

Tensor Machine::allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device) {
  auto bytes = byte_count(shape, dtype);
  if (!bytes) throw impossible_tensor(tensor_type_text(dtype, shape));
  return Tensor::over(allocate_storage(static_cast<size_t>(*bytes), kDataAlignment, device), 0,
                      dtype, shape);
}

Tensor Machine::take_output(int64_t index, DataType dtype, std::span<const int64_t> shape) {
  Tensor taken = outputs_->take(frame_, index, dtype, shape);
  if (auto byte = fill_byte(); byte && taken) [[unlikely]]
    fill_memory(taken.data(), *byte, static_cast<size_t>(taken.bytes()));
  return taken;
}

}  // namespace tenon::vm
