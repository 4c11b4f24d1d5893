// Calls into a machine: what is in force while one runs, entry, and unwinding.
#include <algorithm>
#include <cstdint>
#include <forward_list>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "device/parallel.h"
#include "object/narrow_float.h"
#include "support/failures.h"
#include "support/nested_call.h"
#include "support/poll.h"
#include "support/text.h"
#include "support/trace.h"
#include "vm/interp/compiled_code.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/match_values.h"
#include "vm/interp/outputs.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

// What the native stack must have left for a call: for the machine and the runtime's functions, and
// for a kernel.
constexpr size_t kCallStack = (size_t{32} << 10) + kKernelStack;

constinit thread_local Machine* current_machine = nullptr;
constinit thread_local int nesting = 0;

}  // namespace

[[gnu::cold, gnu::noinline]] void Machine::fail_busy() {
  throw Error(ErrorKind::Usage, "this machine runs a call on another thread")
      .help("make a machine for each thread; they share the program");
}

Machine* Machine::current() {
  return current_machine;
}

Any Machine::call(std::string_view function, std::span<const AnyView> args) {
  return call(home_->exported(function), args);
}

const FunctionCode& Machine::callable(uint32_t function_index, size_t arguments) const {
  const FunctionCode& code = home_->code(function_index);
  home_->check_arity(code, 0, arguments, ErrorKind::Usage);
  return code;
}

Any Machine::call(uint32_t function_index, std::span<const AnyView> args) {
  return call_code(*home_, callable(function_index, args.size()), {}, args, *account_);
}

[[gnu::cold]] Any Machine::call_into(std::string_view function, std::span<const AnyView> args,
                                     std::span<const AnyView> outputs) {
  const FunctionCode& code = callable(home_->exported(function), args.size());
  Outputs given(home_->function_unit(code), outputs, args);
  return given.filled(call_code(*home_, code, {}, args, *account_, &given));
}

