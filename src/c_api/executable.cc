// The C interface's programs and machines.

#include <cstring>
#include <memory>
#include <vector>

#include "c_api/entry.h"
#include "c_api/instrument.h"
#include "c_api/own_folder.h"
#include "device/host_check.h"
#include "device/parallel.h"
#include "object/array.h"
#include "object/map.h"
#include "object/reflect.h"
#include "support/text.h"
#include "vm/builtin/register.h"
#include "vm/interp/machine.h"

namespace {

using namespace tenon;
using c_api::give;
using c_api::guard;
using c_api::need;
using c_api::view;
using vm::Machine;
using vm::Program;
using vm::SignatureType;

// A parameter or result as C sees it; texts borrow from the program's unit or from this struct.
struct ValueInfo {
  std::string name, type;
  std::vector<int64_t> dims;
  std::vector<tenon_text> symbols;
  tenon_value_info info{};
};
struct SignatureInfo {
  std::vector<std::unique_ptr<ValueInfo>> params, results;
};

struct ProgramHandle : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::CApiProgram;
  static constexpr int32_t kTypeLast = kTypeIndex;
  Ref<Program> program;
  std::vector<SignatureInfo> signatures;  // by function
  explicit ProgramHandle(Ref<Program> p) : program(std::move(p)) {}
};

struct MachineHandle : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::CApiMachine;
  static constexpr int32_t kTypeLast = kTypeIndex;
  bool naive = false;
  std::unique_ptr<c_api::HostInstrument> instrument;
  Machine machine;
  MachineHandle(Ref<Program> program, const vm::Limits& limits, vm::MachineOptions options)
      : naive(options.naive), machine(std::move(program), limits, options) {}
};

// Registers the handles' type names, for messages.
void register_handles() {
  static const TypeInfo program = type_of<ProgramHandle>("tenon.Program", {}),
                        machine = type_of<MachineHandle>("tenon.Machine", {});
  register_types({&program, &machine});
}

tenon_text text_of(const std::string& s) {
  return {s.c_str(), s.size()};
}

int32_t kind_of(const SignatureType& t) {
  using Kind = SignatureType::Kind;
  switch (t.kind) {
    case Kind::Tensor:
      return TENON_TENSOR;
    case Kind::Shape:
      return TENON_SHAPE;
    case Kind::Scalar:
      return t.dtype.is_bool() ? TENON_BOOL : t.dtype.is_float() ? TENON_FLOAT : TENON_INT;
    case Kind::Tuple:
    case Kind::Array:
      return TENON_ARRAY;
    case Kind::Function:
      return TENON_FUNCTION;
    default:
      return TENON_NONE;
  }
}

std::unique_ptr<ValueInfo> value_info(const std::string& name, const SignatureType& type) {
  auto v = std::make_unique<ValueInfo>();
  v->name = name;
  v->type = to_text(type);
  v->info.name = text_of(v->name);
  v->info.type = text_of(v->type);
  v->info.kind = kind_of(type);
  v->info.dtype = type.dtype;
  v->info.rank = static_cast<int32_t>(type.rank);
  if (type.dims_known) {
    for (const vm::SignatureDim& d : type.dims) {
      v->dims.push_back(d.value);
      v->symbols.push_back(text_of(d.text));  // the unit lives as long as the program
    }
    v->dims.push_back(0);  // so that rank 0 also has a non-null pointer
    v->symbols.push_back({});
    v->info.dims = v->dims.data();
    v->info.symbols = v->symbols.data();
  }
  return v;
}

SignatureInfo signature_of(const vm::FunctionUnit& f) {
  SignatureInfo s;
  for (const vm::Param& p : f.params) s.params.push_back(value_info(p.name, p.type));
  const std::span<const SignatureType> results = f.result.results();
  for (size_t i = 0; i < results.size(); ++i) {
    s.results.push_back(value_info(i < f.result_names.size() ? f.result_names[i] : "", results[i]));
  }
  return s;
}

template <class T>
T& handle(const tenon_any* a, const char* what) {
  need(a != nullptr, what);
  auto* object = view(a).as_object<T>();  // may be null even if the type index matches
  if (!object) c_api::fail_type(what, view(a).type_index);
  return *object;
}
ProgramHandle& program_of(const tenon_any* a) {
  return handle<ProgramHandle>(a, "not a program");
}
MachineHandle& machine_of(const tenon_any* a) {
  return handle<MachineHandle>(a, "not a machine");
}
vm::ClosureObj& closure_of(const tenon_any* a) {
  const bool is_function = c_api::object_in<FunctionObj>(a) != nullptr;
  auto* closure = is_function ? vm::ClosureObj::of_program(view(a), nullptr) : nullptr;
  need(closure != nullptr, "not a function of a program");
  return *closure;
}

