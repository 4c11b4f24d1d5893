// Sequences of calls of the C interface with values of every type, also of wrong ones: values, host
// memory, host functions, programs (instruction_generator.h), machines, instruments, limits and
// errors. Host functions make such calls themselves while a machine runs, and release what it uses.
// A call that fails must leave an error that isn't a bug of Tenon, and its `out` as it was; one
// that succeeds, no error. What the host lends must be released exactly once.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "host_memory.h"
#include "instruction_generator.h"
#include "object/tensor.h"
#include "sequence.h"
#include "tenon/c_api.h"
#include "vm/builtin/register.h"
#include "vm/executable/write_file.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

// A value that this code owns.
class Value {
 public:
  Value() = default;
  explicit Value(const tenon_any& immediate) : value_(immediate) {}
  Value(Value&& other) noexcept : value_(std::exchange(other.value_, kNone)) {}
  Value& operator=(Value other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() { tenon_any_release(&value_); }
  operator tenon_any*() { return &value_; }
  operator const tenon_any*() const { return &value_; }
  const tenon_any& get() const { return value_; }

 private:
  static constexpr tenon_any kNone = TENON_NONE_VALUE;
  tenon_any value_ = TENON_NONE_VALUE;
};

class Sequence;
// The sequence that runs now, for the functions that programs call.
Sequence* running = nullptr;

class Sequence {
 public:
  Sequence(Choices choices, const std::vector<std::string>& files)
      : choices_(std::move(choices)), files_(files) {
    running = this;
  }
  ~Sequence() { running = nullptr; }

  SequenceOutcome outcome;

  void run() {
    for (uint64_t calls = 5 + choices_.below(60); calls > 0 && outcome.problem.empty(); --calls)
      step();
    // In any order.
    for (size_t n = 0; n < kSlots; ++n) tenon_any_release(slot());
  }

  // What a host function and an instrument do: a few calls more, and any result.
  int call_back(tenon_any* result) {
    if (depth_ < 3) {
      ++depth_;
      for (uint64_t calls = choices_.below(4); calls > 0 && outcome.problem.empty(); --calls)
        step();
      --depth_;
    }
    switch (choices_.below(8)) {
      case 0:
        tenon_error_set(static_cast<int32_t>(choices_.below(4)), "the host fails");
        return -1;
      case 1:
        return -1;
      case 2:
        return 0;
      default:
        return expect(tenon_any_copy(slot(), result), "tenon_any_copy") ? 0 : -1;
    }
  }

  int see(const tenon_call_event* event) {
    for (int32_t i = 0; i < event->arg_count; ++i) {
      Value text;
      expect(tenon_any_repr(event->args + i, text), "tenon_any_repr");
    }
    if (choices_.one_in(4)) {
      Value ignored;
      if (call_back(ignored) != 0) return -1;
    }
    if (event->kind != TENON_CALL_KERNEL && choices_.one_in(4)) {
      expect(tenon_any_copy(slot(), event->result), "tenon_any_copy");
    }
    return event->before && choices_.one_in(6) ? TENON_INSTRUMENT_SKIP : TENON_INSTRUMENT_CONTINUE;
  }

 private:
  static constexpr size_t kSlots = 12;

  tenon_any* slot() { return slots_[choices_.below(kSlots)]; }
  // One of that type, if there is any.
  tenon_any* slot_of(int32_t type) {
    size_t at = choices_.below(kSlots);
    for (size_t n = 0; n < kSlots; ++n, at = (at + 1) % kSlots) {
      if (slots_[at].get().type_index == type) return slots_[at];
    }
    return slots_[at];
  }
  // Mostly a program or machine, whose types have no names here.
  tenon_any* handle(const char* key) {
    if (choices_.one_in(16)) return slot();
    size_t at = choices_.below(kSlots);
    for (size_t n = 0; n < kSlots; ++n, at = (at + 1) % kSlots) {
      Value name;
      if (tenon_type_key(slots_[at], name) == 0 && text(name) == key) return slots_[at];
    }
    return slots_[at];
  }
  static std::string_view text(const tenon_any* value) {
    const tenon_text t = tenon_string_view(value);
    return {t.data ? t.data : "", t.size};
  }

