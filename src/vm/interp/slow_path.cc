#include "vm/interp/slow_path.h"

#include <cstring>

#include "device/device.h"
#include "object/array.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/isa/limits.h"
#include "vm/isa/operand_check.h"

namespace tenon::vm::slow_path {
namespace {

int64_t integer(const ValueRef& ref, const AnyView* base, const char* what) {
  const AnyView& v = value_of(ref, base);
  if (!is_integer(v)) [[unlikely]] {
    throw Error(ErrorKind::Runtime, cat("an integer is needed for ", what))
        .found(type_name(v.type_index));
  }
  return v.v.i;
}

const Tensor& tensor(const AnyView& v, const char* what) {
  if (v.type_index != TypeIndex::Tensor) [[unlikely]] {
    throw Error(ErrorKind::Runtime, cat("a tensor is needed for ", what))
        .found(type_name(v.type_index));
  }
  return payload_as<Tensor>(v);
}

// The integers from args[from] on, as a shape; no more than the rank that the verifier lets pass.
class Dims {
 public:
  Dims(const OpExtra& e, size_t from, const AnyView* base, const char* what) {
    count_ = e.args.size() - from;
    for (size_t i = 0; i < count_; ++i) {
      dims_[i] = integer(e.args[from + i], base, what);
      if (dims_[i] < 0) [[unlikely]] {
        throw Error(ErrorKind::Runtime, cat("a dimension of ", what, " is negative"))
            .found(cat(dims_[i], " for axis ", i));
      }
    }
  }
  std::span<const int64_t> span() const { return {dims_, count_}; }

 private:
  int64_t dims_[kMaxRank];
  size_t count_;
};

std::span<const int64_t> shape_value(const AnyView& v, const char* what) {
  if (v.type_index != TypeIndex::Shape) {
    throw Error(ErrorKind::Runtime, cat("a shape is needed for ", what))
        .found(type_name(v.type_index));
  }
  return payload_as<Shape>(v).dims();
}

StorageObj* storage(const AnyView& v) {
  auto* s = v.as_object<StorageObj>();
  if (!s) {
    throw Error(ErrorKind::Runtime, "a storage is needed for a tensor")
        .found(type_name(v.type_index));
  }
  return s;
}

[[noreturn]] void fail_divisor() {
  throw Error(ErrorKind::Runtime, "an integer is divided by zero");
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) fail_divisor();
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  int64_t q = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) fail_divisor();
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

int64_t checked(bool overflow, int64_t value, int64_t a, int64_t b) {
  if (overflow) fail_size_overflow(a, b);
  return value;
}

int64_t broadcast(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  throw Error(ErrorKind::Runtime, "two sizes can't be broadcast together")
      .found(cat(a, " and ", b))
      .expected("equal sizes, or one of them 1");
}

// The result and whether it is a boolean.
std::pair<int64_t, bool> compute(Opcode opcode, const AnyView& x, const AnyView& y) {
  int64_t a = x.v.i, b = y.v.i, r = 0;
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  bool booleans = x.type_index == TypeIndex::Bool && y.type_index == TypeIndex::Bool;
  switch (opcode) {
    case Opcode::Add:
      return {static_cast<int64_t>(ua + ub), false};
    case Opcode::Sub:
      return {static_cast<int64_t>(ua - ub), false};
    case Opcode::Mul:
      return {static_cast<int64_t>(ua * ub), false};
    case Opcode::FloorDiv:
      return {floor_div(a, b), false};
    case Opcode::FloorMod:
      return {floor_mod(a, b), false};
    case Opcode::TruncDiv:
      if (b == 0) fail_divisor();
      return {b == -1 ? static_cast<int64_t>(0 - ua) : a / b, false};
    case Opcode::TruncMod:
      if (b == 0) fail_divisor();
      return {b == -1 ? 0 : a % b, false};
    case Opcode::Min:
      return {std::min(a, b), false};
    case Opcode::Max:
      return {std::max(a, b), false};
    case Opcode::And:
      return {a & b, booleans};
    case Opcode::Or:
      return {a | b, booleans};
    case Opcode::Xor:
      return {a ^ b, booleans};
    case Opcode::Shl:
      return {ub < 64 ? static_cast<int64_t>(ua << ub) : 0, false};
    case Opcode::Shr:
      return {ub < 64 ? static_cast<int64_t>(ua >> ub) : 0, false};
    case Opcode::AddChecked:
      return {checked(__builtin_add_overflow(a, b, &r), r, a, b), false};
    case Opcode::SubChecked:
      return {checked(__builtin_sub_overflow(a, b, &r), r, a, b), false};
    case Opcode::MulChecked:
      return {checked(__builtin_mul_overflow(a, b, &r), r, a, b), false};
    case Opcode::Bcast:
      return {broadcast(a, b), false};
    case Opcode::Eq:
      return {a == b, true};
    case Opcode::Ne:
      return {a != b, true};
    case Opcode::Lt:
      return {a < b, true};
    case Opcode::Le:
      return {a <= b, true};
    case Opcode::Gt:
      return {a > b, true};
    case Opcode::Ge:
      return {a >= b, true};
    default:
      break;
  }
  throw Error(ErrorKind::Internal, "an opcode without arithmetic");
}

Any scalar(int64_t v, bool is_bool) {
  return is_bool ? Any(v != 0) : Any(v);
}

}  // namespace

