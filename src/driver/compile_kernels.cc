#include "driver/compile_kernels.h"

#include "codegen/llvm/compile_stack.h"
#include "codegen/llvm/emit.h"
#include "device/call_context.h"
#include "driver/compile.h"
#include "graph/ir/text.h"
#include "loop/schedule.h"
#include "loop/walk.h"
#include "support/phase.h"
#include "vm/executable/file_format.h"

namespace tenon::driver {
namespace {

// Limits, because schedules and LLVM take more than linear time for large expressions and can't be
// interrupted within a kernel. Kernels of models stay far below them.
constexpr size_t kMaxText = size_t{64} << 20, kMaxKernels = 65536, kMaxNodes = 20000;

constexpr std::string_view kWritten = "computes as `tenon compile --keep-computes` writes them";

class NodeCount {
 public:
  void add(const loop::ExprRef& root) {
    loop::post_order(
        root, [this](const loop::ExprRef&) { ++count_; }, &seen_);
  }
  size_t count() const { return count_; }

 private:
  loop::Seen seen_;
  size_t count_ = 0;
};

// Counts the nodes of all expressions, and statements or stages.
size_t size_of(const loop::KernelInterfaceRef& kernel) {
  NodeCount nodes;
  size_t parts = 0;
  auto* repeated = kernel.as<loop::Recurrence>();
  if (auto* compute = repeated ? repeated->step.get() : kernel.as<loop::Compute>()) {
    for (const auto& stage : compute->stages) {
      ++parts;
      for (const loop::ExprRef& e : loop::stage_exprs(*stage)) nodes.add(e);
    }
  } else {
    loop::for_each_stmt(kernel.as<loop::Kernel>()->body, [&](const loop::StmtRef& s) {
      ++parts;
      for (const loop::ExprRef& e : loop::direct_exprs(*s)) nodes.add(e);
    });
  }
  return parts + nodes.count();
}

Error damaged(const std::string& file, std::string_view found, std::string_view expected) {
  return Error(ErrorKind::Damaged, cat("the kernels of ", file, " can't be compiled"))
      .found(found)
      .expected(expected)
      .help(vm::kDamagedHelp);
}

Map<String, loop::KernelInterfaceRef> read_kernels(std::string_view text, const std::string& file) {
  if (text.size() > kMaxText) {
    throw damaged(file, bytes_text(text.size()), cat("at most ", bytes_text(kMaxText)));
  }
  Map<String, loop::KernelInterfaceRef> kernels;
  try {
    kernels = graph::parse_kernels(text, cat("kernels of ", file));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Usage) throw;
    throw damaged(file, error.message(), kWritten).at(error.span());
  }
  if (kernels.size() > kMaxKernels) {
    throw damaged(file, cat(kernels.size(), " kernels"), cat("at most ", kMaxKernels));
  }
  return kernels;
}

std::vector<uint8_t> compile(std::string_view text, const std::string& file) {
  const codegen::Target target = codegen::host_target();
  loop::ScheduleOptions how;
  how.target = target.facts();
  Array<loop::KernelRef> nests;
  for (const auto& [name, kernel] : read_kernels(text, file)) {
    poll();
    if (const size_t nodes = size_of(kernel); nodes > kMaxNodes) {
      throw damaged(file, cat("kernel '", printable(name.view()), "' of ", nodes, " expressions"),
                    cat("at most ", kMaxNodes));
    }
    try {
      nests.push_back(loop::loop_nest(kernel, name, how));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Usage) throw;
      throw damaged(file, cat("kernel '", printable(name.view()), "': ", error.message()),
                    kWritten);
    }
  }
  poll();
  codegen::EmitOptions emit;
  emit.clear_scratch = true;
  return codegen::compile_kernels(nests, target, emit);
}

}  // namespace

std::string kernels_text(const graph::Module& lowered) {
  return graph::to_text(graph::make_module({}, lowered->kernels));
}

std::vector<uint8_t> compile_kernels(std::string_view text, const std::string& file) {
  Phase phase(kCompileKernelsPhase, Phase::Within::Included);
  initialise();
  std::vector<uint8_t> object;
  codegen::run_with_compile_stack([&] { object = compile(text, file); });
  return object;
}

}  // namespace tenon::driver