  // Checks how a call ended; whether it succeeded.
  bool expect(int code, const char* what) {
    Value error;
    tenon_error_take(error);
    const int32_t kind = tenon_error_kind(error);
    if (code >= 0) {
      ++outcome.values;
      if (kind >= 0) outcome.problem = cat(what, " succeeded, and left an error");
      return true;
    }
    ++outcome.errors;
    Value whole, parts;
    if (kind < 0) {
      outcome.problem = cat(what, " failed without an error");
    } else if (tenon_error_text(error, whole) != 0 || tenon_error_parts(error, parts) != 0) {
      outcome.problem = cat(what, " left an error that can't be read");
    } else if (kind == TENON_ERROR_INTERNAL) {
      outcome.problem = cat(what, ": ", text(whole));
    }
    return false;
  }
  // The same for a call that gives a value, in a slot, which must not change on failure.
  template <class Call>
  void expect_value(const char* what, Call&& call) {
    tenon_any* const out = slot();
    const tenon_any before = *out;
    const int depth_before = depth_;
    const long steps_before = steps_;
    const int code = call(out);
    // Host functions may have stored other values meanwhile.
    const bool alone = depth_before == depth_ && steps_ == steps_before;
    if (code < 0 && alone && std::memcmp(&before, out, sizeof before) != 0) {
      outcome.problem = cat(what, " failed, and changed its out");
    }
    expect(code, what);
  }

  // Arguments, which this code owns during a call. Some are immediate.
  class Arguments {
   public:
    Arguments(Sequence& s, size_t count) : owned_(count) {
      for (Value& value : owned_) value = s.argument();
      for (const Value& value : owned_) views_.push_back(value.get());
    }
    const tenon_any* data() const { return views_.data(); }
    size_t size() const { return views_.size(); }
    int32_t count() const { return static_cast<int32_t>(views_.size()); }

    std::vector<Value>& owned() { return owned_; }
    void renew() {
      views_.clear();
      for (const Value& value : owned_) views_.push_back(value.get());
    }

   private:
    std::vector<Value> owned_;
    std::vector<tenon_any> views_;
  };

  Value argument() {
    tenon_any a = TENON_NONE_VALUE;
    switch (choices_.below(12)) {
      case 0:
        return {};
      case 1:
        a.type_index = TENON_INT;
        a.v.i = any_number(choices_);
        return Value(a);
      case 2:
        a.type_index = TENON_BOOL;
        a.v.i = static_cast<int64_t>(choices_.below(2));
        return Value(a);
      case 3:
        a.type_index = TENON_FLOAT;
        a.v.f = 0.5;
        return Value(a);
      case 4:
        a.type_index = TENON_RAW_STRING;
        a.v.c_str = "a text from outside";
        return Value(a);
      case 5:
        a.type_index = TENON_DTYPE;
        a.v.dtype = any_dtype(choices_);
        return Value(a);
      case 6:
        a.type_index = TENON_DEVICE;
        a.v.device = kHost;
        return Value(a);
      case 7:
        if (choices_.one_in(4)) {  // a type of objects without an object
          a.type_index = TENON_OBJECT_BEGIN + static_cast<int32_t>(choices_.below(8));
          return Value(a);
        }
        [[fallthrough]];
      default: {
        Value copy;
        expect(tenon_any_copy(slot(), copy), "tenon_any_copy");
        return copy;
      }
    }
  }

  void make_host_tensor() {
    const HostTensor host(choices_);
    void* const block = host.tensor.data;
    expect_value("tenon_tensor_from_memory", [&](tenon_any* out) {
      return tenon_tensor_from_memory(&host.tensor, choices_.one_in(2), block, take_back, out);
    });
  }

