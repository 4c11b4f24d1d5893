// What sees a program's calls: an instrument and the trace.
#include <iterator>

#include "object/tensor.h"
#include "support/trace.h"
#include "vm/interp/dispatch.h"

namespace tenon::vm {

namespace {

trace::Kind trace_kind(CallEvent::Kind kind) {
  switch (kind) {
    case CallEvent::Kind::Function:
      return trace::Kind::Function;
    case CallEvent::Kind::Closure:
      return trace::Kind::Closure;
    case CallEvent::Kind::Packed:
      return trace::Kind::Packed;
    case CallEvent::Kind::Kernel:
      break;
  }
  return trace::Kind::Kernel;
}

// Records the beginning or end of a call (support/trace.h).
[[gnu::cold]] void record(trace::Sink& to, const CallEvent& event, size_t storage,
                          const ClosureObj* closure = nullptr) {
  const trace::Kind kind = trace_kind(event.kind);
  const bool is_library_or_kernel = kind == trace::Kind::Packed || kind == trace::Kind::Kernel;
  if (!is_library_or_kernel && !to.records_calls) return;
  uint64_t words[192] = {storage};
  size_t count = 1;
  if (!event.before) {
    return to.append(kind, true, event.caller_index, event.offset, {words, count});
  }
  if (closure) {
    words[count++] = trace::kFunction;
    words[count++] = closure->code->index;
  }
  for (const AnyView& arg : event.args) {
    if (count + 1 + kMaxRank > std::size(words)) break;
    if (arg.type_index == TypeIndex::Tensor) {
      const auto* tensor = static_cast<const TensorObj*>(arg.v.object);
      const auto rank = static_cast<uint32_t>(tensor->dl.ndim);
      words[count++] = tensor->layout << 32 | (trace::kTensor + rank);
      for (uint32_t i = 0; i < rank; ++i) {
        words[count++] = static_cast<uint64_t>(tensor->dl.shape[i]);
      }
    } else if (arg.type_index == TypeIndex::Int) {
      words[count++] = trace::kInteger;
      words[count++] = arg.v.bits;
    } else {
      words[count++] = trace::kOther;
    }
  }
  to.append(kind, false, event.caller_index, event.offset, {words, count});
}

}  // namespace

[[gnu::cold]] bool Dispatch::instrument(Machine& m, const Op& op, bool before,
                                        const Machine::Frame* frame, std::span<const AnyView> args,
                                        Any* result) {
  trace::Sink* const recorded = trace::sink.load(std::memory_order_acquire);
  // Another Program's code counts as one call and isn't instrumented.
  if (!(m.instrument_ || recorded) || m.preparing_ || m.running_ != m.home_) return false;
  CallEvent event;
  event.before = before;
  uint32_t offset = 0;
  const FunctionCode* caller = m.running_->decoded().locate(&op, &offset);
  if (!caller) return false;  // called by the host
  event.caller = m.running_->function_unit(*caller).name;
  event.caller_index = caller->index;
  event.offset = offset;
  const CallOperands& e = op.as<OpClass::Call>();
  if (e.slot) {
    event.kind = e.slot->kernel ? CallEvent::Kind::Kernel : CallEvent::Kind::Packed;
    event.callee = e.slot->name;
  } else if (e.callee) {
    event.callee = m.running_->function_unit(*e.callee).name;
  } else {
    event.kind = CallEvent::Kind::Closure;
  }
  event.depth =
      static_cast<uint32_t>(reinterpret_cast<const Machine::Frame*>(m.frames_.end()) - frame);
  event.args = args;
  event.result = result;
  event.op = &op;
  if (recorded && !before) record(*recorded, event, m.pool_->used());
  bool skips = false;
  if (m.instrument_) {
    skips = m.instrument_(event) == CallAction::Skip && before;
    if (skips && event.kind == CallEvent::Kind::Kernel && !result->is_none()) {
      throw Error(ErrorKind::Usage, "an instrument gave a kernel a result")
          .expected("none: a kernel writes to the tensors that are its last arguments");
    }
    if (before && !skips) {
      *result = Any();  // the call expects None, and may overwrite it without a release
    } else {
      admit_result(result);  // the instrument may have replaced it
      m.protect(result);
    }
  }
  if (recorded && before && !skips) {
    const bool is_closure = event.kind == CallEvent::Kind::Closure;
    record(*recorded, event, m.pool_->used(),
           is_closure ? ClosureObj::of_program(value_of(e.args[kClosure], m.base_), m.running_)
                      : nullptr);
  }
  return skips;
}

[[gnu::cold]] Any Machine::callee(const CallEvent& event) const {
  const CallOperands& e = event.op->as<OpClass::Call>();
  if (e.slot) return function_of(*e.slot);
  if (e.callee) return Function::adopt(new_closure(*e.callee, 0));
  return Any(value_of(e.args[kClosure], base_));
}

}  // namespace tenon::vm