[[gnu::cold]] Any Machine::call_value(const AnyView& function, std::span<const AnyView> args) {
  const Ref<ClosureObj> closure(ClosureObj::of_program(function, nullptr));
  if (!closure) {
    throw Error(ErrorKind::Usage, "a machine calls only functions of programs")
        .found(type_name(function.type_index))
        .help("call any other function without a machine");
  }
  const auto& owner = static_cast<const Program&>(*closure->program);
  const Ref<const Account> account = Account::combined(*account_, *closure->account);
  return call_code(owner, *closure->code, closure->captures(), args, *account);
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

// The machine runs calls of this thread while it lives.
class Machine::Claim {
 public:
  // For a call of `code`, or, without it, to change the machine.
  explicit Claim(Machine& m, const Program* program = nullptr, const FunctionCode* code = nullptr)
      : m_(m),
        recorded_(code && !m.preparing_ ? trace::sink.load(std::memory_order_acquire) : nullptr) {
    uint32_t idle = kIdle;
    const bool instrumented = recorded_ || m.instrument_ || m.preparing_;
    if (!m.attention_.compare_exchange_strong(idle, instrumented ? uint32_t{kInstrumented} : 0u,
                                              std::memory_order_acquire)) {
      fail_busy();
    }
    m.thread_.store(Pool::this_thread(), std::memory_order_relaxed);
    m.pool_->set_owner(Pool::this_thread());
    if (recorded_) [[unlikely]]
      record(*recorded_, *program, *code);
  }
  ~Claim() {
    if (recorded_) [[unlikely]]
      recorded_->append(trace::Kind::Entry, true, 0, 0, {});
    m_.thread_.store(nullptr, std::memory_order_relaxed);
    m_.pool_->set_owner(nullptr);
    m_.release_stack();
    if (m_.attention_.load(std::memory_order_relaxed) & kStoppedByHost) [[unlikely]]
      m_.forget_host_error();
    m_.attention_.store(kIdle, std::memory_order_release);
  }
  Claim(const Claim&) = delete;

 private:
  [[gnu::cold, gnu::noinline]] static void record(trace::Sink& to, const Program& program,
                                                  const FunctionCode& code) {
    to.keep(
        program.number(), &program,
        [](const void* p) { Ref<const Program>(static_cast<const Program*>(p)).leak(); },
        [](const void* p) { Ref<const Program>::adopt(static_cast<const Program*>(p)); });
    to.append(trace::Kind::Entry, false, code.index, program.number(), {});
  }

  Machine& m_;
  trace::Sink* const recorded_;  // null unless the call is recorded
};

// Puts the limits of one call in force while it lives: its own, and what is left of those of the
// call around it, which it charges. That call may run on the same machine or on another. A call is
// nested if another one runs on the same machine, even if calls of other machines are in between.
class Machine::Bounds {
 public:
  // `own` is the account of the called machine or function value; `outer`, which may be null, the
  // machine of the call around this one.
  Bounds(Machine& m, const Account& own, Machine* outer, bool is_nested)
      : m_(m),
        outer_(outer),
        is_nested_(is_nested),
        combined_(outer ? Account::combined(*outer->in_force_.account, own) : Ref<const Account>()),
        before_(m.in_force_),
        cap_before_(m.pool_->cap()),
        fuel_before_(m.fuel_),
        register_limit_before_(m.register_limit_),
        frame_limit_before_(m.frame_limit_) {
    InForce& now = m.in_force_;
    now.account = outer ? combined_.get() : &own;
    now.limits = &own.limits;
    now.end = deadline_from_now(own.limits.deadline);
    fuel_ = own.limits.fuel;
    size_t memory = own.limits.memory;
    size_t frames = own.limits.depth, stack_bytes = own.limits.stack_bytes;
    if (outer) memory = limit_to_what_is_left(frames, stack_bytes, memory);
    m.fuel_ = fuel_;
    if (!is_nested) {
      m.pool_->begin_call(memory, m.stack_committed());
    } else if (memory) {
      const size_t counted = m.pool_->counted();
      m.pool_->set_cap(stricter(counted + std::min(memory, SIZE_MAX - counted), cap_before_));
    }
    now.registers_end =
        m.top_ + std::min(stack_bytes, bytes_between(m.top_, before_.registers_end)) / sizeof(Any);
    now.frames_begin =
        m.frame_ - std::min(frames, static_cast<size_t>(m.frame_ - before_.frames_begin));
    m.register_limit_ = std::min(m.register_limit_, now.registers_end);
    m.frame_limit_ = std::max(m.frame_limit_, now.frames_begin);
    if (is_nested) nested_before_ = std::exchange(m.nested_, this);
  }

  // The part that may fail; the destructor then restores the machine.
  void put_in_force() {
    const InForce& now = m_.in_force_;
    // Within a call with a memory limit on the same machine, that one's budget counts objects.
    MemoryAccount* const counts = m_.pool_->cap() ? &m_ : nullptr;
    if (!is_nested_ || (counts && (outer_ != &m_ || !cap_before_))) objects_.emplace(counts);
    for (const Ref<RunningCalls>& calls : now.account->calls) {
      const bool found = is_nested_ ? before_.account->has(calls) : calls == m_.calls_;
      if (found) continue;
      entries_.emplace_front(calls, &m_.attention_, is_nested_ ? kNestedCancelled : kCancelled);
    }
    // For what happened before this call was registered.
    if (outer_) Dispatch::stop_if_asked(*outer_);
    if (now.end != before_.end) deadline_.emplace(&m_.attention_, kExpired, now.end);
    if (now.limits->threads != threads_around_) threads_.emplace(now.limits->threads);
  }

  ~Bounds() {
    threads_.reset();
    deadline_.reset();
    entries_.clear();
    objects_.reset();
    const int64_t used = fuel_ - std::max<int64_t>(m_.fuel_, 0);
    if (is_nested_) {
      m_.fuel_ = fuel_before_;
      m_.pool_->set_cap(cap_before_);
      m_.nested_ = nested_before_;
    }
    if (outer_) outer_->fuel_ -= used;
    m_.in_force_ = before_;
    m_.register_limit_ = std::max(m_.register_limit_, register_limit_before_);
    m_.frame_limit_ = std::min(m_.frame_limit_, frame_limit_before_);
    if (is_nested_) reassess();
  }
  Bounds(const Bounds&) = delete;

 private:
  static size_t bytes_between(const AnyView* from, const AnyView* to) {
    return static_cast<size_t>(reinterpret_cast<const char*>(to) -
                               reinterpret_cast<const char*>(from));
  }
  bool is_cancelled() const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const RunningCalls::Entry& e) { return e.is_interrupted(); });
  }
  // Lowers the call's own limits to what is left of those of the call around it; returns the memory
  // that it may use. Cold, like all that only calls within calls need: it is compiled for size.
  [[gnu::cold, gnu::noinline]] size_t limit_to_what_is_left(size_t& frames, size_t& stack_bytes,
                                                            size_t memory) {
    InForce& now = m_.in_force_;
    const InForce& around = outer_ == &m_ ? before_ : outer_->in_force_;
    Limits& limits = limits_.emplace(*now.limits);
    auto at_most = [](auto& own_use, auto left, auto& own_limit, auto outer_limit) {
      if (left >= own_use) return;
      own_use = left;
      own_limit = outer_limit;
    };
    at_most(fuel_, std::max<int64_t>(outer_->fuel_, 0), limits.fuel, around.limits->fuel);
    at_most(now.end, around.end, limits.deadline, around.limits->deadline);
    at_most(frames, static_cast<size_t>(outer_->frame_ - around.frames_begin), limits.depth,
            around.limits->depth);
    at_most(stack_bytes, bytes_between(outer_->top_, around.registers_end), limits.stack_bytes,
            around.limits->stack_bytes);
    threads_around_ = around.limits->threads;
    limits.threads = stricter(limits.threads, threads_around_);
    now.limits = &limits;
    const auto left = outer_->pool_->left();
    // A cap of 0 would be none.
    return left ? stricter(memory, std::max<size_t>(1, *left)) : memory;
  }
  // After a nested call that was to stop: stops the calls around it only if they are to stop, too.
  [[gnu::cold, gnu::noinline]] void reassess() const {
    constexpr uint32_t kOfNested = kNestedCancelled | kExpired | kStoppedByHost;
    const uint32_t word = m_.attention_.load(std::memory_order_relaxed);
    if (!(word & kOfNested)) return;
    m_.attention_.fetch_and(~kOfNested, std::memory_order_acquire);
    if (word & kStoppedByHost) m_.forget_host_error();
    uint32_t bits = m_.in_force_.end <= Clock::now() ? uint32_t{kExpired} : 0u;
    for (const Bounds* b = m_.nested_; b; b = b->nested_before_) {
      if (b->is_cancelled()) bits |= kNestedCancelled;
    }
    m_.attention_.fetch_or(bits, std::memory_order_relaxed);
  }

  Machine& m_;
  Machine* outer_;
  bool is_nested_;
  // With those of the call around it, if there is one.
  Ref<const Account> combined_;
  std::optional<Limits> limits_;
  int32_t threads_around_ = 0;
  // Of the machine, before this call.
  InForce before_;
  size_t cap_before_;
  int64_t fuel_before_;
  AnyView* register_limit_before_;
  Frame* frame_limit_before_;
  Bounds* nested_before_ = nullptr;

  int64_t fuel_ = 0;  // that the call was given
  std::optional<ObjectBudget> objects_;
  std::forward_list<RunningCalls::Entry> entries_;
  std::optional<Deadline> deadline_;
  std::optional<ThreadsScope> threads_;
};

