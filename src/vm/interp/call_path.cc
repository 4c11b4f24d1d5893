// The long or rare parts of the dispatch loop's calls.
#include <algorithm>
#include <iterator>
#include <mutex>

#include "device/host_check.h"
#include "device/parallel.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/isa/operand_index.h"

namespace tenon::vm {

bool is_boolean(const AnyView& v) {
  return v.type_index == TypeIndex::Bool;
}

namespace {

// One copy of the code that makes these errors.
[[noreturn, gnu::cold, gnu::noinline]] void stop(StopCause cause, const char* message,
                                                 std::string_view expected, const char* help) {
  throw Error(ErrorKind::Runtime, message)
      .stopped_by(cause)
      .expected(cat("at most ", expected))
      .help(help);
}

}  // namespace

[[gnu::cold]] void Dispatch::fail_fuel(Machine& m) {
  m.fuel_ = 0;
  stop(StopCause::Fuel, "the call ran out of fuel",
       cat(m.in_force_.limits->fuel, " function entries and backward jumps"),
       "raise the call's fuel limit");
}

[[gnu::cold]] void Dispatch::fail_interrupted(Machine& m) {
  uint32_t word = m.attention_.load(std::memory_order_relaxed);
  if (word & Machine::kStoppedByHost) throw Error(*m.host_error_.load(std::memory_order_acquire));
  if (word & (Machine::kCancelled | Machine::kNestedCancelled)) {
    throw Error(ErrorKind::Runtime, "the call was cancelled").stopped_by(StopCause::Cancel);
  }
  const std::chrono::nanoseconds deadline = m.in_force_.limits->deadline;
  stop(StopCause::Deadline, "the call ran past its deadline",
       cat(static_cast<double>(deadline.count()) / 1e6, " ms"), "raise the call's deadline");
}

void Dispatch::stop_if_asked(Machine& m) {
  const uint32_t word = m.attention_.load(std::memory_order_relaxed);
  if (!(word & Machine::kInterrupted)) return;
  if (word & Machine::kStopped) fail_interrupted(m);
  try {
    // If another thread must be asked, only those that help with this machine's work are left to
    // ask.
    if (!check_host() && m.thread_.load(std::memory_order_relaxed) != Pool::this_thread()) return;
    m.attention_.fetch_and(~uint32_t{Machine::kAsked}, std::memory_order_relaxed);
  } catch (const Error& error) {
    m.stop_with(error);
    throw;
  }
}

[[gnu::cold]] void Dispatch::grow_stack(Machine& m, const AnyView* top,
                                        const Machine::Frame* frame) {
  if (m.fuel_ < 0) fail_fuel(m);
  const Machine::InForce& bounds = m.in_force_;
  if (top > bounds.registers_end) {
    stop(StopCause::Stack, "the call ran out of stack",
         cat(bytes_text(bounds.limits->stack_bytes), " of registers"),
         "raise the call's stack limit, or look for infinite recursion");
  }
  if (frame < bounds.frames_begin) {
    stop(StopCause::Depth, "the call went too deep", cat(bounds.limits->depth, " frames"),
         "raise the call's depth limit, or look for infinite recursion");
  }
  // Both watermarks rise in steps, so that the committed size is known and counts as memory.
  size_t before = m.stack_committed();
  auto used = static_cast<size_t>(reinterpret_cast<const char*>(top) - m.registers_.begin());
  auto limit =
      static_cast<size_t>(reinterpret_cast<char*>(m.register_limit_) - m.registers_.begin());
  const auto most = static_cast<size_t>(reinterpret_cast<const char*>(bounds.registers_end) -
                                        m.registers_.begin());
  while (limit < used) limit = std::min(limit * 2, most);
  auto depth = static_cast<size_t>(reinterpret_cast<Machine::Frame*>(m.frames_.end()) - frame);
  auto frames =
      static_cast<size_t>(reinterpret_cast<Machine::Frame*>(m.frames_.end()) - m.frame_limit_);
  const auto most_frames =
      static_cast<size_t>(reinterpret_cast<Machine::Frame*>(m.frames_.end()) - bounds.frames_begin);
  while (frames < depth) frames = std::min(frames * 2, most_frames);
  size_t after = limit + frames * sizeof(Machine::Frame);
  if (after > before && !m.pool_->count_outside(after - before)) {
    m.pool_->fail_cap(cat("a stack of ", bytes_text(after), ", besides ",
                          bytes_text(m.pool_->used()), " of storage"));
  }
  m.register_limit_ = reinterpret_cast<AnyView*>(m.registers_.begin() + limit);
  m.frame_limit_ = reinterpret_cast<Machine::Frame*>(m.frames_.end()) - frames;
}

[[gnu::cold]] void Dispatch::fail_not_int(Machine& m) {
  uint32_t offset = 0;
  const FunctionCode* code = m.running_->decoded().locate(m.pc_, &offset);
  TENON_ASSERT(code, "an integer was missing outside of any function");
  Instruction in;
  decode(m.running_->function_unit(*code).code, offset, &in);
  // The comparison may have been fused with the following branch.
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    Arg a = in.arg(i);
    if (role_of(in, i) != OperandRole::ReadsNumber || !a.is_register()) continue;
    const AnyView& v = m.base_[a.index()];
    if (is_integer(v)) continue;
    throw_failure(cat(in.info->mnemonic, " needs an integer"),
                  cat(type_name(v.type_index), " in register ", to_text(a)));
  }
  throw Error(ErrorKind::Internal,
              cat(in.info->mnemonic, " failed although its operands are integers"));
}

