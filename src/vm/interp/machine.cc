#include "vm/interp/machine.h"

#include <cstring>
#include <utility>

#include "device/device.h"
#include "device/parallel.h"
#include "object/device_name.h"
#include "support/text.h"
#include "vm/interp/deadline.h"
#include "vm/interp/dispatch.h"

namespace tenon::vm {
namespace {

constexpr int kMaxNesting = 200;
// What a tail call's return may write past its frame.
constexpr size_t kStackSlack = 4096;
constexpr size_t kFirstRegisterBytes = size_t{64} << 10;
constexpr size_t kFirstFrames = 1024;
// Stack beyond this goes back to the system after a call.
constexpr size_t kKeptStack = size_t{1} << 20;

thread_local Machine* current_machine = nullptr;
thread_local int nesting = 0;

}  // namespace

Machine::Machine(Ref<Program> program, Limits limits) : Machine(Unowned(), program.get(), limits) {
  held_program_ = std::move(program);
}

Machine::Machine(Unowned, const Program* program, Limits limits)
    : program_(program), pool_(new Pool(kCpu)) {
  try {
    set_limits(limits);
  } catch (...) {
    pool_->close();
    throw;
  }
}

Machine::~Machine() {
  pool_->close();
}

Machine* Machine::current() {
  return current_machine;
}

void Machine::poll() {
  Dispatch::stop(*this);
}

bool Machine::may_write(const Tensor& tensor) const {
  if (tensor.read_only() || !(tensor.layout() & LayoutWord::kPooled)) return false;
  const auto* storage = tensor->owner.as<StorageObj>();
  return storage && pool_->is_of_call(*storage);
}

Any Machine::take(const Object* function, const AnyView* args, int32_t i) {
  AnyView* reg = current_machine == this ? Dispatch::last_use(*this, function, i) : nullptr;
  if (!reg || reg->type_index != args[i].type_index || reg->v.bits != args[i].v.bits) {
    return Any(args[i]);
  }
  return Any::adopt(std::exchange(*reg, AnyView()));
}

// An argument as a register may hold it: ours, compact, aligned to its elements, and read-only, for
// it is the caller's. What the call itself has allocated stays the call's.
Any Machine::prepare(const AnyView& argument) {
  Any value = admit(argument);
  if (value.type_index != TypeIndex::Tensor) return value;
  const Tensor& t = payload_as<Tensor>(value);
  auto address = reinterpret_cast<uintptr_t>(t.data());
  bool aligned = address % static_cast<uintptr_t>(std::max<int64_t>(t.dtype().bytes(), 1)) == 0;
  if (t.compact() && aligned) {
    return t.read_only() || may_write(t) ? value : Any(t.as_read_only());
  }
  Tensor copy = allocate_tensor(t.shape(), t.dtype());
  t.copy_elements(copy.data());
  return Any(std::move(copy));
}

Ref<StorageObj> Machine::allocate(size_t bytes, size_t alignment) {
  return current_machine == this ? allocate_storage(bytes, alignment) : Ref<StorageObj>();
}

void Machine::set_limits(const Limits& limits) {
  if (is_running()) throw Error(ErrorKind::Usage, "a machine's limits can't change while it runs");
  Limits checked = limits;
  checked.depth = std::max(checked.depth, 1u);
  checked.stack_bytes = std::max(checked.stack_bytes, kFirstRegisterBytes);
  if (checked.fuel < 0) checked.fuel = 0;
  bool reserve_again = !registers_.begin() || checked.depth != limits_.depth ||
                       checked.stack_bytes != limits_.stack_bytes;
  if (reserve_again) reserve(checked);
  limits_ = checked;
  pool_->set_poison(checked.poison);
}

void Machine::reserve(const Limits& limits) {
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
  base_ = top_ = reinterpret_cast<AnyView*>(registers_.begin());
  frame_ = reinterpret_cast<Frame*>(frames_.end());
  pc_ = nullptr;
  register_limit_ = reinterpret_cast<AnyView*>(registers_.begin() + kFirstRegisterBytes);
  frame_limit_ =
      reinterpret_cast<Frame*>(frames_.end()) - std::min<size_t>(kFirstFrames, limits.depth);
}

size_t Machine::stack_committed() const {
  return static_cast<size_t>(reinterpret_cast<char*>(register_limit_) - registers_.begin()) +
         static_cast<size_t>(frames_.end() - reinterpret_cast<char*>(frame_limit_));
}

void Machine::set_instrument(Instrument instrument) {
  if (is_running())
    throw Error(ErrorKind::Usage, "a machine's instrument can't change while it runs");
  instrument_ = std::move(instrument);
}

bool Machine::cancel() {
  // In one step with the question whether a call runs, so that it hits none that begins later.
  uint32_t now = attention_.load(std::memory_order_relaxed);
  while (!(now & kIdle)) {
    if (attention_.compare_exchange_weak(now, now | kCancelled, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

MachineStats Machine::stats() const {
  MachineStats s;
  s.peak_memory = pool_->peak();
  s.cached_memory = pool_->cached();
  return s;
}

Any Machine::call(std::string_view function, std::span<const AnyView> args) {
  return call(program_->exported(function), args);
}

Any Machine::call(uint32_t function_index, std::span<const AnyView> args) {
  const FunctionCode& code = program_->code(function_index);
  const FunctionUnit& unit = program_->function_unit(code);
  if (args.size() != unit.params.size()) {
    std::vector<std::string> wanted;
    for (const Param& p : unit.params) wanted.push_back(printable(cat(p.name, ": ", p.type)));
    throw Error(ErrorKind::Usage, cat("function '", printable(unit.name),
                                      "' is called with the wrong "
                                      "number of arguments"))
        .found(cat(args.size()))
        .expected(cat(unit.params.size(), " (", join(wanted, ", "), ")"));
  }
  return call_code(code, {}, args);
}

// Makes a machine this thread's current one.
class Machine::Current {
 public:
  explicit Current(Machine* machine)
      : outer_(std::exchange(current_machine, machine)), scope_(machine) {}
  ~Current() { current_machine = outer_; }

 private:
  Machine* outer_;
  Scope scope_;
};

Any Machine::call_code(const FunctionCode& code, std::span<const Any> captures,
                       std::span<const AnyView> args) {
  if (captures.size() + args.size() != static_cast<size_t>(code.params)) {
    throw Error(ErrorKind::Usage, "a closure is called with the wrong number of arguments")
        .found(cat(args.size()))
        .expected(cat(static_cast<size_t>(code.params) - captures.size(), " for '",
                      printable(program_->function_unit(code).name), "'"));
  }
  if (nesting >= kMaxNesting) {
    throw Error(ErrorKind::Runtime, "calls between the host and programs are nested too deep")
        .expected(cat("at most ", kMaxNesting, " within each other"))
        .help("let the program call its own functions directly");
  }
  struct Nest {
    Nest() { ++nesting; }
    ~Nest() { --nesting; }
  } nest;
  if (thread_.load(std::memory_order_relaxed) == Pool::this_thread()) {
    Current current(this);
    return enter(code, captures, args);
  }
  uint32_t idle = kIdle;
  if (!attention_.compare_exchange_strong(idle, instrument_ ? uint32_t{kInstrumented} : 0u,
                                          std::memory_order_acquire)) {
    throw Error(ErrorKind::Usage, "this machine runs a call on another thread")
        .help("make a machine for each thread; they share the program");
  }
  struct Running {
    Machine& m;
    explicit Running(Machine& machine) : m(machine) { m.begin_call(); }
    ~Running() { m.end_call(); }
  } running(*this);
  Current current(this);
  ObjectBudget objects(limits_.memory ? this : nullptr);
  std::optional<Deadline> deadline;
  using Clock = Deadline::Clock;
  if (limits_.deadline < std::chrono::hours(24 * 365)) {
    auto delay = std::chrono::duration_cast<Clock::duration>(
        std::max(limits_.deadline, std::chrono::nanoseconds(0)));
    deadline.emplace(&attention_, kExpired, Clock::now() + delay);
  }
  std::optional<ThreadsScope> threads;
  if (limits_.threads > 0) threads.emplace(limits_.threads);
  return enter(code, captures, args);
}

void Machine::begin_call() {
  thread_.store(Pool::this_thread(), std::memory_order_relaxed);
  pool_->set_owner(Pool::this_thread());
  pool_->begin_call();
  pool_->set_cap(limits_.memory, stack_committed());
  fuel_ = limits_.fuel;
}

void Machine::end_call() noexcept {
  thread_.store(nullptr, std::memory_order_relaxed);
  pool_->set_owner(nullptr);
  if (stack_committed() > kKeptStack) {
    registers_.discard(kFirstRegisterBytes);
    register_limit_ = reinterpret_cast<AnyView*>(registers_.begin() + kFirstRegisterBytes);
    size_t frames = std::min<size_t>(kFirstFrames, limits_.depth);
    frames_.discard_before(frames_.size() - frames * sizeof(Frame));
    frame_limit_ = reinterpret_cast<Frame*>(frames_.end()) - frames;
  }
  attention_.store(kIdle, std::memory_order_release);
}

Any Machine::enter(const FunctionCode& code, std::span<const Any> captures,
                   std::span<const AnyView> args) {
  struct Saved {
    Machine& m;
    const Op* pc = m.pc_;
    AnyView* base = m.base_;
    AnyView* top = m.top_;
    Frame* frame = m.frame_;
    ~Saved() {
      m.pc_ = pc;
      m.base_ = base;
      m.top_ = top;
      m.frame_ = frame;
    }
  } saved{*this};
  AnyView* const start = top_;
  AnyView* const base = start + 1;  // the entry's frame holds the result
  Frame* const record = frame_ - 1;
  --fuel_;
  if (base + code.registers > register_limit_ || record < frame_limit_ || fuel_ < 0) {
    Dispatch::grow(*this, base + code.registers, record);
  }
  // Owned before anything is placed: preparing an argument may fail.
  AnyView* to = base;
  top_ = base;
  try {
    for (const Any& capture : captures) {
      *to++ = Any(capture).leak();
      top_ = to;
    }
    for (const AnyView& argument : args) {
      *to++ = prepare(argument).leak();
      top_ = to;
    }
    record->pc = program_->ops_.data();
    record->base = start;
    frame_ = record;
    base_ = base;
    top_ = base + code.registers;
    pc_ = code.entry;
    Dispatch::stop(*this);
    Dispatch::run(*this);
  } catch (const Error& e) {
    Error error = e;
    if (frame_ <= record) add_backtrace(error, record);
    unwind(start);
    throw error;
  } catch (const std::bad_alloc&) {
    Error error(ErrorKind::Runtime, "out of memory");
    add_backtrace(error, record);
    unwind(start);
    throw error;
  } catch (...) {
    unwind(start);
    throw;
  }
  Any result = Any::adopt(*start);
  *start = AnyView();
  return result;
}

void Machine::unwind(AnyView* start) noexcept {
  AnyView* const end = top_;
  for (AnyView* r = start; r < end; ++r) {
    AnyView old = *r;
    *r = AnyView();
    if (old.is_object()) release(old.v.object);
  }
}

namespace {

// A run of frames that repeat: `length` frames, `times` after each other.
struct Cycle {
  size_t length = 1, times = 1;
  size_t frames() const { return length * times; }
};

// The cycle that covers the most of the `depth` frames from `first` on, where frame i stands at
// op(i); one frame, once, where nothing repeats often enough for a line that says so.
template <class F>
Cycle cycle_from(size_t first, size_t depth, const F& op) {
  constexpr size_t kLongest = 8, kFewestTimes = 3;
  Cycle best;
  for (size_t length = 1; length <= kLongest; ++length) {
    size_t i = first;
    while (i + length < depth && op(i) == op(i + length)) ++i;
    const Cycle found = {length, 1 + (i - first) / length};
    if (found.times >= kFewestTimes && found.frames() > best.frames()) best = found;
  }
  return best;
}

}  // namespace

void Machine::add_backtrace(Error& error, const Frame* entry) const {
  constexpr size_t kShown = 24;
  const size_t depth = 1 + static_cast<size_t>(std::max<ptrdiff_t>(entry - frame_, 0));
  auto op = [&](size_t i) { return i == 0 ? pc_ : frame_[i - 1].pc; };
  size_t i = 0, shown = 0;
  while (i < depth && shown < kShown) {
    const Cycle cycle = cycle_from(i, depth, op);
    for (size_t k = 0; k < cycle.length; ++k) error.frame(program_->frame_text(op(i + k)));
    if (cycle.times > 1) {
      error.frame(
          cat(cycle.length == 1 ? "the frame above" : cat("the ", cycle.length, " frames above"),
              ", ", cycle.times - 1, " times more"));
    }
    shown += cycle.length + (cycle.times > 1 ? 1 : 0);
    i += cycle.frames();
  }
  if (i < depth) error.frame(cat(depth - i, depth - i == 1 ? " frame more" : " frames more"));
}

Pool& Machine::pool_on(DLDevice device) const {
  if (device.device_type != kCpu.device_type || device.device_id != kCpu.device_id) {
    throw Error(ErrorKind::Unsupported, "this machine can't allocate on the device")
        .found(tenon::to_text(device))
        .expected(tenon::to_text(kCpu));
  }
  return *pool_;
}

Ref<StorageObj> Machine::allocate_storage(size_t bytes, size_t alignment, DLDevice device) {
  return Ref<StorageObj>::adopt(pool_on(device).allocate(bytes, alignment));
}

Tensor Machine::allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device) {
  auto bytes = byte_count(shape, dtype);
  if (!bytes) {
    throw Error(ErrorKind::Runtime, "a tensor's size is negative or overflows")
        .found(tensor_type_text(dtype, shape));
  }
  return Tensor::over(allocate_storage(static_cast<size_t>(*bytes), kDataAlignment, device), 0,
                      dtype, shape);
}

}  // namespace tenon::vm