[[gnu::cold]] void Machine::trim() {
  std::optional<Claim> claim;
  if (!runs_here()) claim.emplace(*this);
  pool_->trim();
  clear_object_cache();
}

Any Machine::call_code(const Program& program, const FunctionCode& code,
                       std::span<const Any> captures, std::span<const AnyView> args,
                       const Account& account, Outputs* outputs) {
  const FunctionUnit& unit = program.function_unit(code);
  program.check_arity(code, captures.size(), args.size(), ErrorKind::Usage);
  if (code.has_unmatched) check_unmatched(unit, captures.size(), args, program.name());
  const NestedCall nested(&nesting, kCallStack);
  auto run = [&] {
    Current current(this);
    Any result = enter(program, code, captures, args, outputs);
    check_result(unit, result);
    return result;
  };
  Machine* const outer = current_machine;
  if (outer == this && in_force_.account->includes(account)) return run();
  const bool is_nested = runs_here();
  std::optional<Claim> claim;
  if (!is_nested) claim.emplace(*this, &program, &code);
  Bounds bounds(*this, account, outer, is_nested);
  bounds.put_in_force();
  return run();
}

[[gnu::cold]] bool Machine::is_called_by_host() const {
  const CodeTable* const compiled = running_->compiled();
  return frame_->pc == running_->decoded().ops.data() ||
         (compiled && frame_->pc == reinterpret_cast<const Op*>(compiled->exit));
}