// Reads the file's instruction: the pre-decoder may have exchanged the operands.
[[gnu::cold]] void Dispatch::fail_overflow(Machine& m) {
  uint32_t offset = 0;
  const FunctionCode* code = m.running_->decoded().locate(m.pc_, &offset);
  TENON_ASSERT(code, "an integer overflowed outside of any function");
  Instruction in;
  decode(m.running_->function_unit(*code).code, offset, &in);
  auto value = [&](uint32_t i) {
    return in.arg(i).is_register() ? m.base_[in.arg(i).index()].v.i : in.arg(i).value();
  };
  fail_size_overflow(value(operand(Opcode::Add, "a")), value(operand(Opcode::Add, "b")));
}

void fail_size_overflow(int64_t a, int64_t b) {
  throw size_overflow(a, b);
}

[[noreturn, gnu::cold]] static void fail_unlinked(const PackedSlot& slot) {
  throw Error(ErrorKind::Runtime, cat("no packed function '", printable(slot.name), "' is linked"));
}

[[gnu::cold]] Function function_of(const PackedSlot& slot) {
  const PackedTarget* target = slot.target.load(std::memory_order_acquire);
  if (!target) fail_unlinked(slot);
  if (target->owner && target->owner->type_index == TypeIndex::Function) {
    return Function(target->owner);
  }
  // A kernel has no function object: it is wrapped together with the owner of its code. The target
  // itself belongs to the Program.
  return Function::from_packed([call = target->call, self = target->self, keep = target->owner](
                                   const AnyView* args, int32_t n, Any* result) {
    if (call(self, args, n, result) != 0) throw take_error();
  });
}

[[gnu::cold]] void Dispatch::fail_packed(const PackedSlot& slot) {
  Error error = take_error();
  error.frame(cat(slot.kernel ? "kernel " : "packed function ", printable(slot.name)));
  throw error;
}

namespace {

constexpr size_t kOnStack = 24;

// A packed call's arguments, contiguous and borrowed.
class Borrowed {
 public:
  Borrowed(const CallOperands& e, size_t from, const AnyView* base) {
    count_ = e.args.size() - from;
    if (e.contiguous && count_) {
      args_ = base + e.args[from].reg;
      return;
    }
    AnyView* to = reinterpret_cast<AnyView*>(small_);
    if (count_ > kOnStack) {
      large_.resize(count_);
      to = large_.data();
    }
    args_ = to;
    for (size_t i = from; i < e.args.size(); ++i) new (to++) AnyView(value_of(e.args[i], base));
  }
  const AnyView* data() const { return args_; }
  int32_t count() const { return static_cast<int32_t>(count_); }
  std::span<const AnyView> span() const { return {args_, count_}; }
  // The same for a host. Arguments in borrowing registers have been copied here.
  std::span<const AnyView> for_host() {
    for (const AnyView& arg : span()) {
      if (arg.type_index < 0) const_cast<AnyView&>(arg) = unborrowed(arg);
    }
    return span();
  }

 private:
  const AnyView* args_;
  size_t count_;
  alignas(AnyView) char small_[kOnStack * sizeof(AnyView)];  // uninitialised
  std::vector<AnyView> large_;
};

}  // namespace

[[gnu::cold, gnu::noinline]] bool Dispatch::before_packed(Machine& m, const Op& op,
                                                          std::span<const AnyView> args,
                                                          Any* result) {
  stop_if_asked(m);
  return m.preparing_ ? skips_in_preparation(m, op, args)
                      : instrument(m, op, true, m.frame_, args, result);
}

