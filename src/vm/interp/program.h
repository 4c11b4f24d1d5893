// Program: an executable with its functions resolved, its constants bound and its code pre-decoded.
// Immutable and shared by threads, except that the slots of packed functions may change,
// atomically.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/work_budget.h"
#include "object/module.h"
#include "vm/executable/kernel_object.h"
#include "vm/executable/late_constants.h"
#include "vm/executable/read_file.h"
#include "vm/interp/idle_machines.h"
#include "vm/interp/op.h"
#include "vm/interp/values.h"

namespace tenon::vm {

struct ProgramOptions {
  // If false, the untrusted policy: only functions registered `for_files`, no library, and kernels
  // only compiled from the file's computes.
  bool trusted = true;
  // Runs only bytecode, also where the file has compiled code.
  bool bytecode_only = false;
  // Searched for packed functions before the registry.
  std::vector<Module> modules;
  // Folders searched for the shared objects of libraries that aren't loaded yet: a file's library
  // NAME is "libtenon_NAME.so" (object/library.h).
  std::vector<std::string> library_dirs;
  // The CPU features (names of cpu_features.def) that selected code may use; by default those of
  // this machine.
  std::optional<std::vector<std::string>> cpu_features;
  // Leaves slots without a function empty; calling one is an error. For tools that only inspect.
  bool allow_missing = false;
  // The source of constants that the file leaves out.
  WeightSource weights;
  // Limits for loading, including linking; calls have their own limits (account.h).
  WorkLimits limits;
  ReadOptions read;
};

class Program : public Object {
 public:
  static constexpr int32_t kTypeIndex = TypeIndex::VmProgram;
  static constexpr int32_t kTypeLast = kTypeIndex;

  // Maps, verifies and links the file; an untrusted file is copied, not mapped. Errors: Usage for a
  // file that can't be read; Damaged for its content; Unsupported for missing libraries, functions
  // and CPU features, by name; Runtime for a limit.
  static Ref<Program> load(const std::string& path, ProgramOptions options = {});
  // The same for a file that was mapped or read before.
  static Ref<Program> load_file(const Ref<FileBytes>& file, const ProgramOptions& options = {});
  // The same for bytes, which are copied.
  static Ref<Program> load_bytes(std::string_view bytes, const ProgramOptions& options = {});
  // Verifies and links a unit made in memory.
  static Ref<Program> from_unit(Unit unit, ProgramOptions options = {});

  Program();

  const Unit& unit() const { return unit_; }
  // The bytes of the file; null for a unit made in memory.
  const FileBytes* file() const { return file_.get(); }
  const std::string& name() const { return name_; }
  // The index of an exported function; a Usage error that lists the functions if there is none.
  uint32_t exported(std::string_view function) const;
  const FunctionCode& code(uint32_t function_index) const {
    return decoded_.functions[function_index];
  }
  const FunctionUnit& function_unit(const FunctionCode& code) const {
    return unit_.functions[code.index];
  }
  const DecodedCode& decoded() const { return decoded_; }
  // Its compiled code; null if only bytecode runs.
  const CodeTable* compiled() const { return compiled_; }
  // Whether it was loaded as a trusted file (ProgramOptions).
  bool trusted() const { return trusted_; }
  // A number unique to this Program in the process; never 0.
  uint64_t number() const { return number_; }

  // An exported function as a value, which any number of threads may call at once. `limits` apply
  // to each call. Errors as for `exported`.
  Function function(std::string_view name, const Limits& limits = {}) const;
  // The exported functions as a module of kind "executable", each made by `function`.
  Module module(const Limits& limits = {}) const;

  // Calls one of its functions with the captures and then the arguments, on an idle machine: for
  // function values that are called outside of any machine's call.
  Any call_on_idle(const FunctionCode& code, std::span<const Any> captures,
                   std::span<const AnyView> args, const Ref<const Account>& account,
                   Outputs* outputs) const {
    return idle_.call(*this, code, captures, args, account, outputs);
  }

  // Where an op comes from; empty if that isn't known.
  Span span_of(const Op* op) const;
  // A backtrace line for an op: "fused_add at net.tn:12:3, instruction 17: call_packed".
  std::string frame_text(const Op* op) const;
  // Where the function's instruction at that offset comes from; null if the file doesn't tell.
  static const CodeSpan* span_at(const FunctionUnit& function, uint32_t offset);

  // Whether there is nothing left to prepare for that many threads (Limits::threads): the program
  // uses no library and calls no kernel, or a machine has already begun to.
  bool needs_no_preparation(int32_t threads) const;
  // Claims the preparation: true for the first caller, which must then prepare.
  bool begins_preparing(int32_t threads) const;

  // Throws an error of that kind unless captures and arguments together are the function's
  // parameters.
  void check_arity(const FunctionCode& code, size_t captures, size_t arguments,
                   ErrorKind kind) const {
    if (captures + arguments != static_cast<size_t>(code.params)) [[unlikely]]
      fail_arity(code, captures, arguments, kind);
  }

  // Replaces a packed function, for all machines from their next call on.
  void replace_packed(uint32_t index, Function function) const;

 private:
  [[noreturn]] void fail_arity(const FunctionCode& code, size_t captures, size_t arguments,
                               ErrorKind kind) const;
  static Ref<Program> read(const Ref<FileBytes>& file, const ProgramOptions& options);
  void link(const ProgramOptions& options);
  // Makes calls under those limits ready, as a machine does.
  void prepare(const Limits& limits) const;
  void refuse_native() const;
  void use_libraries(const ProgramOptions& options);
  void open_kernels(const ProgramOptions& options);
  void link_packed(const ProgramOptions& options);
  // What calls of the file's packed function of that name run; null if it is missing.
  std::unique_ptr<PackedTarget> kernel_target(const std::string& name) const;
  std::unique_ptr<PackedTarget> function_target(const std::string& name,
                                                const ProgramOptions& options) const;
  Ref<KernelObject> compile_computes() const;
  void set_target(PackedSlot& slot, std::unique_ptr<PackedTarget> target) const;

  // Destroyed after the constants: libraries keep data derived from constants until the program's
  // end.
  struct Libraries {
    std::vector<Module> used;
    ~Libraries();
  } libraries_;
  Ref<FileBytes> file_;
  Unit unit_;
  std::string name_;
  bool trusted_ = true;
  uint64_t number_;
  DecodedCode decoded_;
  mutable std::unique_ptr<PackedSlot[]> slots_;
  Ref<KernelObject> kernels_;
  const CodeTable* compiled_ = nullptr;  // of kernels_
  mutable std::mutex mutex_;             // guards targets_
  // Targets live as long as the Program: a machine may still be running a replaced one.
  mutable std::vector<std::unique_ptr<PackedTarget>> targets_;
  mutable std::atomic<uint64_t> prepared_{0};  // a bit for each number of threads
  IdleMachines idle_;                          // destroyed first: machines refer to the code
};

// The Usage error that a program has no exported function of that name, but those of `names`.
Error unknown_function(std::string_view program, std::string_view function,
                       std::vector<std::string> names);

}  // namespace tenon::vm