constexpr char kName[] = "function must not be NULL";
constexpr char kArgs[] = "args must not be NULL, nor n negative";
constexpr char kOutputs[] = "outputs must not be NULL, nor their number negative";

// Maps -1 to `none`.
int64_t or_none(int64_t v, int64_t none) {
  need(v >= -1, "a limit is negative; use -1 for none");
  return v == -1 ? none : v;
}

// Finds a file's weights by name.
struct Weights {
  Map<String, Tensor> by_name;
  Tensor operator()(std::string_view name) const {
    const Tensor* found = by_name.find(String(name));
    return found ? *found : Tensor();
  }
};

vm::ProgramOptions options_of(const tenon_load_options* given) {
  tenon_load_options load = TENON_LOAD_DEFAULTS;
  if (given) {
    constexpr size_t kFirst = offsetof(tenon_load_options, weights);
    load = c_api::with_defaults(*given, load, kFirst, "tenon_load_options");
  }
  need((load.flags & ~TENON_UNTRUSTED) == 0, "unknown flags for loading a program");
  vm::register_builtins();
  vm::ProgramOptions options;
  options.trusted = !(load.flags & TENON_UNTRUSTED);
  options.library_dirs = {c_api::own_folder()};
  options.limits.deadline =
      std::chrono::nanoseconds(or_none(load.deadline_ns, options.limits.deadline.count()));
  options.limits.memory = static_cast<size_t>(or_none(load.memory, 0));
  need(load.memory != 0, "the memory limit for loading is 0; use -1 for none");
  need(load.modules || load.module_count == 0, "modules must not be NULL");
  for (size_t i = 0; i < load.module_count; ++i) {
    const std::string what = cat("modules[", i, "] of tenon_load_options is not a module");
    options.modules.push_back(c_api::take<Module>(load.modules + i, what.c_str()));
  }
  if (load.name) options.read.name = printable(load.name);
  if (load.weights) {
    const char* what = "the weights are not a map from names to tensors";
    options.weights = Weights{c_api::take<Map<String, Tensor>>(load.weights, what)};
  }
  return options;
}

void give_program(tenon_any* out, Ref<Program> program) {
  register_handles();
  auto h = make<ProgramHandle>(std::move(program));
  for (const vm::FunctionUnit& f : h->program->unit().functions) {
    h->signatures.push_back(signature_of(f));
  }
  give(out, Any(Ref<Object>(std::move(h))));
}

const vm::Unit& unit_of(const tenon_any* program) {
  return program_of(program).program->unit();
}

void give_texts(tenon_any* out, const std::vector<std::string>& texts) {
  need(out, "out must not be NULL");
  Array<Any> array;
  for (const std::string& text : texts) array.push_back(Any(text));
  give(out, array);
}

const SignatureInfo& signature_named(const tenon_any* program, const char* function) {
  ProgramHandle& h = program_of(program);
  need(function != nullptr, "the function's name must not be NULL");
  return h.signatures[h.program->exported(function)];
}

void value_at(const std::vector<std::unique_ptr<ValueInfo>>& values, int32_t index,
              tenon_value_info* out) {
  if (index < 0 || static_cast<size_t>(index) >= values.size()) {
    c_api::fail_index("a function has no parameter or result at this index", index, values.size());
  }
  const size_t size = c_api::known_size(*out, sizeof(tenon_value_info), "tenon_value_info");
  std::memcpy(static_cast<void*>(out), &values[static_cast<size_t>(index)]->info, size);
  out->size = static_cast<uint32_t>(size);
}

vm::Limits limits_of(const tenon_limits& given) {
  const tenon_limits limits =
      c_api::with_defaults(given, TENON_NO_LIMITS, sizeof(tenon_limits), "tenon_limits");
  need(limits.memory != 0, "the memory limit of a call is 0; use -1 for none");
  static_assert(kMostThreads == TENON_MOST_THREADS);
  need(limits.threads >= 0, "the number of threads is negative; use 0 for all");
  vm::Limits out;
  // A new limit doesn't compile here until it is named, and set below.
  auto& [fuel, deadline, memory, depth, stack_bytes, threads] = out;
  fuel = or_none(limits.fuel, fuel);
  deadline = std::chrono::nanoseconds(or_none(limits.deadline_ns, deadline.count()));
  memory = static_cast<size_t>(or_none(limits.memory, 0));
  depth = static_cast<uint32_t>(std::min<int64_t>(or_none(limits.depth, depth), 1 << 28));
  stack_bytes = static_cast<size_t>(or_none(limits.stack_bytes, static_cast<int64_t>(stack_bytes)));
  threads = limits.threads;
  return out;
}