void binary(Machine&, const Op& op, AnyView* base) {
  // Which opcode it is stands in numbers; op.a is the destination.
  const OpExtra& e = *op.extra;
  const AnyView &x = value_of(e.args[0], base), &y = value_of(e.args[1], base);
  auto opcode = static_cast<Opcode>(e.numbers[0]);
  if (!is_integer(x) || !is_integer(y)) {
    throw Error(ErrorKind::Runtime, cat(info_of(opcode).mnemonic, " needs an integer"))
        .found(type_name((is_integer(x) ? y : x).type_index));
  }
  auto [v, is_bool] = compute(opcode, x, y);
  put_result(base, op.a, scalar(v, is_bool));
}

void not_(Machine&, const Op& op, AnyView* base) {
  int64_t v = integer(op.extra->args[0], base, "not");
  bool is_bool = value_of(op.extra->args[0], base).type_index == TypeIndex::Bool;
  put_result(base, op.a, is_bool ? Any(v == 0) : Any(~v));
}

void narrow(Machine&, const Op& op, AnyView* base) {
  int64_t v = integer(op.extra->args[0], base, "narrow");
  DataType t = op.extra->dtype;
  if (!t.is_int() && !t.is_bool()) {
    throw Error(ErrorKind::Runtime, "narrow wraps to integers only").found(to_text(t));
  }
  put_result(base, op.a, scalar(wrap_to(t, v), t.is_bool()));
}

void select(Machine&, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  const ValueRef& chosen = e.args[integer(e.args[0], base, "select") ? 1 : 2];
  Any value(value_of(chosen, base));
  release_last_uses(*op.extra, base);
  put_result(base, op.a, std::move(value));
}

void check(Machine&, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  if (integer(e.args[0], base, "check")) [[likely]]
    return;
  std::string_view form = e.args[1].constant->as<std::string_view>();
  std::string message;
  size_t next = 2;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form.substr(i, 2) == "{}" && next < e.args.size()) {
      message += cat(integer(e.args[next++], base, "a message"));
      ++i;
    } else {
      message += form[i];
    }
  }
  throw Error(ErrorKind::Runtime, printable(message, true));
}

void fatal(Machine&, const Op& op, AnyView*) {
  throw Error(ErrorKind::Runtime,
              printable(op.extra->args[0].constant->as<std::string_view>(), true));
}

void load_packed(Machine&, const Op& op, AnyView* base) {
  const PackedTarget* target = op.extra->slot->target.load(std::memory_order_acquire);
  if (!target) {
    throw Error(ErrorKind::Runtime,
                cat("no packed function '", printable(op.extra->slot->name), "' is linked"));
  }
  // A kernel has no object of its own: it is wrapped, with what keeps its code. The target itself
  // is the Program's, which the value may outlive.
  bool is_object = target->owner && target->owner->type_index == TypeIndex::Function;
  Function f =
      is_object
          ? Function(target->owner)
          : Function::from_packed([call = target->call, self = target->self, keep = target->owner](
                                      const AnyView* args, int32_t n, Any* result) {
              if (call(self, args, n, result) != 0) throw take_error();
            });
  put_result(base, op.a, Any(f));
}

void is_none(Machine&, const Op& op, AnyView* base) {
  bool none = value_of(op.extra->args[0], base).is_none();
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(none));
}

// ---- storage and tensors ----

