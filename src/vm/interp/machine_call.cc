// Calls into a machine: what is in force while one runs, entry, and unwinding.
#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "device/parallel.h"
#include "support/nested_call.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/match_result.h"

namespace tenon::vm {
namespace {

// What the native stack must have left for a call: for the machine and the runtime's functions, and
// for a kernel.
constexpr size_t kCallStack = (size_t{32} << 10) + kKernelStack;

constinit thread_local Machine* current_machine = nullptr;
constinit thread_local int nesting = 0;

// A deadline from now on; the far future where there is none.
Deadline::Clock::time_point end_of(std::chrono::nanoseconds deadline) {
  using Clock = Deadline::Clock;
  if (deadline >= std::chrono::hours(24 * 365)) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::max(deadline, std::chrono::nanoseconds(0)));
}

}  // namespace

Machine* Machine::current() {
  return current_machine;
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
  // In force while the call runs. Separate, since its steps may throw: the Outermost, which exists
  // by then, restores the machine.
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
  Ref<Account> account_;  // before this call, like the next three
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
  program.check_arity(code, captures.size(), args.size(), ErrorKind::Usage);
  check_scalars(unit, captures.size(), args, program.name());
  const NestedCall nested(&nesting, kCallStack);
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

Any Machine::enter(const Program& program, const FunctionCode& code, std::span<const Any> captures,
                   std::span<const AnyView> args) {
  // Restores the state of the call around this one. After an error, first clears the registers that
  // this one used.
  struct Entered {
    Machine& m;
    const Program* program = m.running_;
    const Op* pc = m.pc_;
    AnyView* base = m.base_;
    AnyView* top = m.top_;
    Frame* frame = m.frame_;
    uint64_t maker = m.pool_->maker();
    bool returned = false;
    ~Entered() {
      if (!returned) m.unwind(top);
      m.running_ = program;
      m.pc_ = pc;
      m.base_ = base;
      m.top_ = top;
      m.frame_ = frame;
      m.pool_->set_maker(maker);
    }
  } entered{*this};
  running_ = &program;
  pool_->set_maker(program.number());
  AnyView* const start = top_;
  AnyView* const base = start + 1;  // the entry's frame holds the result
  Frame* const record = frame_ - 1;
  --fuel_;
  if (base + code.registers > register_limit_ || record < frame_limit_ || fuel_ < 0) {
    Dispatch::grow_stack(*this, base + code.registers, record);
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
    record->pc = program.decoded().ops.data();
    record->base = start;
    frame_ = record;
    base_ = base;
    top_ = base + code.registers;
    pc_ = code.entry;
    Dispatch::stop_if_asked(*this);
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

}  // namespace tenon::vm