  void take_managed() {
    if (choices_.one_in(2)) {
      expect_value("tenon_tensor_from_dlpack", [&](tenon_any* out) {
        return tenon_tensor_from_dlpack(lend_managed<DLManagedTensor>(choices_), choices_.one_in(2),
                                        out);
      });
      return;
    }
    expect_value("tenon_tensor_from_dlpack_versioned", [&](tenon_any* out) {
      auto* tensor = lend_managed<DLManagedTensorVersioned>(choices_);
      tensor->version = {1, 0};
      tensor->flags = choices_.below(2);
      return tenon_tensor_from_dlpack_versioned(tensor, out);
    });
  }
  template <class Managed>
  void give_managed(int (*give)(const tenon_any*, Managed**), int (*take)(Managed*, tenon_any*),
                    const char* what) {
    Managed* made = nullptr;
    if (!expect(give(slot_of(TENON_TENSOR), &made), what)) return;
    if (choices_.one_in(2)) return made->deleter(made);
    expect_value(what, [&](tenon_any* out) { return take(made, out); });
  }

  static int host_function(void*, const tenon_any*, int32_t, tenon_any* result) {
    return running ? running->call_back(result) : 0;
  }
  static int instrument(void*, const tenon_call_event* event) { return running->see(event); }

  tenon_limits limits() {
    tenon_limits l = TENON_NO_LIMITS;
    l.fuel = 500;
    l.deadline_ns = 2'000'000'000;
    l.memory = choices_.one_in(8) ? any_number(choices_) : 1 << 20;
    l.threads = 1;
    l.depth = choices_.one_in(8) ? any_number(choices_) : 50;
    l.stack_bytes = choices_.one_in(8) ? any_number(choices_) : 1 << 16;
    if (choices_.one_in(32)) l.size = static_cast<uint32_t>(choices_.below(64));
    return l;
  }

  void load_program() {
    tenon_load_options options = TENON_LOAD_DEFAULTS;
    options.flags = choices_.one_in(2) ? TENON_UNTRUSTED : 0;
    if (choices_.one_in(8)) options.memory = static_cast<int64_t>(choices_.below(4000));
    if (choices_.one_in(8)) options.deadline_ns = static_cast<int64_t>(choices_.below(100));
    if (choices_.one_in(16)) options.flags = static_cast<int32_t>(choices_.below(8));
    if (choices_.one_in(4)) options.name = "\x1b[1mname\xff";
    if (choices_.one_in(8)) options.weights = slot_of(TENON_MAP);
    if (choices_.one_in(8)) {
      options.modules = slot_of(TENON_MODULE);
      options.module_count = 1;
    }
    if (choices_.one_in(32)) options.size = static_cast<uint32_t>(choices_.below(80));
    const std::string& file = files_[choices_.below(files_.size())];
    expect_value("tenon_program_from_bytes", [&](tenon_any* out) {
      return tenon_program_from_bytes(file.data(), file.size(), &options, out);
    });
  }

  void make_machine() {
    tenon_limits l = limits();
    tenon_machine_options options = TENON_MACHINE_DEFAULTS;
    options.memory = static_cast<int32_t>(choices_.below(2));
    options.limits = &l;
    if (choices_.one_in(16)) options.inter_op = static_cast<int32_t>(any_number(choices_));
    // With more than one, host functions would run concurrently.
    options.inter_op = std::min(options.inter_op, 1);
    tenon_any* program = handle("tenon.Program");
    expect_value("tenon_machine_create_with",
                 [&](tenon_any* out) { return tenon_machine_create_with(program, &options, out); });
  }

  // The name of an exported function, and arguments for it. Programs number their functions.
  struct Target {
    std::string name;
    size_t params = 0;
  };
  Target target() {
    Target t{"none", choices_.below(4)};
    Value names, name;
    tenon_any* program = handle("tenon.Program");
    if (!expect(tenon_program_functions(program, names), "tenon_program_functions")) return t;
    const auto count = static_cast<size_t>(tenon_array_size(names));
    if (count == 0) return t;
    if (!expect(tenon_array_get(names, choices_.below(count), name), "tenon_array_get")) return t;
    t.name = text(name);
    int32_t params = 0, results = 0;
    expect(tenon_program_signature(program, t.name.c_str(), &params, &results),
           "tenon_program_signature");
    if (!choices_.one_in(8)) t.params = static_cast<size_t>(params);
    tenon_value_info info{};
    info.size = sizeof info;
    const auto at = static_cast<int32_t>(choices_.below(5)) - 1;
    expect(tenon_program_param(program, t.name.c_str(), at, &info), "tenon_program_param");
    expect(tenon_program_result(program, t.name.c_str(), at, &info), "tenon_program_result");
    return t;
  }

