#include "vm/interp/kernel_runtime.h"

#include <cstdlib>

#include "device/parallel.h"
#include "object/function.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/machine.h"
#include "vm/isa/instruction.h"

namespace tenon::vm {
namespace {

std::string dtype_text(int64_t word) {
  return to_text(Arg(ArgKind::Dtype, word).as_dtype());
}

std::string place(int32_t argument, int32_t axis) {
  std::string out;
  if (argument >= 0) out = cat("argument ", argument);
  if (axis >= 0) out += cat(out.empty() ? "" : ", ", "axis ", axis);
  return out;
}

Error kernel_error(const char* kernel, KernelError code, int32_t argument, int32_t axis,
                   int64_t found, int64_t expected) {
  std::string name = printable(kernel ? kernel : "?");
  auto refused = [&](std::string found_text, std::string expected_text) {
    Error e(ErrorKind::Runtime, cat("kernel '", name, "' refuses its arguments"));
    if (argument >= 0 || axis >= 0) e.where(place(argument, axis));
    e.found(std::move(found_text));
    if (!expected_text.empty()) e.expected(std::move(expected_text));
    return e;
  };
  auto stopped = [&](std::string message) {
    Error e(ErrorKind::Runtime, std::move(message));
    e.where(
        cat("kernel '", name, "'", argument >= 0 || axis >= 0 ? ", " : "", place(argument, axis)));
    return e;
  };
  switch (code) {
    case KernelError::ArgumentCount:
      return refused(cat(found, " arguments"), cat(expected));
    case KernelError::NotATensor:
      return refused(type_name(static_cast<int32_t>(found)), "a tensor");
    case KernelError::NotAnInteger:
      return refused(type_name(static_cast<int32_t>(found)), "an integer");
    case KernelError::Dtype:
      return refused(dtype_text(found), dtype_text(expected));
    case KernelError::Rank:
      return refused(cat("rank ", found), cat("rank ", expected));
    case KernelError::Dimension:
      return refused(cat(found), cat(expected));
    case KernelError::Device:
      return refused(device_text(Arg(ArgKind::Device, found).as_device()),
                     device_text(Arg(ArgKind::Device, expected).as_device()));
    case KernelError::NotCompact:
      return refused(cat("a stride of ", found), cat(expected, ", as of a compact tensor"));
    case KernelError::Alignment:
      return refused(cat("an address ", found, " bytes past alignment"),
                     cat("a multiple of ", expected));
    case KernelError::NotWritable:
      return refused("a read-only tensor", "one that may be written");
    case KernelError::Overlap:
      return refused(cat("memory of argument ", found), "memory of its own for an output");
    case KernelError::NullData:
      return refused("no data", "data for its elements");
    case KernelError::IntegerRange:
      return refused(cat(found), cat("within ", expected));
    case KernelError::IndexOutOfRange:
      return stopped("an index is out of range")
          .found(cat(found))
          .expected(cat("an index into ", expected, " elements"));
    case KernelError::DivisionByZero:
      return stopped("an integer is divided by zero");
    case KernelError::NegativeSize:
      return stopped("a size is negative").found(cat(found));
    case KernelError::OutOfMemory:
      return stopped("no memory is left for a kernel's workspace").found(cat(found, " bytes"));
    case KernelError::Overflow:
      return stopped("a size overflows").found(cat(found));
  }
  return stopped(cat("kernel error ", static_cast<int32_t>(code)));
}

int32_t raise(const KernelRuntime*, const char* kernel, KernelError code, int32_t argument,
              int32_t axis, int64_t found, int64_t expected) {
  try {
    set_error(kernel_error(kernel, code, argument, axis, found, expected));
  } catch (...) {
    set_current_exception();
  }
  return -1;
}

int32_t run_loop(const KernelRuntime*, KernelBody body, void* context, int64_t count,
                 int64_t grain) {
  ParallelLoop loop;
  loop.n = count;
  loop.grain = grain < 1 ? 1 : grain;
  loop.body = body;
  loop.context = context;
  return parallel_table().run(&loop);
}

// Ahead of every workspace: its machine and size. A whole alignment, so that the rest is aligned.
struct alignas(kDataAlignment) Workspace {
  Machine* machine;
  size_t bytes;
};

void* allocate(const KernelRuntime* self, const char* kernel, uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 47;
  size_t total = sizeof(Workspace) + (bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  Machine* machine = Machine::current();
  bool fits = bytes <= kMost && (!machine || machine->count_memory(total));
  auto* workspace =
      fits ? static_cast<Workspace*>(std::aligned_alloc(kDataAlignment, total)) : nullptr;
  if (!workspace) {
    if (fits && machine) machine->discount_memory(total);
    self->raise(self, kernel, KernelError::OutOfMemory, -1, -1, static_cast<int64_t>(bytes), 0);
    return nullptr;
  }
  workspace->machine = machine;
  workspace->bytes = total;
  return workspace + 1;
}

void give_back(const KernelRuntime*, void* memory) {
  if (!memory) return;
  Workspace* workspace = static_cast<Workspace*>(memory) - 1;
  if (workspace->machine) workspace->machine->discount_memory(workspace->bytes);
  std::free(workspace);
}

constexpr KernelRuntime kRuntime = {
    kKernelAbiVersion, sizeof(KernelRuntime), &raise, &run_loop, &allocate, &give_back};

}  // namespace

const KernelRuntime& kernel_runtime() {
  return kRuntime;
}

}  // namespace tenon::vm
