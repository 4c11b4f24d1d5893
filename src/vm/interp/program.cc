#include "vm/interp/program.h"

#include <algorithm>

#include "object/library.h"
#include "object/registry.h"
#include "support/failures.h"
#include "support/phase.h"
#include "support/text.h"
#include "vm/executable/kernel_runtime.h"
#include "vm/executable/verify.h"
#include "vm/interp/decode.h"
#include "vm/interp/machine.h"
#include "vm/isa/operand_index.h"

namespace tenon::vm {
namespace {

// Of the compiler's library: compiles the computes of a file.
constexpr char kCompileKernels[] = "tenon.compile_kernels";

// The file's native code; null if this machine can run none of it, and the file's computes can be
// compiled instead.
Ref<KernelObject> open_native(const Unit& unit, const FileBytes* file, const std::string& name,
                              const ProgramOptions& options) {
  try {
    return KernelObject::open_best(unit, name, options.cpu_features, file);
  } catch (const Error& error) {
    // Code that is compiled here would use more features than the options allow.
    const bool can_compile =
        !unit.computes.empty() && !options.cpu_features && find_function(kCompileKernels);
    if (error.kind() != ErrorKind::Unsupported || !can_compile) throw;
    return {};
  }
}

bool calls_kernels(const Unit& unit) {
  return std::any_of(unit.packed.begin(), unit.packed.end(),
                     [](const PackedName& p) { return p.kernel; });
}

// A file's library NAME is "tenon_NAME" in the process. Null if there is none.
Module library_named(const std::string& name, const ProgramOptions& options) {
  if (!is_library_name(name)) return Module();
  return load_library(cat("tenon_", name), options.library_dirs);
}

std::unique_ptr<PackedTarget> target_of(const Function& function) {
  auto target = std::make_unique<PackedTarget>();
  target->call = function.get()->call;
  target->self = function.get();
  target->owner = function.ref();
  return target;
}

}  // namespace

Program::Program() {
  static constinit std::atomic<uint64_t> last{0};
  number_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Program::Libraries::~Libraries() {
  for (const Module& library : used) {
    for (const Function& end : library.get()->at_program_end) {
      Any nothing;
      (void)end.call(nullptr, 0, &nothing);
    }
  }
}

Ref<Program> Program::load(const std::string& path, ProgramOptions options) {
  if (options.read.name == ReadOptions().name) options.read.name = path;
  const BudgetedWork work(options.limits, "loading", options.read.name);
  return read(options.trusted ? map_file(path) : read_whole_file(path), options);
}

Ref<Program> Program::load_file(const Ref<FileBytes>& file, const ProgramOptions& options) {
  const BudgetedWork work(options.limits, "loading", options.read.name);
  return read(file, options);
}

Ref<Program> Program::load_bytes(std::string_view bytes, const ProgramOptions& options) {
  const BudgetedWork work(options.limits, "loading", options.read.name);
  charge(bytes.size());
  return read(copy_bytes(bytes), options);
}

Ref<Program> Program::read(const Ref<FileBytes>& file, const ProgramOptions& options) {
  const Phase loading("load");
  auto program = make<Program>();
  program->name_ = options.read.name;
  program->file_ = file;
  program->unit_ = read_unit(file, options.read).unit;
  program->link(options);
  return program;
}

Ref<Program> Program::from_unit(Unit unit, ProgramOptions options) {
  const BudgetedWork work(options.limits, "loading", options.read.name);
  const Phase loading("load");
  auto program = make<Program>();
  program->name_ = options.read.name;
  verify(unit, {.name = options.read.name});
  // Constants never change, whatever their source.
  for (Constant& c : unit.constants) {
    if (c.value.type_index == TypeIndex::Tensor) c.value = Any(c.value.as<Tensor>().as_constant());
  }
  program->unit_ = std::move(unit);
  program->link(options);
  return program;
}

// Refuses what an untrusted file must not have: libraries, and native kernels without their
// computes; and shared objects.
void Program::refuse_native() const {
  const bool has_computes = !calls_kernels(unit_) || !unit_.computes.empty();
  if (unit_.libraries.empty() && has_computes && !unit_.shared_code) return;
  // Computes replace oneDNN and kernels, but no function of another library.
  const bool can_keep_computes =
      std::ranges::all_of(unit_.libraries, [](const auto& name) { return name == "onednn"; });
  throw failure(
      ErrorKind::Unsupported, cat(name_, " can't be loaded as an untrusted file"),
      unit_.shared_code ? "a shared object, which is native code"
      : unit_.libraries.empty()
          ? "native code without its computes"
          : cat(unit_.libraries.size() == 1 ? "the required library " : "the required libraries ",
                printable(join(unit_.libraries, ", "))),
      "bytecode that calls functions registered for files, and kernels as computes")
      .help(can_keep_computes
                ? "compile it to a .tnx file with --keep-computes (keep_computes=True in Python), "
                  "or load it as trusted (without --untrusted) if you trust its sender as for any "
                  "program"
                : "a program that needs a library can't be an untrusted file, not with "
                  "--keep-computes either: load it as trusted (without --untrusted) if you trust "
                  "its sender as for any program");
}

// Compiles the file's computes for this machine; the file's own native code is ignored.
Ref<KernelObject> Program::compile_computes() const {
  if (unit_.computes.empty()) return {};
  const Function compile = find_function(kCompileKernels);
  if (!compile) {
    throw failure(ErrorKind::Unsupported,
                  cat(name_, " has kernels that this process can't compile"),
                  cat("kernels as computes, but no function ", kCompileKernels, " in this process"),
                  "the compiler's library, which compiles them")
        .help(trusted_ ? "load libtenon_compiler first"
                       : "load libtenon_compiler first, or load the file as trusted");
  }
  const Any object = compile(Bytes(unit_.computes), String(name_));
  return KernelObject::open(object.as<Bytes>().view(), name_);
}

void Program::link(const ProgramOptions& options) {
  trusted_ = options.trusted;
  if (!options.trusted) refuse_native();
  use_libraries(options);
  if (!options.allow_missing) bind_late_constants(unit_, options.weights, name_);
  // Everything else has been checked: now open the native code.
  open_kernels(options);
  link_packed(options);
  decoded_ = predecode(unit_, {slots_.get(), unit_.packed.size()});
}

void Program::use_libraries(const ProgramOptions& options) {
  std::vector<std::string> missing;
  for (const std::string& name : unit_.libraries) {
    Module library;
    try {
      library = library_named(name, options);
    } catch (const Error&) {
      if (!options.allow_missing) throw;
    }
    if (!library) {
      missing.push_back(printable(name));
      continue;
    }
    for (const Function& start : library.get()->at_program_start) start();
    libraries_.used.push_back(std::move(library));
  }
  if (missing.empty() || options.allow_missing) return;
  throw failure(ErrorKind::Unsupported, cat(name_, " needs libraries that this process lacks"),
                cat("no ", join(missing, ", ")))
      .help(
          "load libtenon_NAME.so of each first (with `tenon`, --custom FOLDER/libtenon_NAME.so), "
          "or "
          "put it beside the runtime; a file that needs only onednn can be compiled with "
          "--libraries none");
}

void Program::open_kernels(const ProgramOptions& options) {
  const bool is_needed = calls_kernels(unit_);
  const bool runs_native = options.trusted && !unit_.kernels.empty();
  if (!is_needed && (!runs_native || options.bytecode_only)) return;
  const Phase opening("open_kernels");
  try {
    if (options.trusted) kernels_ = open_native(unit_, file(), name_, options);
    if (!kernels_) kernels_ = compile_computes();
    if (kernels_ && !options.bytecode_only) compiled_ = kernels_->code_of(unit_, name_);
  } catch (const Error& error) {
    // Where there is no compiled code for this machine, bytecode runs.
    const bool can_do_without = !is_needed && error.kind() == ErrorKind::Unsupported;
    if (!options.allow_missing && !can_do_without) throw;
  }
}

void Program::link_packed(const ProgramOptions& options) {
  charge(unit_.packed.size() * (sizeof(PackedSlot) + sizeof(PackedTarget)));
  slots_ = std::make_unique<PackedSlot[]>(unit_.packed.size());
  std::vector<std::string> missing;
  for (size_t i = 0; i < unit_.packed.size(); ++i) {
    const PackedName& p = unit_.packed[i];
    slots_[i].name = p.name;
    slots_[i].kernel = p.kernel;
    if (auto target = p.kernel ? kernel_target(p.name) : function_target(p.name, options)) {
      set_target(slots_[i], std::move(target));
    } else {
      missing.push_back(cat(p.kernel ? "kernel " : "function ", printable(p.name)));
    }
  }
  if (missing.empty() || options.allow_missing) return;
  throw failure(ErrorKind::Unsupported,
                cat(name_, " calls functions that ",
                    options.trusted ? "aren't registered" : "untrusted files may not call"),
                cat("no ", join_some(missing)))
      .help(options.trusted ? "register them before you load it"
                            : "register them with TENON_FOR_FILES, or load it as trusted");
}

std::unique_ptr<PackedTarget> Program::kernel_target(const std::string& name) const {
  const KernelEntryFunction entry = kernels_ ? kernels_->find(name) : nullptr;
  if (!entry) return nullptr;
  auto target = std::make_unique<PackedTarget>();
  target->call = entry;
  target->self = const_cast<KernelRuntime*>(&kernel_runtime());
  target->owner = kernels_;
  return target;
}

std::unique_ptr<PackedTarget> Program::function_target(const std::string& name,
                                                       const ProgramOptions& options) const {
  Function function;
  for (const std::span<const Module> modules :
       {std::span<const Module>(options.modules), std::span<const Module>(libraries_.used)}) {
    for (const Module& module : modules) {
      if (!function) function = module.find(name);
    }
  }
  const auto registered = find_registered(name);
  if (!function && registered && (options.trusted || registered->flags.for_files))
    function = registered->function;
  if (!function) return nullptr;
  auto target = target_of(function);
  target->prepares =
      registered && registered->flags.prepares && registered->function.get() == function.get();
  return target;
}

void Program::set_target(PackedSlot& slot, std::unique_ptr<PackedTarget> target) const {
  std::lock_guard lock(mutex_);
  targets_.push_back(std::move(target));
  slot.target.store(targets_.back().get(), std::memory_order_release);
}

void Program::replace_packed(uint32_t index, Function function) const {
  if (index >= unit_.packed.size() || !function) {
    throw Error(ErrorKind::Usage, "there is no such packed function to replace");
  }
  set_target(slots_[index], target_of(function));
}

uint32_t Program::exported(std::string_view function) const {
  const int64_t i = unit_.find_exported(function);
  if (i >= 0) return static_cast<uint32_t>(i);
  throw unknown_function(name_, function, unit_.exported_names());
}

Error unknown_function(std::string_view program, std::string_view function,
                       std::vector<std::string> names) {
  const std::string near = nearest(function, names);
  for (std::string& name : names) name = printable(name);
  Error error(ErrorKind::Usage, cat(program, " has no function '", printable(function), "'"));
  error.expected(names.empty() ? "no name: it exports no functions" : join(names, ", "));
  if (!near.empty()) error.help(cat("did you mean '", printable(near), "'?"));
  return error;
}

void Program::fail_arity(const FunctionCode& code, size_t captures, size_t arguments,
                         ErrorKind kind) const {
  const FunctionUnit& function = function_unit(code);
  std::vector<std::string> wanted;
  for (size_t i = captures; i < function.params.size(); ++i) {
    const Param& p = function.params[i];
    wanted.push_back(printable(cat(p.name, ": ", p.type)));
  }
  throw_failure(
      kind,
      cat("function '", printable(function.name), "' is called with the wrong number of arguments"),
      cat(arguments), cat(wanted.size(), " (", join(wanted, ", "), ")"));
}

const CodeSpan* Program::span_at(const FunctionUnit& function, uint32_t offset) {
  const auto after = std::ranges::upper_bound(function.spans, offset, {}, &CodeSpan::offset);
  return after == function.spans.begin() ? nullptr : &after[-1];
}

Span Program::span_of(const Op* op) const {
  uint32_t offset = 0;
  const FunctionCode* code = decoded_.locate(op, &offset);
  const CodeSpan* span = code ? span_at(function_unit(*code), offset) : nullptr;
  return span ? unit_.spans[span->span] : Span();
}

std::string Program::frame_text(const Op* op) const {
  uint32_t offset = 0;
  const FunctionCode* code = decoded_.locate(op, &offset);
  if (!code) return "the host";
  const FunctionUnit& f = function_unit(*code);
  std::string out = printable(f.name);
  if (const CodeSpan* span = span_at(f, offset)) {
    std::string text = to_text(unit_.spans[span->span]);
    if (!text.empty()) out += cat(" at ", printable(text));
  }
  Instruction in;
  decode(f.code, offset, &in);
  out += cat(", instruction ", op - code->entry, ": ", in.info->mnemonic);
  if (in.opcode() == Opcode::CallPacked) {
    out += cat(" ",
               printable(unit_.packed[in.arg(operand(Opcode::CallPacked, "callee")).index()].name));
  }
  return out;
}

Function Program::function(std::string_view name, const Limits& limits) const {
  const FunctionCode& code = decoded_.functions[exported(name)];
  prepare(limits);
  return Function::adopt(
      ClosureObj::of(*this, code, 0, Account::of(Machine::checked(limits), make<RunningCalls>())));
}

namespace {

uint64_t bit_of(int32_t threads) {
  return uint64_t{1} << std::clamp(threads, 0, 63);
}

}  // namespace

bool Program::needs_no_preparation(int32_t threads) const {
  return (prepared_.load(std::memory_order_relaxed) & bit_of(threads)) ||
         (libraries_.used.empty() && !calls_kernels(unit_));
}

[[gnu::cold]] void Program::prepare(const Limits& limits) const {
  if (needs_no_preparation(limits.threads)) return;
  Machine(Ref<Program>(const_cast<Program*>(this)), limits);  // prepares as it is made
}

[[gnu::cold]] bool Program::begins_preparing(int32_t threads) const {
  const uint64_t bit = bit_of(threads);
  return !needs_no_preparation(threads) &&
         !(prepared_.fetch_or(bit, std::memory_order_relaxed) & bit);
}

namespace {

// A struct, whose name is shorter than a lambda's: a std::function keeps it as text.
struct Exported {
  Ref<const Program> program;
  Limits limits;
  Function operator()(std::string_view function) const {
    const bool found = program->unit().find_exported(function) >= 0;
    return found ? program->function(function, limits) : Function();
  }
};

}  // namespace

Module Program::module(const Limits& limits) const {
  return Module("executable", name_, Exported{Ref<const Program>(this), limits},
                unit_.exported_names());
}

}  // namespace tenon::vm