// Moves what borrowing parameters were given to the registers below theirs.
[[gnu::cold, gnu::noinline]] static void lend(const std::vector<Param>& params, AnyView* to,
                                              AnyView* given) {
  for (const Param& param : params) {
    if (param.borrowed) {
      *to = *given;
      write_words(*given, borrowed(*to));
    }
    ++to;
    ++given;
  }
}

Any Machine::enter(const Program& program, const FunctionCode& code, std::span<const Any> captures,
                   std::span<const AnyView> args, Outputs* outputs) {
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
    Outputs* outputs = m.outputs_;
    bool returned = false;
    ~Entered() {
      if (!returned) m.unwind(top);
      m.running_ = program;
      m.pc_ = pc;
      m.base_ = base;
      m.top_ = top;
      m.frame_ = frame;
      m.pool_->set_maker(maker);
      m.outputs_ = outputs;
    }
  } entered{*this};
  running_ = &program;
  pool_->set_maker(program.number());
  AnyView* const start = top_;
  // The entry's frame holds the result, and what borrowing parameters borrow.
  AnyView* const base = start + 1 + (code.borrows() ? code.params : 0);
  Frame* const record = frame_ - 1;
  outputs_ = outputs;
  if (outputs) outputs->enter(record);
  --fuel_;
  if (base + code.registers > register_limit_ || record < frame_limit_ || fuel_ < 0) {
    Dispatch::grow_stack(*this, base + code.registers, record);
  }
  // Owned before anything is placed: admitting an argument may fail.
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
      Any value = admitted(argument);
      if (code.has_unmatched) {
        const std::vector<Param>& params = program.function_unit(code).params;
        conform(params[static_cast<size_t>(to - base)].type, Ref<const Object>(&program), &value);
      }
      *to++ = value.leak();
      top_ = to;
    }
    if (base != start + 1) lend(program.function_unit(code).params, start + 1, base);
    record->pc = program.decoded().ops.data();
    record->base = start;
    frame_ = record;
    base_ = base;
    top_ = base + code.registers;
    pc_ = code.entry;
    Dispatch::stop_if_asked(*this);
    const CodeTable* const compiled = program.compiled();
    if (compiled && !(attention_.load(std::memory_order_relaxed) & kInstrumented)) {
      CompiledCode::run(*this, *compiled, code);
    } else {
      Dispatch::run(*this);
    }
  } catch (const Error& e) {
    Error error = e;
    const bool is_input = frame_ == record && dynamic_cast<const InputError*>(&e);
    if (frame_ <= record && !is_input) add_backtrace(error, record);
    throw error;
  } catch (const std::bad_alloc&) {
    Error error = Error::out_of_memory();
    if (frame_ <= record) add_backtrace(error, record);
    throw error;
  }
  entered.returned = true;
  top_ = base;  // releasing may run code of the host's
  for (AnyView* lent = base; lent != start + 1;) put(*--lent, AnyView());
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
