// What the two machines share: values, references, limits and the work of their instructions, so
// that only the encoding differs.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "code.h"
#include "object/cell.h"
#include "tenon/c_api.h"
#include "vm/interp/arithmetic.h"

namespace tenon::bench {

using vm::one_nan;  // for the expressions of opcodes.def

// A value in two words, as the product's: a tag, and a payload that may be a counted object. The
// words are copied one by one, since reading 16 bytes would stall on preceding 8-byte stores.
struct Value {
  uint64_t tag = TypeIndex::None;
  uint64_t payload = 0;

  Value() = default;
  BENCH_INLINE Value(uint64_t t, uint64_t p) : tag(t), payload(p) {}
  BENCH_INLINE Value(const Value& o) : tag(o.tag), payload(o.payload) {}
  BENCH_INLINE Value& operator=(const Value& o) {
    tag = o.tag;
    payload = o.payload;
    return *this;
  }

  static Value of(int64_t i) { return {TypeIndex::Int, static_cast<uint64_t>(i)}; }
  static Value of(bool b) { return {TypeIndex::Bool, b}; }
  static Value of(double f) { return {TypeIndex::Float, std::bit_cast<uint64_t>(f)}; }
  static Value of(const tenon_any& any) {
    const auto words = std::bit_cast<std::array<uint64_t, 2>>(any);
    return {words[0], words[1]};
  }
  static Value of(const AnyView& view) { return of(std::bit_cast<tenon_any>(view)); }
  tenon_any any() const { return std::bit_cast<tenon_any>(std::array{tag, payload}); }
  bool is_object() const { return static_cast<int32_t>(tag) >= TypeIndex::ObjectBegin; }
  bool is_integer() const { return tag == TypeIndex::Int || tag == TypeIndex::Bool; }
  bool is_float() const { return tag == TypeIndex::Float; }
  int64_t integer() const { return static_cast<int64_t>(payload); }
  double number() const { return std::bit_cast<double>(payload); }
  Object* object() const { return reinterpret_cast<Object*>(payload); }
  bool operator==(const Value&) const = default;
};
static_assert(sizeof(Value) == 16);

// Of a call that is counted: instructions, and changes of reference counts by instructions. What
// the end of an object does to the counts of others isn't among them.
struct Counts {
  uint64_t instructions = 0;
  uint64_t retains = 0, releases = 0;
};

struct Frame {
  const uint8_t* pc;
  Value* base;
  const CodeFunction* function;
  Value* result;  // of the register machine
};

class Machine {
 public:
  static constexpr int64_t kFuel = int64_t{1} << 60;

  // `packed` are the functions that the unit names. A call throws if it fails, and the machine
  // isn't usable then.
  Machine(const Code& code, std::vector<tenon_packed_call> packed, size_t depth = 100'000);

  const Code& code;
  std::vector<Value> constants;  // borrowed from the unit
  std::vector<tenon_packed_call> packed;
  std::vector<Value> slots;
  std::vector<Frame> frames;
  int64_t fuel = kFuel;
  Counts counts;
  std::vector<uint64_t> executed;  // how often the instruction at each byte ran
};

// Calls a function, whose result the caller owns. The arguments are borrowed. If `counted`, the
// machine's counts are those of the call.
template <bool counted>
Value run_registers(Machine& machine, uint32_t function, std::span<const Value> args);
template <bool counted>
Value run_stack(Machine& machine, uint32_t function, std::span<const Value> args);

// Binary operations that aren't inline, by opcode.
using Compute = bool (*)(int64_t a, int64_t b, int64_t* result);
extern const Compute* const kComputes;

[[noreturn]] void fail_type();
[[noreturn]] void fail_overflow();
[[noreturn]] void fail_limit();
[[noreturn]] void fail_packed();
[[noreturn]] void fail_fatal(const Value& message);

// Instructions' changes of reference counts.
template <bool counted>
struct References {
  Counts& counts;

  BENCH_INLINE void retain(const Value& v) {
    if (!v.is_object()) return;
    if constexpr (counted) ++counts.retains;
    tenon::retain(v.object());
  }
  BENCH_INLINE void release(const Value& v) {
    if (!v.is_object()) return;
    if constexpr (counted) ++counts.releases;
    tenon::release(v.object());
  }
  // Writes a place that holds a value.
  BENCH_INLINE void put(Value& place, Value owned) {
    const Value old = place;
    place = owned;
    if (old.is_object()) [[unlikely]]
      release(old);
  }
};

BENCH_INLINE Value taken(Value& place) {
  const Value v = place;
  place = Value();
  return v;
}

// A cell of fields that it takes over one by one.
BENCH_INLINE CellObj* new_cell(uint64_t tag, uint64_t fields) {
  return CellObj::of(static_cast<int64_t>(tag), fields).leak();
}
BENCH_INLINE Value& field_of(CellObj* cell, uint64_t index) {
  return reinterpret_cast<Value*>(cell->begin())[index];
}
BENCH_INLINE Value of_cell(CellObj* cell) {
  return {TypeIndex::Cell, reinterpret_cast<uint64_t>(cell)};
}
BENCH_INLINE CellObj* cell_of(const Value& v) {
  if (v.tag != TypeIndex::Cell) [[unlikely]]
    fail_type();
  return reinterpret_cast<CellObj*>(v.payload);
}
// Borrowed.
BENCH_INLINE Value read_field(const Value& object, uint64_t index) {
  CellObj* cell = cell_of(object);
  if (index >= static_cast<uint64_t>(cell->size)) [[unlikely]]
    fail_type();
  return field_of(cell, index);
}
BENCH_INLINE Value read_tag(const Value& object) {
  return Value::of(cell_of(object)->tag);
}

BENCH_INLINE Value call_packed(tenon_packed_call function, const Value* args, uint64_t count) {
  tenon_any result = TENON_NONE_VALUE;
  static_assert(sizeof(Value) == sizeof(tenon_any));
  const int failed = function(nullptr, reinterpret_cast<const tenon_any*>(args),
                              static_cast<int32_t>(count), &result);
  if (failed) [[unlikely]]
    fail_packed();
  return Value::of(result);
}

// A float operation's result, a float or a boolean. That of a sign may be an integer in the table.
BENCH_INLINE Value of_float(bool b) {
  return Value::of(b);
}
BENCH_INLINE Value of_float(double f) {
  return Value::of(f);
}

// A binary operation on integers; the result of a logical one on two booleans is a boolean.
enum class Result { Integer, Logical };
template <class Function>
BENCH_INLINE Value computed(Function compute, Result result, const Value& x, const Value& y) {
  int64_t r = 0;
  if (!compute(x.integer(), y.integer(), &r)) [[unlikely]]
    fail_overflow();
  if (result == Result::Logical && x.tag == TypeIndex::Bool && y.tag == TypeIndex::Bool) {
    return {TypeIndex::Bool, static_cast<uint64_t>(r)};
  }
  return Value::of(r);
}

}  // namespace tenon::bench