  void call_machine() {
    const Target t = target();
    const Arguments args(*this, t.params);
    const Arguments into(*this, choices_.below(3));
    tenon_any* const machine = handle("tenon.Machine");
    const uint64_t how = choices_.below(4);
    if (how == 0) {
      Value held;  // the caller's own reference, as for arguments
      expect(tenon_any_copy(slot_of(TENON_FUNCTION), held), "tenon_any_copy");
      expect_value("tenon_machine_call_function", [&](tenon_any* out) {
        return tenon_machine_call_function(machine, held, args.data(), args.count(), out);
      });
    } else if (how == 1) {
      expect_value("tenon_machine_call_into", [&](tenon_any* out) {
        return tenon_machine_call_into(machine, t.name.c_str(), args.data(), args.count(),
                                       into.data(), into.count(), out);
      });
    } else {
      expect_value("tenon_machine_call", [&](tenon_any* out) {
        return tenon_machine_call(machine, t.name.c_str(), args.data(), args.count(), out);
      });
    }
  }

  void call_function() {
    const Arguments args(*this, choices_.below(4));
    const Arguments into(*this, choices_.below(3));
    tenon_any* const function = slot_of(TENON_FUNCTION);
    switch (choices_.below(4)) {
      case 0:
        return expect_value("tenon_function_bind", [&](tenon_any* out) {
          return tenon_function_bind(function, args.data(), args.count(), out);
        });
      case 1:
        return expect_value("tenon_function_call_into", [&](tenon_any* out) {
          return tenon_function_call_into(function, args.data(), args.count(), into.data(),
                                          into.count(), out);
        });
      default:
        return expect_value("tenon_function_call", [&](tenon_any* out) {
          return tenon_function_call(function, args.data(), args.count(), out);
        });
    }
  }

  void make_host_object() {
    static const char* const kFields[] = {"first", "second"};
    const size_t count = choices_.below(3);
    int32_t type = 0;
    static const char* const kKeys[] = {"host.None", "host.One", "host.Two"};
    if (!expect(tenon_type_register(kKeys[count], kFields, count, &type), "tenon_type_register")) {
      return;
    }
    const Arguments fields(*this, choices_.one_in(8) ? choices_.below(4) : count);
    void* const data = lend(8);
    bool made = false;
    expect_value("tenon_object_create", [&](tenon_any* out) {
      const int code =
          tenon_object_create(type, fields.data(), fields.size(), data, take_back, out);
      made = code == 0;
      return code;
    });
    if (!made) take_back(data);
  }

  void make_function() {
    void* const context = lend(16);
    bool made = false;
    expect_value("tenon_function_create", [&](tenon_any* out) {
      const int code = tenon_function_create(host_function, context, take_back, out);
      made = code == 0;
      return code;
    });
    if (!made) take_back(context);
  }

  void set_instrument() {
    tenon_any* const machine = handle("tenon.Machine");
    if (choices_.one_in(4)) {
      expect(tenon_machine_set_instrument(machine, nullptr, nullptr, nullptr),
             "tenon_machine_set_instrument");
      return;
    }
    void* const context = lend(16);
    if (!expect(tenon_machine_set_instrument(machine, instrument, context, take_back),
                "tenon_machine_set_instrument")) {
      take_back(context);
    }
  }

