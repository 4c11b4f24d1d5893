#include "vm/interp/machine.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "device/bulk.h"
#include "device/device.h"
#include "device/parallel.h"
#include "object/device_name.h"
#include "support/native_stack.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/match_result.h"

namespace tenon::vm {
namespace {

constexpr int kMaxNesting = 200;
// What a tail call's return may write past its frame.
constexpr size_t kStackSlack = 4096;
constexpr size_t kFirstRegisterBytes = size_t{64} << 10;
constexpr size_t kFirstFrames = 1024;
// Stack beyond this goes back to the system after a call.
constexpr size_t kKeptStack = size_t{1} << 20;

constinit thread_local Machine* current_machine = nullptr;
constinit thread_local int nesting = 0;
// What the native stack must have left for a call within another one.
constexpr size_t kNestedStack = size_t{64} << 10;

// Copies a tensor's elements, strided or unaligned, to `to` without gaps. A large tensor is halved
// along its first axis of several indices, so that the call can be stopped between the parts.
void copy_halves(DLTensor t, char* to) {
  const std::span<int64_t> shape(t.shape, static_cast<size_t>(t.ndim));
  const int64_t bytes = byte_count(shape, t.dtype).value_or(0);
  if (static_cast<size_t>(bytes) <= kBulkPart) {
    DLManagedTensor borrowed{};
    borrowed.dl_tensor = t;
    return Tensor::from_dlpack(&borrowed).copy_elements(to);
  }
  tenon::poll();
  const auto axis = static_cast<size_t>(
      std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n > 1; }) - shape.begin());
  const int64_t whole = shape[axis], first = whole / 2;
  const int64_t step = t.strides[axis] * DataType(t.dtype).bytes();
  shape[axis] = first;
  copy_halves(t, to);
  shape[axis] = whole - first;
  t.byte_offset += static_cast<uint64_t>(first * step);
  copy_halves(t, to + bytes / whole * first);
  shape[axis] = whole;
}

// A deadline from now on; the far future where there is none.
Deadline::Clock::time_point end_of(std::chrono::nanoseconds deadline) {
  using Clock = Deadline::Clock;
  if (deadline >= std::chrono::hours(24 * 365)) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::max(deadline, std::chrono::nanoseconds(0)));
}

}  // namespace

Machine::Machine(Ref<Program> program, Limits limits, MachineOptions options)
    : Machine(Unowned(), program.get()) {
  held_program_ = std::move(program);
  set_limits(limits);
  pool_->set_poison(options.poison);
}

Machine::Machine(Unowned, const Program* program)
    : home_(program),
      program_(program),
      account_(Account::of(Limits())),
      calls_(account_->calls),
      pool_(new Pool(kCpu)) {}

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

void Machine::protect_tensor(Any* value) const {
  const Tensor& t = payload_as<Tensor>(*value);
  if (!t.read_only() && !may_write(t)) *value = Any(t.as_read_only());
}

std::optional<int> Machine::fill_byte() const {
  if (pool_->poisons()) return kPoison;
  return program_->trusted() ? std::nullopt : std::optional(0);
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
  std::vector<int64_t> shape(t.shape().begin(), t.shape().end());
  DLTensor all = t.dl();
  all.shape = shape.data();
  copy_halves(all, copy.data_as<char>());
  return Any(std::move(copy));
}

Ref<StorageObj> Machine::allocate(size_t bytes, size_t alignment) {
  return current_machine == this ? allocate_storage(bytes, alignment) : Ref<StorageObj>();
}

Limits Machine::checked(Limits limits) {
  limits.depth = std::max(limits.depth, 1u);
  limits.stack_bytes = std::max(limits.stack_bytes, kFirstRegisterBytes);
  limits.fuel = std::max<int64_t>(limits.fuel, 0);
  return limits;
}

void Machine::set_limits(const Limits& limits) {
  if (is_running()) throw Error(ErrorKind::Usage, "a machine's limits can't change while it runs");
  work_for(make<Account>(checked(limits), calls_));
}

void Machine::work_for(Ref<Account> account) {
  const Limits& limits = account->limits;
  if (limits.depth != depth_ || limits.stack_bytes != stack_bytes_) reserve(limits);
  account_ = std::move(account);
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
  depth_ = limits.depth;
  stack_bytes_ = limits.stack_bytes;
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
  bool runs = false;
  while (!(now & kIdle) && !runs) {
    runs = attention_.compare_exchange_weak(now, now | kCancelled, std::memory_order_relaxed);
  }
  // Behind it: a call within that one which enters itself later looks at the word (Outermost).
  return calls_->interrupt(kCancelled) || runs;
}

MachineStats Machine::stats() const {
  MachineStats s;
  s.peak_memory = pool_->peak();
  s.cached_memory = pool_->cached();
  return s;
}

Any Machine::call(std::string_view function, std::span<const AnyView> args) {
  return call(home_->exported(function), args);
}