std::span<const AnyView> views(const tenon_any* values, int32_t n, const char* what) {
  need(n >= 0 && (values || n == 0), what);
  return {reinterpret_cast<const AnyView*>(values), static_cast<size_t>(n)};
}

// Stores the result of `call(machine)`.
template <class Call>
int call_on(const tenon_any* machine, tenon_any* result, Call&& call) {
  return guard([&] {
    need(result, "result must not be NULL");
    // A packed function called here may release the caller's reference to the machine.
    const Ref<MachineHandle> held(&machine_of(machine));
    const c_api::HostInstrument::Scope scope(held->instrument.get());
    give(result, call(held->machine));
  });
}

}  // namespace

extern "C" {

int tenon_program_load(const char* path, tenon_any* out) {
  return tenon_program_load_with(path, nullptr, out);
}

int tenon_program_load_with(const char* path, const tenon_load_options* options, tenon_any* out) {
  return guard([&] {
    need(path && out, "path and out must not be NULL");
    give_program(out, Program::load(path, options_of(options)));
  });
}

int tenon_program_from_bytes(const void* data, size_t size, const tenon_load_options* options,
                             tenon_any* out) {
  return guard([&] {
    need((data || size == 0) && out, "data and out must not be NULL");
    give_program(out,
                 Program::load_bytes({static_cast<const char*>(data), size}, options_of(options)));
  });
}

tenon_text tenon_program_file(const tenon_any* program) {
  const auto* handle = c_api::object_in<ProgramHandle>(program);
  if (!handle) return {nullptr, 0};
  // Every program of this interface comes from a file.
  const FileBytes& file = *handle->program->file();
  return {file.data, file.size};
}

int tenon_program_functions(const tenon_any* program, tenon_any* out) {
  return guard([&] { give_texts(out, unit_of(program).exported_names()); });
}

int tenon_program_types(const tenon_any* program, tenon_any* out) {
  return guard([&] { give_texts(out, unit_of(program).types); });
}

int tenon_program_signature(const tenon_any* program, const char* function, int32_t* params,
                            int32_t* results) {
  return guard([&] {
    const SignatureInfo& s = signature_named(program, function);
    if (params) *params = static_cast<int32_t>(s.params.size());
    if (results) *results = static_cast<int32_t>(s.results.size());
  });
}

int tenon_program_param(const tenon_any* program, const char* function, int32_t index,
                        tenon_value_info* out) {
  return guard([&] {
    need(out != nullptr, "out must not be NULL");
    value_at(signature_named(program, function).params, index, out);
  });
}

int tenon_program_result(const tenon_any* program, const char* function, int32_t index,
                         tenon_value_info* out) {
  return guard([&] {
    need(out != nullptr, "out must not be NULL");
    value_at(signature_named(program, function).results, index, out);
  });
}

int tenon_machine_create(const tenon_any* program, tenon_any* out) {
  return tenon_machine_create_with(program, nullptr, out);
}

int tenon_machine_create_with(const tenon_any* program, const tenon_machine_options* options,
                              tenon_any* out) {
  return guard([&] {
    need(out != nullptr, "out must not be NULL");
    tenon_machine_options given = TENON_MACHINE_DEFAULTS;
    if (options) {
      given = c_api::with_defaults(*options, given, offsetof(tenon_machine_options, inter_op),
                                   "tenon_machine_options");
    }
    need(given.memory == TENON_MEMORY_POOLED || given.memory == TENON_MEMORY_NAIVE,
         "the memory of a machine must be TENON_MEMORY_POOLED or TENON_MEMORY_NAIVE");
    need(given.inter_op >= 0, "the number of threads for groups of calls is negative");
    const vm::MachineOptions machine_options{.naive = given.memory == TENON_MEMORY_NAIVE,
                                             .inter_op = given.inter_op};
    const vm::Limits limits = given.limits ? limits_of(*given.limits) : vm::Limits();
    give(out, Any(Ref<Object>(
                  make<MachineHandle>(program_of(program).program, limits, machine_options))));
  });
}

int tenon_machine_memory(const tenon_any* machine, tenon_memory_stats* out) {
  return guard([&] {
    need(out != nullptr, "out must not be NULL");
    const size_t size =
        c_api::known_size(*out, offsetof(tenon_memory_stats, call_bytes), "tenon_memory_stats");
    MachineHandle& m = machine_of(machine);
    const vm::PoolStats stats = m.machine.memory();
    const auto number = [](size_t n) { return static_cast<int64_t>(n); };
    const tenon_memory_stats all = {
        .size = out->size,
        .memory = m.naive ? TENON_MEMORY_NAIVE : TENON_MEMORY_POOLED,
        .allocated = number(stats.allocated),
        .peak = number(stats.peak),
        .pooled = number(stats.pooled),
        .call_peak = number(stats.call_peak),
        .allocations = number(stats.allocations),
        .system_allocations = number(stats.system_allocations),
        .call_bytes = number(stats.call_bytes),
    };
    std::memcpy(out, &all, size);
  });
}

int tenon_machine_trim(const tenon_any* machine) {
  return guard([&] { machine_of(machine).machine.trim(); });
}

namespace {
// A struct, whose name is shorter than a lambda's: a std::function keeps it as text.
struct Seeing {
  c_api::HostInstrument* instrument;
  auto operator()(const vm::CallEvent& e) const { return instrument->see(e); }
};
}  // namespace

int tenon_machine_set_instrument(const tenon_any* machine, tenon_instrument instrument,
                                 void* context, void (*release)(void* context)) {
  return guard([&] {
    MachineHandle& m = machine_of(machine);
    m.machine.set_instrument(nullptr);  // fails while a call runs
    m.instrument = nullptr;
    if (!instrument) return;
    m.instrument = std::make_unique<c_api::HostInstrument>(m.machine, instrument, context, release);
    m.machine.set_instrument(Seeing{m.instrument.get()});
  });
}

int tenon_program_function(const tenon_any* program, const char* name, const tenon_limits* limits,
                           tenon_any* out) {
  return guard([&] {
    need(name && out, "name and out must not be NULL");
    const Program& p = *program_of(program).program;
    give(out, Any(p.function(name, limits ? limits_of(*limits) : vm::Limits())));
  });
}

int tenon_program_module(const tenon_any* program, const tenon_limits* limits, tenon_any* out) {
  return guard([&] {
    need(out, "out must not be NULL");
    const Program& p = *program_of(program).program;
    give(out, p.module(limits ? limits_of(*limits) : vm::Limits()));
  });
}

int tenon_function_cancel(const tenon_any* function) {
  return guard([&] { closure_of(function).cancel(); });
}

int tenon_function_call_into(const tenon_any* function, const tenon_any* args, int32_t n,
                             const tenon_any* outputs, int32_t output_count, tenon_any* result) {
  return guard([&] {
    need(result, "result must not be NULL");
    const Ref<vm::ClosureObj> held(&closure_of(function));
    give(result, held->call_into(views(args, n, kArgs), views(outputs, output_count, kOutputs)));
  });
}

int tenon_function_bind(const tenon_any* function, const tenon_any* args, int32_t n,
                        tenon_any* out) {
  return guard([&] {
    need(out, "out must not be NULL");
    give(out, Any(closure_of(function).bound(views(args, n, kArgs))));
  });
}

int tenon_host_check_set(int (*check)(void)) {
  set_host_check(check);
  return 0;
}

int tenon_host_check_request(const tenon_any* callee) {
  return guard([&] {
    if (auto* closure = c_api::object_in<FunctionObj>(callee)
                            ? vm::ClosureObj::of_program(view(callee), nullptr)
                            : nullptr) {
      closure->request_check();
    } else if (!c_api::object_in<FunctionObj>(callee)) {
      machine_of(callee).machine.request_check();
    }
  });
}

int tenon_machine_call(const tenon_any* machine, const char* function, const tenon_any* args,
                       int32_t n, tenon_any* result) {
  return call_on(machine, result, [&](Machine& m) {
    need(function, kName);
    return m.call(function, views(args, n, kArgs));
  });
}

int tenon_machine_call_into(const tenon_any* machine, const char* function, const tenon_any* args,
                            int32_t n, const tenon_any* outputs, int32_t output_count,
                            tenon_any* result) {
  return call_on(machine, result, [&](Machine& m) {
    need(function, kName);
    return m.call_into(function, views(args, n, kArgs), views(outputs, output_count, kOutputs));
  });
}

int tenon_machine_call_function(const tenon_any* machine, const tenon_any* function,
                                const tenon_any* args, int32_t n, tenon_any* result) {
  return call_on(machine, result, [&](Machine& m) {
    need(function, kName);
    return m.call_value(admit(view(function)), views(args, n, kArgs));
  });
}

int tenon_machine_set_limits(const tenon_any* machine, const tenon_limits* limits) {
  return guard([&] {
    need(limits != nullptr, "limits must not be NULL");
    machine_of(machine).machine.set_limits(limits_of(*limits));
  });
}

int tenon_machine_cancel(const tenon_any* machine) {
  return guard([&] { machine_of(machine).machine.cancel(); });
}

}  // extern "C"