  void make_strings() {
    static constexpr std::string_view kTexts[] = {
        "", "a", "seven..", "eight...", "a text of more bytes", "\xc3\xa4", "\xff"};
    std::vector<tenon_text> elements;
    const std::vector<int64_t> shape = any_dims(choices_);
    size_t count = 1;
    for (int64_t size : shape) count *= size < 0 || size > kLargest ? 1 : static_cast<size_t>(size);
    if (count > 4096) return;
    for (size_t i = 0; i < count; ++i) {
      const std::string_view t = kTexts[choices_.below(choices_.one_in(64) ? 7 : 6)];
      elements.push_back({t.data(), t.size()});
    }
    // Elements must be as many as the shape says.
    if (std::ranges::any_of(shape, [](int64_t size) { return size > kLargest; })) return;
    expect_value("tenon_string_tensor_create", [&](tenon_any* out) {
      return tenon_string_tensor_create(elements.data(), shape.data(),
                                        static_cast<int32_t>(shape.size()), out);
    });
  }

  void make_text() {
    const std::string bytes(choices_.below(40), choices_.one_in(8) ? '\xff' : 'x');
    const bool text = choices_.one_in(2);
    expect_value(text ? "tenon_string_create" : "tenon_bytes_create", [&](tenon_any* out) {
      return text ? tenon_string_create(bytes.data(), bytes.size(), out)
                  : tenon_bytes_create(bytes.data(), bytes.size(), out);
    });
  }

  void make_tensor() {
    const std::vector<int64_t> shape = any_dims(choices_);
    const DLDevice device = choices_.one_in(32) ? DLDevice{kDLCUDA, 0} : kHost;
    const DLDataType type = any_dtype(choices_);
    const auto bytes = byte_count(shape, DataType(type));
    if (bytes && *bytes > 1 << 26) return;  // more than a sanitizer grants
    Value made;
    if (!expect(tenon_tensor_create(shape.data(), static_cast<int32_t>(shape.size()), type, device,
                                    made),
                "tenon_tensor_create")) {
      return;
    }
    std::memset(tenon_tensor_view(made)->data, 0, bytes_of(shape, type));
    expect(tenon_any_copy(made, slot()), "tenon_any_copy");
  }

  void make_module() {
    Arguments keys(*this, choices_.below(3)), functions(*this, keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      expect(tenon_string_create(i == 0 ? "f" : "a.longer.name", i == 0 ? 1 : 13, keys.owned()[i]),
             "tenon_string_create");
      expect(tenon_any_copy(slot_of(TENON_FUNCTION), functions.owned()[i]), "tenon_any_copy");
    }
    keys.renew();
    functions.renew();
    Value map;
    if (!expect(tenon_map_create(keys.data(), functions.data(), keys.size(), map),
                "tenon_map_create")) {
      return;
    }
    expect_value("tenon_module_create",
                 [&](tenon_any* out) { return tenon_module_create("host", map, out); });
  }

  void make_container() {
    const Arguments items(*this, choices_.below(5));
    switch (choices_.below(4)) {
      case 0:
        return expect_value("tenon_array_create", [&](tenon_any* out) {
          return tenon_array_create(items.data(), items.size(), out);
        });
      case 1:
        return expect_value("tenon_cell_create", [&](tenon_any* out) {
          return tenon_cell_create(static_cast<int64_t>(choices_.below(4)) - choices_.one_in(32),
                                   items.data(), items.size(), out);
        });
      case 2: {
        const std::vector<int64_t> shape = any_dims(choices_);
        return expect_value("tenon_shape_create", [&](tenon_any* out) {
          return tenon_shape_create(shape.data(), shape.size(), out);
        });
      }
      default: {
        const Arguments keys(*this, items.size());
        return expect_value("tenon_map_create", [&](tenon_any* out) {
          return tenon_map_create(keys.data(), items.data(), items.size(), out);
        });
      }
    }
  }