Any Machine::call(uint32_t function_index, std::span<const AnyView> args) {
  const FunctionCode& code = home_->code(function_index);
  const FunctionUnit& unit = home_->function_unit(code);
  if (args.size() != unit.params.size()) {
    std::vector<std::string> wanted;
    for (const Param& p : unit.params) wanted.push_back(printable(cat(p.name, ": ", p.type)));
    throw Error(ErrorKind::Usage, cat("function '", printable(unit.name),
                                      "' is called with the wrong "
                                      "number of arguments"))
        .found(cat(args.size()))
        .expected(cat(unit.params.size(), " (", join(wanted, ", "), ")"));
  }
  return call_code(*home_, code, {}, args, {});
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

// A call that no other call on this machine encloses. One on another machine may: it is a packed
// function of that call which makes this one.
class Machine::Outermost {
 public:
  Outermost(Machine& m, Machine* outer)
      : m_(m), outer_(outer), limits_(m.account_->limits), end_(end_of(limits_.deadline)) {
    if (outer) {
      limits_.fuel = std::min(limits_.fuel, std::max<int64_t>(outer->fuel_, 0));
      if (outer->in_force_.end < end_) {
        end_ = outer->in_force_.end;
        limits_.deadline = outer->in_force_.deadline;
      }
      if (auto left = outer->pool_->left()) {
        // A cap of 0 would be none.
        limits_.memory =
            std::max<size_t>(1, std::min(*left, limits_.memory ? limits_.memory : *left));
      }
    }
    m.begin_call(limits_.memory);
    m.fuel_ = limits_.fuel;
    m.in_force_ = {limits_.fuel, limits_.deadline, end_};
  }
  ~Outermost() {
    if (outer_) outer_->fuel_ -= limits_.fuel - std::max<int64_t>(m_.fuel_, 0);
    m_.end_call();
  }
  // In force while the call runs; what may fail, once this object stands.
  struct Bounds {
    explicit Bounds(Outermost& call) : objects(call.limits_.memory ? &call.m_ : nullptr) {
      Machine& m = call.m_;
      // Its own machine's cancel finds a call there; others find it here.
      if (call.outer_) {
        entry.emplace(call.outer_->account_->calls, &m.attention_);
        m.attention_.fetch_or(call.outer_->attention_.load(std::memory_order_relaxed) & kCancelled,
                              std::memory_order_relaxed);
      } else if (m.account_->calls != m.calls_) {
        entry.emplace(m.account_->calls, &m.attention_);
      }
      if (call.end_ != Clock::time_point::max()) {
        deadline.emplace(&m.attention_, kExpired, call.end_);
      }
      if (call.limits_.threads > 0) threads.emplace(call.limits_.threads);
    }
    ObjectBudget objects;
    std::optional<RunningCalls::Entry> entry;
    std::optional<Deadline> deadline;
    std::optional<ThreadsScope> threads;
  };

 private:
  Machine& m_;
  Machine* outer_;
  Limits limits_;
  Clock::time_point end_;
};

// A call within a call on the same machine, of a function value that has an account of its own: it
// is held to that as well as to what is left of the outer call. The stack and its depth are the
// machine's.
class Machine::Nested {
 public:
  Nested(Machine& m, const Ref<Account>& account)
      : m_(m),
        account_(std::exchange(m.account_, Account::stricter(m.account_, account))),
        in_force_(m.in_force_),
        fuel_(m.fuel_),
        cap_(m.pool_->cap()) {
    const Limits& own = account->limits;
    if (own.fuel < m.fuel_) m.in_force_.fuel = m.fuel_ = own.fuel;
    given_ = m.fuel_;
    const auto end = end_of(own.deadline);
    if (end < m.in_force_.end) {
      m.in_force_.end = end;
      m.in_force_.deadline = own.deadline;
    }
    if (own.memory) {
      const size_t most = m.pool_->counted() + own.memory;
      if (!cap_ || most < cap_) m.pool_->set_cap(most);
    }
  }
  ~Nested() {
    m_.fuel_ = fuel_ - (given_ - std::max<int64_t>(m_.fuel_, 0));
    m_.pool_->set_cap(cap_);
    m_.account_ = std::move(account_);
    if (m_.in_force_.end != in_force_.end) {
      m_.in_force_ = in_force_;
      // The word may have been set for the deadline that ended here. Where the outer one passes at
      // this moment, its time has come by the clock as well.
      m_.attention_.fetch_and(~uint32_t{kExpired}, std::memory_order_relaxed);
      m_.expire_if_due();
    }
    m_.in_force_ = in_force_;
  }
  struct Bounds {
    explicit Bounds(Nested& call) {
      Machine& m = call.m_;
      if (!call.cap_ && m.pool_->cap()) objects.emplace(static_cast<MemoryAccount*>(&m));
      if (m.in_force_.end != call.in_force_.end) {
        deadline.emplace(&m.attention_, kExpired, m.in_force_.end);
      }
    }
    std::optional<ObjectBudget> objects;
    std::optional<Deadline> deadline;
  };

 private:
  Machine& m_;
  Ref<Account> account_;  // what was in force, as what follows
  InForce in_force_;
  int64_t fuel_;
  size_t cap_;
  int64_t given_ = 0;
};

void Machine::expire_if_due() {
  if (in_force_.end <= Clock::now()) attention_.fetch_or(kExpired, std::memory_order_relaxed);
}

Any Machine::call_code(const Program& program, const FunctionCode& code,
                       std::span<const Any> captures, std::span<const AnyView> args,
                       const Ref<Account>& account) {
  const FunctionUnit& unit = program.function_unit(code);
  if (captures.size() + args.size() != static_cast<size_t>(code.params)) {
    throw Error(ErrorKind::Usage, "a closure is called with the wrong number of arguments")
        .found(cat(args.size()))
        .expected(cat(static_cast<size_t>(code.params) - captures.size(), " for '",
                      printable(unit.name), "'"));
  }
  if (nesting >= kMaxNesting || (nesting > 0 && native_stack_left() < kNestedStack)) {
    throw Error(ErrorKind::Runtime, "calls between the host and programs are nested too deep")
        .found(nesting >= kMaxNesting ? cat(nesting, " calls within each other")
                                      : cat(bytes_text(native_stack_left()),
                                            " left of the thread's native stack after ", nesting,
                                            nesting == 1 ? " call" : " calls"))
        .expected(cat("at most ", kMaxNesting, " within each other, with ",
                      bytes_text(kNestedStack), " of stack left for each"))
        .help("let the program call its own functions directly");
  }
  struct Nest {
    Nest() { ++nesting; }
    ~Nest() { --nesting; }
  } nest;
  auto run = [&] {
    Current current(this);
    Any result = enter(program, code, captures, args);
    check_result(unit, result);
    return result;
  };
  if (thread_.load(std::memory_order_relaxed) == Pool::this_thread()) {
    if (!account || account == account_) return run();
    Nested call(*this, account);
    Nested::Bounds bounds(call);
    return run();
  }
  uint32_t idle = kIdle;
  if (!attention_.compare_exchange_strong(idle, instrument_ ? uint32_t{kInstrumented} : 0u,
                                          std::memory_order_acquire)) {
    throw Error(ErrorKind::Usage, "this machine runs a call on another thread")
        .help("make a machine for each thread; they share the program");
  }
  Outermost call(*this, current_machine);
  Outermost::Bounds bounds(call);
  return run();
}

void Machine::begin_call(size_t memory) {
  thread_.store(Pool::this_thread(), std::memory_order_relaxed);
  pool_->set_owner(Pool::this_thread());
  pool_->begin_call(memory, stack_committed());
}

void Machine::end_call() noexcept {
  thread_.store(nullptr, std::memory_order_relaxed);
  pool_->set_owner(nullptr);
  if (stack_committed() > kKeptStack) {
    registers_.discard(kFirstRegisterBytes);
    register_limit_ = reinterpret_cast<AnyView*>(registers_.begin() + kFirstRegisterBytes);
    size_t frames = std::min<size_t>(kFirstFrames, depth_);
    frames_.discard_before(frames_.size() - frames * sizeof(Frame));
    frame_limit_ = reinterpret_cast<Frame*>(frames_.end()) - frames;
  }
  attention_.store(kIdle, std::memory_order_release);
}

Any Machine::enter(const Program& program, const FunctionCode& code, std::span<const Any> captures,
                   std::span<const AnyView> args) {
  // Puts back what the call around this one was at. After an error it first clears the registers
  // that this one used.
  struct Entered {
    Machine& m;
    const Program* program = m.program_;
    const Op* pc = m.pc_;
    AnyView* base = m.base_;
    AnyView* top = m.top_;
    Frame* frame = m.frame_;
    uint64_t maker = m.pool_->maker();
    bool returned = false;
    ~Entered() {
      if (!returned) m.unwind(top);
      m.program_ = program;
      m.pc_ = pc;
      m.base_ = base;
      m.top_ = top;
      m.frame_ = frame;
      m.pool_->set_maker(maker);
    }
  } entered{*this};
  program_ = &program;
  pool_->set_maker(program.number());
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
      Any value = capture;
      protect(&value);
      *to++ = value.leak();
      top_ = to;
    }
    for (const AnyView& argument : args) {
      *to++ = prepare(argument).leak();
      top_ = to;
    }
    record->pc = program.ops_.data();
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
    throw error;
  } catch (const std::bad_alloc&) {
    Error error = Error::out_of_memory();
    if (frame_ <= record) add_backtrace(error, record);
    throw error;
  }
  entered.returned = true;
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

void Machine::add_backtrace(Error& error, const Frame* entry) const try {
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
} catch (const std::bad_alloc&) {  // the error stays, with the frames that there was memory for
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
  auto storage = Ref<StorageObj>::adopt(pool_on(device).allocate(bytes, alignment));
  if (auto byte = fill_byte()) [[unlikely]]
    fill_memory(storage->data, *byte, bytes);
  return storage;
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