void alloc_storage(Machine& m, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  int64_t size = integer(e.args[0], base, "a storage's size");
  if (size < 0 || static_cast<uint64_t>(size) > kMaxStorageBytes) {
    throw Error(ErrorKind::Runtime, "a storage can't have this size")
        .found(cat(size, " bytes"))
        .expected(cat("0 to ", kMaxStorageBytes));
  }
  put_result(base, op.a,
             Any(m.allocate_storage(static_cast<size_t>(size),
                                    static_cast<size_t>(e.args[1].constant->v.i))));
}

namespace {

void tensor_in_storage(Machine& m, const Op& op, AnyView* base, std::span<const int64_t> dims) {
  const OpExtra& e = *op.extra;
  int64_t offset = integer(e.args[1], base, "a tensor's offset");
  if (offset < 0) {
    throw Error(ErrorKind::Runtime, "a tensor's offset is negative").found(cat(offset));
  }
  Ref<StorageObj> held(storage(value_of(e.args[0], base)));
  release_last_uses(*op.extra, base);
  Tensor made = Tensor::over(std::move(held), static_cast<uint64_t>(offset), e.dtype, dims);
  m.put_in_slot(made);
  put_result(base, op.a, Any(std::move(made)));
}

}  // namespace

void alloc_tensor(Machine& m, const Op& op, AnyView* base) {
  tensor_in_storage(m, op, base, Dims(*op.extra, 2, base, "a tensor").span());
}

void alloc_tensor_reg(Machine& m, const Op& op, AnyView* base) {
  const AnyView& shape = value_of(op.extra->args[2], base);
  shape_value(shape, "a tensor");
  Any held(shape);  // it may be at its last use
  tensor_in_storage(m, op, base, payload_as<Shape>(held).dims());
}

void new_tensor(Machine& m, const Op& op, AnyView* base) {
  put_result(base, op.a,
             Any(m.allocate_tensor(Dims(*op.extra, 0, base, "a tensor").span(), op.extra->dtype)));
}

void reshape_tensor(Machine&, const Op& op, AnyView* base) {
  const Tensor& t = tensor(value_of(op.extra->args[0], base), "reshape_tensor");
  Tensor out = t.reshaped(Dims(*op.extra, 1, base, "reshape_tensor").span());
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(std::move(out)));
}

void reshape_tensor_reg(Machine&, const Op& op, AnyView* base) {
  const Tensor& t = tensor(value_of(op.extra->args[0], base), "reshape_tensor_reg");
  Tensor out = t.reshaped(shape_value(value_of(op.extra->args[1], base), "reshape_tensor_reg"));
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(std::move(out)));
}

void shape_of(Machine&, const Op& op, AnyView* base) {
  Shape shape(tensor(value_of(op.extra->args[0], base), "shape_of").shape());
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(std::move(shape)));
}

void device_copy(Machine& m, const Op& op, AnyView* base) {
  const Tensor& from = tensor(value_of(op.extra->args[0], base), "device_copy");
  Tensor to = m.allocate_tensor(from.shape(), from.dtype());
  copy_tensor(from, to);
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(std::move(to)));
}

namespace {

template <class T>
T element(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof v), sizeof v);
  return v;
}

Any read_element(const Tensor& t, int64_t i) {
  const void* data = t.data();
  DataType d = t.dtype();
  if (d == boolean) return Any(element<uint8_t>(data, i) != 0);
  if (d == i8) return Any(element<int8_t>(data, i));
  if (d == i16) return Any(element<int16_t>(data, i));
  if (d == i32) return Any(element<int32_t>(data, i));
  if (d == i64) return Any(element<int64_t>(data, i));
  if (d == u8) return Any(element<uint8_t>(data, i));
  if (d == u16) return Any(element<uint16_t>(data, i));
  if (d == u32) return Any(element<uint32_t>(data, i));
  if (d == f32) return Any(element<float>(data, i));
  if (d == f64) return Any(element<double>(data, i));
  throw Error(ErrorKind::Runtime, "elements of this type don't fit a register")
      .found(to_text(d))
      .expected("integers of at most 64 bits with a sign or 32 without, bool, float32 or float64");
}