  void look_at_values() {
    tenon_any* const value = slot();
    const size_t index = choices_.below(4);
    switch (choices_.below(14)) {
      case 0:
        return expect_value("tenon_any_repr",
                            [&](tenon_any* out) { return tenon_any_repr(value, out); });
      case 1:
        return expect_value("tenon_array_get", [&](tenon_any* out) {
          return tenon_array_get(slot_of(TENON_ARRAY), index, out);
        });
      case 2: {
        tenon_any* const map = slot_of(TENON_MAP);
        return expect_value("tenon_map_get",
                            [&](tenon_any* out) { return tenon_map_get(map, value, out); });
      }
      case 3: {
        Value key, entry;
        expect(tenon_map_entry(slot_of(TENON_MAP), index, key, entry), "tenon_map_entry");
        return;
      }
      case 4: {
        int64_t tag = 0;
        size_t size = 0;
        const tenon_any* fields = tenon_cell_view(slot_of(TENON_CELL), &tag, &size);
        if (fields && index < size)
          expect(tenon_any_copy(fields + index, slot()), "tenon_any_copy");
        return;
      }
      case 5:
        return expect_value("tenon_type_key",
                            [&](tenon_any* out) { return tenon_type_key(value, out); });
      case 6: {
        Value names, name;
        if (!expect(tenon_object_fields(value, names), "tenon_object_fields")) return;
        if (tenon_array_size(names) <= static_cast<int64_t>(index)) return;
        if (!expect(tenon_array_get(names, index, name), "tenon_array_get")) return;
        const std::string field(text(name));
        return expect_value("tenon_object_field", [&](tenon_any* out) {
          return tenon_object_field(value, field.c_str(), out);
        });
      }
      case 7:
        expect(tenon_any_equal(value, slot()), "tenon_any_equal");
        return;
      case 8:
        tenon_string_tensor_element(slot_of(TENON_TENSOR), index);
        tenon_tensor_flags(slot_of(TENON_TENSOR));
        tenon_shape_view(value, nullptr);
        tenon_object_data(value);
        tenon_map_size(value);
        return;
      case 9:
        return expect_value("tenon_module_functions", [&](tenon_any* out) {
          return tenon_module_functions(slot_of(TENON_MODULE), out);
        });
      case 10:
        return expect_value("tenon_module_function", [&](tenon_any* out) {
          return tenon_module_function(slot_of(TENON_MODULE), "f", out);
        });
      case 11:
        expect(tenon_module_import(slot_of(TENON_MODULE), slot_of(TENON_MODULE)),
               "tenon_module_import");
        return;
      case 12:
        return expect_value("tenon_program_types", [&](tenon_any* out) {
          return tenon_program_types(handle("tenon.Program"), out);
        });
      default: {
        const tenon_text file = tenon_program_file(handle("tenon.Program"));
        if (!file.data) return;
        return expect_value("tenon_program_from_bytes", [&](tenon_any* out) {
          return tenon_program_from_bytes(file.data, file.size, nullptr, out);
        });
      }
    }
  }

  void handle_errors() {
    tenon_any* const parts = choices_.one_in(2) ? nullptr : slot_of(TENON_ARRAY);
    switch (choices_.below(5)) {
      case 0:
        return expect_value("tenon_error_create", [&](tenon_any* out) {
          return tenon_error_create(static_cast<int32_t>(choices_.below(6)) - 1, "a message", parts,
                                    out);
        });
      case 1:
        return expect_value("tenon_error_parts", [&](tenon_any* out) {
          return tenon_error_parts(slot_of(TENON_ERROR), out);
        });
      case 2:
        return expect_value("tenon_error_text", [&](tenon_any* out) {
          return tenon_error_text(slot_of(TENON_ERROR), out);
        });
      case 3:
        tenon_error_message(slot_of(TENON_ERROR));
        return;
      default:
        if (tenon_error_restore(slot_of(TENON_ERROR)) == 0) {
          tenon_last_error();
        } else {
          expect(-1, "tenon_error_restore");
        }
    }
  }

  void change_machine() {
    tenon_any* const machine = handle("tenon.Machine");
    const tenon_limits l = limits();
    switch (choices_.below(7)) {
      case 0:
        expect(tenon_machine_set_limits(machine, &l), "tenon_machine_set_limits");
        return;
      case 1:
        expect(tenon_machine_trim(machine), "tenon_machine_trim");
        return;
      case 2: {
        tenon_memory_stats stats{};
        stats.size = sizeof stats;
        expect(tenon_machine_memory(machine, &stats), "tenon_machine_memory");
        return;
      }
      case 3:
        expect(tenon_machine_cancel(machine), "tenon_machine_cancel");
        return;
      case 4:
        expect(tenon_function_cancel(slot_of(TENON_FUNCTION)), "tenon_function_cancel");
        return;
      case 5:
        expect(tenon_host_check_request(choices_.one_in(2) ? machine : slot_of(TENON_FUNCTION)),
               "tenon_host_check_request");
        return;
      default:
        set_instrument();
    }
  }

