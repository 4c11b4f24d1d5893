// Program: an executable with its functions resolved, its constants bound and its code pre-decoded.
// Immutable and shared by threads; only the slots of packed functions may change, each as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/module.h"
#include "vm/executable/kernel_object.h"
#include "vm/executable/late_constants.h"
#include "vm/executable/read_file.h"
#include "vm/interp/op.h"
#include "vm/interp/values.h"

namespace tenon::vm {

class Machine;

struct ProgramOptions {
  // The untrusted policy: only functions registered `for_files`, no library, no native code.
  bool trusted = true;
  // Searched for packed functions before the registry.
  std::vector<Module> modules;
  // Folders where the shared objects of libraries that are not in the process yet are looked for:
  // the library that a file calls NAME is "libtenon_NAME.so" (object/library.h).
  std::vector<std::string> library_dirs;
  // The CPU features that the machine is taken to have, by the names of cpu_features.def: code that
  // needs others is not chosen. Those of this machine unless given.
  std::optional<std::vector<std::string>> cpu_features;
  // Leaves slots without a function empty: calling one is an error. For tools that only look.
  bool allow_missing = false;
  // Where the constants are that the file leaves out.
  WeightSource weights;
  // For loading, linking included; calls have limits of their own (account.h).
  LoadLimits limits;
  ReadOptions read;  // its budget is what `limits` says
};

class Program : public Object {
 public:
  static constexpr int32_t kTypeIndex = TypeIndex::VmBegin + 2;
  static constexpr int32_t kTypeLast = kTypeIndex;

  // Maps, verifies and links the file; one that isn't trusted is copied instead of mapped. Errors:
  // Usage for a file that can't be read, Damaged for its bytes, Unsupported for libraries,
  // functions and CPU features that are missing, by name, Runtime for a limit.
  static Ref<Program> load(const std::string& path, ProgramOptions options = {});
  // The same for bytes; they are copied unless `owner` keeps them.
  static Ref<Program> load_bytes(std::string_view bytes, ProgramOptions options = {},
                                 Ref<Object> owner = {});
  // Verifies and links a unit that was made in memory.
  static Ref<Program> from_unit(Unit unit, ProgramOptions options = {});

  Program();
  ~Program();

  const Unit& unit() const { return unit_; }
  const std::string& name() const { return name_; }
  // Null when there is none.
  const FunctionCode* find(std::string_view function) const;
  // Index of an exported function; a Usage error that lists what there is when there is none.
  uint32_t exported(std::string_view function) const;
  const FunctionCode& code(uint32_t function_index) const { return functions_[function_index]; }
  const FunctionUnit& function_unit(const FunctionCode& code) const {
    return unit_.functions[code.index];
  }
  bool has_native_code() const { return kernels_ != nullptr; }
  // Whether it was loaded by the policy for trusted files (ProgramOptions).
  bool trusted() const { return trusted_; }
  // Another number for each Program of the process; never 0.
  uint64_t number() const { return number_; }

  // An exported function as a value, which anybody may call, on any thread and several at once.
  // Each call is held to `limits`. A Usage error as of `exported`.
  Function function(std::string_view name, const Limits& limits = {}) const;
  // The exported functions as a module of kind "executable": each as `function` makes it.
  Module module(const Limits& limits = {}) const;

  // The function that holds the op, and the word offset of its instruction; null outside of code.
  const FunctionCode* locate(const Op* op, uint32_t* offset) const;
  // "fused_add at net.tn:12:3, instruction 17: call_packed" of an op: a backtrace's line.
  std::string frame_text(const Op* op) const;

  // Puts another function in the place of a packed one, for all machines from their next call on.
  void replace_packed(uint32_t index, Function function) const;
  const PackedSlot& slot(uint32_t index) const { return slots_[index]; }

 private:
  friend class Decoder;
  friend class Dispatch;
  friend class Machine;
  friend struct ClosureObj;

  static Ref<Program> read(const Ref<FileBytes>& file, ProgramOptions& options, LoadBudget& budget);
  void link(const ProgramOptions& options, LoadBudget& budget);
  void refuse_native() const;
  Ref<KernelObject> compile_computes() const;
  void set_target(PackedSlot& slot, std::unique_ptr<PackedTarget> target) const;
  // Calls a function value outside of any machine's call.
  Any call_on_idle(const FunctionCode& code, std::span<const Any> captures,
                   std::span<const AnyView> args, const Ref<Account>& account) const;
  std::unique_ptr<Machine> take_idle() const;
  void give_idle(std::unique_ptr<Machine> machine) const noexcept;

  // Destroyed after the constants: libraries keep what they made of these until the program's end.
  struct Libraries {
    std::vector<Module> used;
    ~Libraries();
  } libraries_;
  Unit unit_;
  std::string name_;
  bool trusted_ = true;
  uint64_t number_;
  std::vector<FunctionCode> functions_;
  std::vector<Op> ops_;               // of all functions; 0 and 1 are the entry's
  std::vector<uint32_t> op_offsets_;  // word offset of each op's instruction
  std::vector<std::unique_ptr<OpData>> operands_;
  std::vector<std::unique_ptr<Any>> immediates_;
  mutable std::unique_ptr<PackedSlot[]> slots_;
  Ref<KernelObject> kernels_;
  mutable std::mutex mutex_;  // of what follows
  // Targets are kept as long as the Program: a machine may still be in a replaced one.
  mutable std::vector<std::unique_ptr<PackedTarget>> targets_;
  mutable std::vector<std::unique_ptr<Machine>> idle_;
};

}  // namespace tenon::vm