void write_element(void* to, DataType d, const AnyView& v) {
  if (d == f32 || d == f64) {
    double value = v.as<double>();
    auto narrow_value = static_cast<float>(value);
    if (d == f32) std::memcpy(to, &narrow_value, sizeof narrow_value);
    if (d == f64) std::memcpy(to, &value, sizeof value);
    return;
  }
  if (!is_integer(v)) {
    throw Error(ErrorKind::Runtime, "an integer is needed for an element of make_tensor")
        .found(type_name(v.type_index));
  }
  if (!d.is_int() && !d.is_bool()) {
    throw Error(ErrorKind::Runtime, "make_tensor can't make elements of this type")
        .found(to_text(d));
  }
  int64_t value = wrap_to(d, v.v.i);
  std::memcpy(to, &value, static_cast<size_t>(d.bytes()));  // little-endian
}

}  // namespace

void read_elements(Machine&, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  Any held(value_of(e.args[0], base));  // a register may be written while it is read
  const Tensor& t = tensor(held, "read_elements");
  if (t.rank() > 1 || t.count() != static_cast<int64_t>(e.numbers.size()) || !t.compact() ||
      t.device().device_type != kDLCPU) {
    throw Error(ErrorKind::Runtime, "read_elements finds another tensor than it expects")
        .found(to_text(t))
        .expected(cat("a compact tensor on the CPU of rank 0 or 1 with ", e.numbers.size(),
                      e.numbers.size() == 1 ? " element" : " elements"));
  }
  release_last_uses(*op.extra, base);
  for (size_t i = 0; i < e.numbers.size(); ++i) {
    if (e.numbers[i] >= 0) {
      put(base[e.numbers[i]], read_element(t, static_cast<int64_t>(i)).leak());
    }
  }
}

void make_tensor(Machine& m, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  auto count = static_cast<int64_t>(e.args.size()) - 1;
  int64_t dims[] = {count};
  auto rank = static_cast<size_t>(e.args[0].constant->v.i);
  Tensor t = m.allocate_tensor(std::span(dims, rank), e.dtype);
  for (int64_t i = 0; i < count; ++i) {
    write_element(t.data_as<char>() + i * e.dtype.bytes(), e.dtype,
                  value_of(e.args[static_cast<size_t>(i) + 1], base));
  }
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(std::move(t)));
}

// ---- data types and closures ----

namespace {

Array<Any> gather(const OpExtra& e, size_t from, AnyView* base) {
  Array<Any> fields;
  fields.reserve(e.args.size() - from);
  for (size_t i = from; i < e.args.size(); ++i) {
    fields.push_back(Any(value_of(e.args[i], base)));
  }
  return fields;
}

}  // namespace

void alloc_adt(Machine&, const Op& op, AnyView* base) {
  auto cell = make<AdtObj>();
  cell->tag = op.extra->args[0].constant->v.i;
  cell->fields = gather(*op.extra, 1, base);
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(std::move(cell)));
}

void alloc_tuple(Machine&, const Op& op, AnyView* base) {
  Array<Any> fields = gather(*op.extra, 0, base);
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(fields));
}

void get_field(Machine&, const Op& op, AnyView* base) {
  const AnyView& object = value_of(op.extra->args[0], base);
  int64_t index = integer(op.extra->args[1], base, "get_field");
  const Any* begin = nullptr;
  int64_t size = 0;
  if (const auto* cell = object.as_object<AdtObj>()) {
    begin = cell->fields.any_begin();
    size = static_cast<int64_t>(cell->fields.size());
  } else if (const auto* array = object.as_object<ArrayObj>()) {
    begin = array->begin();
    size = array->size;
  } else {
    throw Error(ErrorKind::Runtime, "get_field needs a cell or a tuple")
        .found(type_name(object.type_index));
  }
  if (index < 0 || index >= size) {
    throw Error(ErrorKind::Runtime, "a field's index is out of range")
        .found(cat(index))
        .expected(cat("0 to ", size - 1));
  }
  Any field = begin[index];
  release_last_uses(*op.extra, base);
  put_result(base, op.a, std::move(field));
}

void get_tag(Machine&, const Op& op, AnyView* base) {
  const AnyView& object = value_of(op.extra->args[0], base);
  const auto* cell = object.as_object<AdtObj>();
  if (!cell) {
    throw Error(ErrorKind::Runtime, "get_tag needs a cell").found(type_name(object.type_index));
  }
  int64_t tag = cell->tag;
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(tag));
}

void alloc_closure(Machine& m, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  Ref<ClosureObj> closure = ClosureObj::of(m.program(), *e.callee, e.args.size());
  for (size_t i = 0; i < e.args.size(); ++i) {
    closure->captures[i] = Any(value_of(e.args[i], base));
  }
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(Function::adopt(std::move(closure))));
}

}  // namespace tenon::vm::slow_path