[[gnu::cold, gnu::noinline]] void Dispatch::after_packed(Machine& m, const Op& op, AnyView* base,
                                                         Any* result) {
  const Borrowed left(op.as<OpClass::Call>(), 0, base);  // excluding what the call took
  instrument(m, op, false, m.frame_, left.span(), result);
  stop_if_asked(m);
}

void Dispatch::packed_call(Machine& m, const Op& op, AnyView* base) {
  const CallOperands& e = op.as<OpClass::Call>();
  const PackedTarget* target = e.slot->target.load(std::memory_order_acquire);
  if (!target) [[unlikely]]
    fail_unlinked(*e.slot);
  const Borrowed args(e, 0, base);
  Any result;
  if (!m.attention_.load(std::memory_order_relaxed) || !before_packed(m, op, args.span(), &result))
      [[likely]] {
    if (target->call(target->self, args.data(), args.count(), &result) != 0) [[unlikely]]
      fail_packed(*e.slot);
    admit_result(&result);
    m.protect(&result);
    if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]]
      after_packed(m, op, base, &result);
  }
  release_last_uses(e, base);
  put_result(base, op.a, std::move(result));
}

namespace {

// The calls behind `concurrent`.
struct Group {
  const Op* calls;
  AnyView* base;
  std::mutex mutex;
  int64_t failed;       // the first call that did, or their number
  Ref<ErrorObj> error;  // null if its function isn't linked
};

// A call that fails doesn't stop those before it, whose errors win.
[[gnu::cold]] int run_member(void* context, int64_t at, int64_t) {
  Group& in = *static_cast<Group*>(context);
  const CallOperands& e = in.calls[at].as<OpClass::Call>();
  const PackedTarget* target = e.slot->target.load(std::memory_order_acquire);
  const ThreadsScope one(1);  // libraries have threads of their own
  const Borrowed args(e, 0, in.base);
  Any result;
  if (target && target->call(target->self, args.data(), args.count(), &result) == 0) return 0;
  const std::lock_guard lock(in.mutex);
  if (at < in.failed) {
    in.failed = at;
    in.error = target ? take_error_object() : Ref<ErrorObj>();
  }
  return 0;
}

}  // namespace

// Cold, so that it is compiled for size: what it calls takes longer.
[[gnu::cold]] void Dispatch::concurrent_calls(Machine& m, const Op& head, AnyView* base) {
  Group group{&head + 1, base, {}, head.imm, {}};
  ParallelLoop loop;
  loop.n = head.imm;
  loop.each_chunk = true;
  loop.threads = std::min(m.inter_op_, threads_in_scope());
  loop.body = run_member;
  loop.context = &group;
  if (loop.threads <= 1 || m.attention_.load(std::memory_order_relaxed)) {
    for (const Op* call = group.calls; call != group.calls + loop.n; ++call) {
      m.pc_ = call;
      packed_call(m, *call, base);
    }
    return;
  }
  const int stopped = try_parallel(loop);
  if (group.failed != loop.n) {
    m.pc_ = &group.calls[group.failed];
    const PackedSlot& slot = *m.pc_->as<OpClass::Call>().slot;
    if (!group.error) fail_unlinked(slot);
    set_error_object(std::move(group.error));
    fail_packed(slot);
  }
  if (stopped != 0) throw take_error();
  for (int64_t i = 0; i != loop.n; ++i) {
    release_last_uses(group.calls[i].as<OpClass::Call>(), base);
  }
  if (m.attention_.load(std::memory_order_relaxed)) stop_if_asked(m);
}

AnyView* Dispatch::last_use(Machine& m, const Object* function, int32_t i) {
  if (!m.pc_ || m.pc_->handler != address_of(Handler::CallPacked)) return nullptr;
  const CallOperands& e = m.pc_->as<OpClass::Call>();
  const PackedTarget* target = e.slot->target.load(std::memory_order_acquire);
  if (!target || target->owner.get() != function) return nullptr;
  if (i < 0 || static_cast<size_t>(i) >= e.args.size()) return nullptr;
  const ValueRef& ref = e.args[static_cast<size_t>(i)];
  return ref.last ? &m.base_[ref.reg] : nullptr;
}

[[gnu::cold]] void Dispatch::call_value(Machine& m, const Op& op, AnyView* base, AnyView callee,
                                        AnyView* result_to) {
  const CallOperands& e = op.as<OpClass::Call>();
  Borrowed args(e, kClosureArguments, base);
  auto* function = static_cast<FunctionObj*>(callee.v.object);
  Ref<Object> keep(function);
  Any result;
  if (function->call(function, args.data(), args.count(), &result) != 0) throw take_error();
  admit_result(&result);
  m.protect(&result);
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    instrument(m, op, false, m.frame_, args.span(), &result);
    stop_if_asked(m);
  }
  release_last_uses(e, base);
  if (result_to) put(*result_to, result.leak());
}