  void make_program_function() {
    const tenon_limits l = limits();
    const Target t = target();
    tenon_any* const program = handle("tenon.Program");
    if (choices_.one_in(4)) {
      return expect_value("tenon_program_module",
                          [&](tenon_any* out) { return tenon_program_module(program, &l, out); });
    }
    expect_value("tenon_program_function", [&](tenon_any* out) {
      return tenon_program_function(program, t.name.c_str(), &l, out);
    });
  }

  void step() {
    ++steps_;
    // Most sequences begin with a program and a machine.
    if (steps_ <= 3 && !choices_.one_in(8)) return steps_ < 3 ? load_program() : make_machine();
    using Step = void (Sequence::*)();
    static constexpr Step kSteps[] = {
        &Sequence::load_program,
        &Sequence::make_machine,
        &Sequence::make_machine,
        &Sequence::call_machine,
        &Sequence::call_machine,
        &Sequence::call_machine,
        &Sequence::call_machine,
        &Sequence::call_function,
        &Sequence::call_function,
        &Sequence::make_function,
        &Sequence::make_container,
        &Sequence::make_container,
        &Sequence::make_tensor,
        &Sequence::make_strings,
        &Sequence::make_text,
        &Sequence::make_host_tensor,
        &Sequence::take_managed,
        &Sequence::make_host_object,
        &Sequence::look_at_values,
        &Sequence::look_at_values,
        &Sequence::look_at_values,
        &Sequence::change_machine,
        &Sequence::change_machine,
        &Sequence::handle_errors,
        &Sequence::make_module,
        &Sequence::exchange,
        &Sequence::make_program_function,
        &Sequence::drop,
    };
    (this->*choices_.of(kSteps))();
  }

  void exchange() {
    if (choices_.one_in(2)) {
      return give_managed<DLManagedTensorVersioned>(tenon_tensor_to_dlpack_versioned,
                                                    tenon_tensor_from_dlpack_versioned,
                                                    "tenon_tensor_to_dlpack_versioned");
    }
    give_managed<DLManagedTensor>(
        tenon_tensor_to_dlpack,
        [](DLManagedTensor* t, tenon_any* out) { return tenon_tensor_from_dlpack(t, 0, out); },
        "tenon_tensor_to_dlpack");
  }

  void drop() { tenon_any_release(slot()); }

  Choices choices_;
  const std::vector<std::string>& files_;
  Value slots_[kSlots];
  int depth_ = 0;
  long steps_ = 0;
};

// Programs that call host functions, the same in each process.
std::vector<std::string> make_files() {
  vm::register_builtins();
  tenon_any function = TENON_NONE_VALUE;
  tenon_function_create([](void*, const tenon_any*, int32_t,
                           tenon_any* result) { return running ? running->call_back(result) : 0; },
                        nullptr, nullptr, &function);
  tenon_function_register("test.call_back", &function, TENON_FOR_FILES);
  tenon_any_release(&function);
  constexpr uint64_t kPrograms = 24;
  std::vector<std::string> files;
  for (uint64_t number = 0; number < kPrograms; ++number) {
    Choices choices(number);
    files.push_back(vm::write_to_bytes(make_unit(choices).unit));
  }
  return files;
}

}  // namespace

SequenceOutcome tenon::fuzz::call_c_api(Choices choices) {
  static const std::vector<std::string> files = make_files();
  const long lent_before = lent;
  SequenceOutcome outcome;
  {
    Sequence sequence(std::move(choices), files);
    sequence.run();
    outcome = sequence.outcome;
  }
  if (outcome.problem.empty() && lent != lent_before) {
    outcome.problem = cat(lent - lent_before, " things that the host lent are not released");
  }
  lent = lent_before;
  return outcome;
}
