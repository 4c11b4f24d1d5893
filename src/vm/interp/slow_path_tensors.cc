// The slow path's instructions on storage and tensors.
#include <cstring>

#include "device/device.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/operand_values.h"
#include "vm/interp/slow_path.h"
#include "vm/isa/limits.h"

namespace tenon::vm::slow_path {
namespace {

StorageObj* storage(const AnyView& v) {
  auto* s = v.as_object<StorageObj>();
  if (!s) {
    throw Error(ErrorKind::Runtime, "a storage is required for a tensor")
        .found(type_name(v.type_index));
  }
  return s;
}

}  // namespace

void op_alloc_storage(Machine& m, const Op& op, AnyView* base) {
  const Operands& o = *op.operands;
  int64_t size = integer(o.args[0], base, "a storage's size");
  if (size < 0 || static_cast<uint64_t>(size) > kMaxStorageBytes) {
    throw Error(ErrorKind::Runtime, "invalid storage size")
        .found(cat(size, " bytes"))
        .expected(cat("0 to ", kMaxStorageBytes));
  }
  const auto alignment = static_cast<size_t>(o.args[1].constant->v.i);
  put_result(base, op.a, Any(m.allocate_storage(static_cast<size_t>(size), alignment, o.device)));
}

namespace {

void tensor_in_storage(Machine& m, const Op& op, AnyView* base, std::span<const int64_t> dims) {
  const Operands& o = *op.operands;
  int64_t offset = integer(o.args[1], base, "a tensor's offset");
  if (offset < 0) {
    throw Error(ErrorKind::Runtime, "a tensor's offset is negative").found(cat(offset));
  }
  Ref<StorageObj> held(storage(value_of(o.args[0], base)));
  release_last_uses(*op.operands, base);
  Tensor made = Tensor::over(std::move(held), static_cast<uint64_t>(offset), o.dtype, dims);
  m.put_in_slot(made);
  Any value(std::move(made));
  m.protect(&value);  // the storage may be from an earlier call
  put_result(base, op.a, std::move(value));
}

}  // namespace

void op_alloc_tensor(Machine& m, const Op& op, AnyView* base) {
  tensor_in_storage(m, op, base,
                    Dims(std::span(op.operands->args).subspan(2), base, "a tensor").span());
}

void op_alloc_tensor_reg(Machine& m, const Op& op, AnyView* base) {
  const AnyView& shape = value_of(op.operands->args[2], base);
  shape_value(shape, "a tensor");
  Any held(shape);  // this may be its last use
  tensor_in_storage(m, op, base, payload_as<Shape>(held).dims());
}

void op_new_tensor(Machine& m, const Op& op, AnyView* base) {
  const Operands& o = *op.operands;
  const Dims dims(o.args, base, "a tensor");
  put_result(base, op.a, Any(m.allocate_tensor(dims.span(), o.dtype, o.device)));
}

void op_reshape_tensor(Machine&, const Op& op, AnyView* base) {
  const Tensor& t = tensor(value_of(op.operands->args[0], base), "reshape_tensor");
  Tensor out =
      t.reshaped(Dims(std::span(op.operands->args).subspan(1), base, "reshape_tensor").span());
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(std::move(out)));
}

void op_reshape_tensor_reg(Machine&, const Op& op, AnyView* base) {
  const Tensor& t = tensor(value_of(op.operands->args[0], base), "reshape_tensor_reg");
  Tensor out = t.reshaped(shape_value(value_of(op.operands->args[1], base), "reshape_tensor_reg"));
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(std::move(out)));
}

void op_shape_of(Machine&, const Op& op, AnyView* base) {
  Shape shape(tensor(value_of(op.operands->args[0], base), "shape_of").shape());
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(std::move(shape)));
}

void op_device_copy(Machine& m, const Op& op, AnyView* base) {
  const Tensor& from = tensor(value_of(op.operands->args[0], base), "device_copy");
  Tensor to = m.allocate_tensor(from.shape(), from.dtype(), op.operands->device);
  copy_tensor(from, to);
  release_last_uses(*op.operands, base);
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
  throw Error(ErrorKind::Runtime, "a register can't hold elements of this type")
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
    throw Error(ErrorKind::Runtime, "an integer is required for an element of make_tensor")
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

void op_read_elements(Machine&, const Op& op, AnyView* base) {
  const RegisterOperands& o = op.as<Opcode::ReadElements>();
  Any held(value_of(o.args[0], base));  // its register may be written while it is read
  const Tensor& t = tensor(held, "read_elements");
  if (t.rank() > 1 || t.count() != static_cast<int64_t>(o.registers.size()) || !t.compact() ||
      t.device().device_type != kDLCPU) {
    throw Error(ErrorKind::Runtime, "read_elements got an unexpected tensor")
        .found(to_text(t))
        .expected(cat("a compact tensor on the CPU of rank 0 or 1 with ", o.registers.size(),
                      o.registers.size() == 1 ? " element" : " elements"));
  }
  release_last_uses(o, base);
  for (size_t i = 0; i < o.registers.size(); ++i) {
    if (o.registers[i] >= 0) {
      put(base[o.registers[i]], read_element(t, static_cast<int64_t>(i)).leak());
    }
  }
}

void op_make_tensor(Machine& m, const Op& op, AnyView* base) {
  const Operands& o = *op.operands;
  auto count = static_cast<int64_t>(o.args.size()) - 1;
  int64_t dims[] = {count};
  auto rank = static_cast<size_t>(o.args[0].constant->v.i);
  Tensor t = m.allocate_tensor(std::span(dims, rank), o.dtype);
  for (int64_t i = 0; i < count; ++i) {
    write_element(t.data_as<char>() + i * o.dtype.bytes(), o.dtype,
                  value_of(o.args[static_cast<size_t>(i) + 1], base));
  }
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(std::move(t)));
}

}  // namespace tenon::vm::slow_path