const FunctionCode* Dispatch::closure_code(Machine& m, const Op& op, const AnyView& callee) {
  if (callee.type_index != TypeIndex::Function) {
    throw_failure("the called value is not a function", type_name(callee.type_index));
  }
  const ClosureObj* closure = ClosureObj::of_program(callee, m.running_);
  if (!closure) return nullptr;
  const size_t arguments = op.operands->args.size() - kClosureArguments;
  m.running_->check_arity(*closure->code, closure->size, arguments, ErrorKind::Runtime);
  const Account& in_force = *m.in_force_.account;
  if (closure->account.get() != &in_force && !in_force.includes(*closure->account)) return nullptr;
  if (closure->code->borrows()) return nullptr;  // nothing here would own the arguments
  return closure->code;
}

AnyView Dispatch::captured(Machine& m, const Any& capture, AnyView* slot) {
  Any value = capture;
  m.top_ = slot;
  m.protect(&value);
  return value.leak();
}

void Dispatch::place_closure(Machine& m, const Op& op, AnyView* base, const FunctionCode& callee,
                             const AnyView& value) {
  AnyView* slot = &at(base, op.frame);
  const AnyView* const top = slot + callee.registers;
  if (--m.fuel_ < 0 || top > m.register_limit_ || m.frame_ - 1 < m.frame_limit_) [[unlikely]]
    grow_stack(m, top, m.frame_ - 1);
  const auto* closure = static_cast<const ClosureObj*>(static_cast<FunctionObj*>(value.v.object));
  for (const Any& capture : closure->captures()) {
    const bool may_need_protection = capture.type_index == TypeIndex::Tensor;
    write_words(*slot,
                may_need_protection ? words_of(captured(m, capture, slot)) : shared(capture));
    ++slot;
  }
  const CallOperands& o = op.as<OpClass::Call>();
  for (size_t i = kClosureArguments; i < o.args.size(); ++i) {
    write_words(*slot++, shared(value_of(o.args[i], base)));
  }
}

// The callee reuses the frame: its arguments are gathered above it, then moved down.
void Dispatch::tail_arguments(Machine& m, const Op& op, const FunctionCode& code, AnyView* base,
                              const AnyView* closure) {
  if (m.fuel_ < 0) fail_fuel(m);
  AnyView* const end = &at(base, op.frame);
  AnyView* const gathered = std::max(end, base + code.registers);
  if (gathered + code.params > m.register_limit_) grow_stack(m, gathered + code.params, m.frame_);
  const CallOperands& e = op.as<OpClass::Call>();
  AnyView* to = gathered;
  if (closure) {
    for (const Any& capture :
         static_cast<ClosureObj*>(static_cast<FunctionObj*>(closure->v.object))->captures()) {
      *to = captured(m, capture, to);
      ++to;
    }
  }
  for (size_t i = closure ? kClosureArguments : 0; i < e.args.size(); ++i) {
    const ValueRef& ref = e.args[i];
    if (ref.last) {
      *to++ = base[ref.reg];
      base[ref.reg] = AnyView();
    } else {
      *to++ = Any(value_of(ref, base)).leak();
    }
  }
  m.top_ = to;
  for (AnyView* r = base; r != end; ++r) put(*r, AnyView());
  for (AnyView* from = gathered; from != to; ++from) {
    base[from - gathered] = *from;
    *from = AnyView();
  }
  m.top_ = base + code.registers;
}

[[gnu::cold]] bool Dispatch::before_call(Machine& m, const Op& op, AnyView* base,
                                         AnyView* result_to) {
  stop_if_asked(m);
  Any result;
  {
    const auto& o = op.as<OpClass::Call>();
    Borrowed args(o, o.callee ? 0 : kClosureArguments, base);
    const bool skips = m.preparing_ ? skips_in_preparation(m, op, args.span())
                                    : instrument(m, op, true, m.frame_, args.for_host(), &result);
    if (!skips) return false;
  }
  release_last_uses(*op.operands, base);
  if (result_to) put(*result_to, result.leak());
  return true;
}

void Dispatch::after_call(Machine& m, const Op& op, AnyView* result) {
  // The register owns its value, as an Any does.
  instrument(m, op, false, m.frame_ + 1, {}, static_cast<Any*>(result));
}

AnyView Dispatch::after_call_of_constant(Machine& m, const Op& op, const AnyView& result) {
  Any held(result);
  instrument(m, op, false, m.frame_ + 1, {}, &held);
  return held.leak();
}

}  // namespace tenon::vm
