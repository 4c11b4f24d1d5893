// The slow path's instructions on storage and tensors.
#include <bit>
#include <cstring>

#include "device/device.h"
#include "object/narrow_float.h"
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
  if (!s) [[unlikely]]
    fail_type("a storage", "a tensor", v);
  return s;
}

}  // namespace

void op_alloc_storage(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::AllocStorage> in(op);
  const int64_t size = integer(in["size"], base, "a storage's size");
  if (size < 0 || static_cast<uint64_t>(size) > kMaxStorageBytes) fail_storage_size(size);
  const auto alignment = static_cast<size_t>(literal(in["alignment"]));
  finish(op, base, m.allocate_storage(static_cast<size_t>(size), alignment, op.operands->device));
}

namespace {

// For both instructions that make a tensor in a storage, which is their first operand.
void put_tensor(Machine& m, const Op& op, AnyView* base, const CompactForm& form, uint64_t offset) {
  const ValueRef& source = op.operands->args.front();
  Ref<StorageObj> held = source.last ? Ref<StorageObj>::adopt(storage(base[source.reg]))
                                     : Ref<StorageObj>(storage(value_of(source, base)));
  if (source.last) write_words(base[source.reg], {0, 0});
  Tensor made = form.at(std::move(held), offset);
  m.put_in_slot(made);
  if (!m.may_hold(made)) [[unlikely]] {  // the storage may be from an earlier call
    Any value(std::move(made));
    m.protect(&value);
    made = value.as<Tensor>();
  }
  finish(op, base, Ref<Object>::adopt(made.leak()));
}
static_assert(value_operand(Opcode::AllocTensor, "storage") == 0 &&
              value_operand(Opcode::AllocTensorReg, "storage") == 0);

void put_tensor(Machine& m, const Op& op, AnyView* base, std::span<const int64_t> dims) {
  const Values<Opcode::AllocTensor> in(op);
  const int64_t offset = integer(in["offset"], base, "a tensor's offset");
  if (offset < 0) fail_offset(offset);
  int64_t room[2 * tenon::kMaxRank];
  put_tensor(m, op, base, CompactForm(op.operands->dtype, dims, room),
             static_cast<uint64_t>(offset));
}

}  // namespace

void op_alloc_tensor(Machine& m, const Op& op, AnyView* base) {
  if (const FixedTensor* fixed = op.operands->fixed.get()) {
    return put_tensor(m, op, base, fixed->form, fixed->offset);
  }
  const Values<Opcode::AllocTensor> in(op);
  put_tensor(m, op, base, Dims(in.list("dims"), base, "a tensor").span());
}

void op_alloc_tensor_reg(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::AllocTensorReg> in(op);
  const AnyView& shape = value_of(in["shape"], base);
  shape_value(shape, "a tensor");
  Any held(shape);  // this may be its last use
  put_tensor(m, op, base, payload_as<Shape>(held).dims());
}

namespace {

// In a block of its own.
[[gnu::noinline]] void put_new_tensor(Machine& m, const Op& op, AnyView* base,
                                      std::span<const ValueRef> dims) {
  const Operands& o = *op.operands;
  if (const FixedTensor* fixed = o.fixed.get()) {
    Ref<StorageObj> block = m.allocate_storage(fixed->form.bytes(), kDataAlignment, o.device);
    return finish(op, base, Ref<Object>::adopt(fixed->form.at(std::move(block), 0).leak()));
  }
  const Dims read(dims, base, "a tensor");
  finish(op, base, Any(m.allocate_tensor(read.span(), o.dtype, o.device)));
}

}  // namespace

void op_new_tensor(Machine& m, const Op& op, AnyView* base) {
  put_new_tensor(m, op, base, Values<Opcode::NewTensor>(op).list("dims"));
}

void op_alloc_result(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::AllocResult> in(op);
  if (m.has_outputs()) [[unlikely]] {
    const Dims dims(in.list("dims"), base, "a tensor");
    Tensor given = m.take_output(literal(in["index"]), op.operands->dtype, dims.span());
    if (given) return finish(op, base, Any(std::move(given)));
  }
  put_new_tensor(m, op, base, in.list("dims"));
}

void op_reshape_tensor(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ReshapeTensor> in(op);
  const Dims dims(in.list("dims"), base, in.mnemonic);
  finish(op, base, Any(tensor(in["tensor"], base, in.mnemonic).reshaped(dims.span())));
}

void op_reshape_tensor_reg(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ReshapeTensorReg> in(op);
  const Tensor& t = tensor(in["tensor"], base, in.mnemonic);
  finish(op, base, Any(t.reshaped(shape_value(value_of(in["shape"], base), in.mnemonic))));
}

void op_shape_of(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ShapeOf> in(op);
  finish(op, base, Any(Shape(tensor(in["tensor"], base, in.mnemonic).shape())));
}

[[gnu::cold]] void op_device_copy(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::DeviceCopy> in(op);
  const Tensor& from = tensor(in["tensor"], base, in.mnemonic);
  Tensor to = m.allocate_tensor(from.shape(), from.dtype(), op.operands->device);
  copy_tensor(from, to);
  finish(op, base, Any(std::move(to)));
}

namespace {

// Elements are little-endian, as the machine's integers are.
Any read_element(const Tensor& t, int64_t i) {
  const DataType d = t.dtype();
  uint64_t bits = 0;
  const auto size = static_cast<size_t>(d.bytes());
  if (!is_scalar_dtype(d)) fail_element_type(d);
  std::memcpy(&bits, t.data_as<char>() + static_cast<size_t>(i) * size, size);
  if (d.is_bool()) return Any(bits != 0);
  if (d == f64) return Any(std::bit_cast<double>(bits));
  if (d == f32) return Any(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (d.is_float()) return Any(narrow_value(d, static_cast<uint16_t>(bits)));
  if (!d.is_signed_int()) return Any(static_cast<int64_t>(bits));
  const size_t unused = 8 * (sizeof bits - size);
  return Any(static_cast<int64_t>(bits << unused) >> unused);
}

void write_element(void* to, DataType d, const AnyView& v) {
  uint64_t bits = 0;
  if (d.is_float()) {
    const auto value = v.as<double>();
    bits = d == f64   ? std::bit_cast<uint64_t>(value)
           : d == f32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                      : narrow_bits(d, value);
  } else if (is_integer(v) && (d.is_int() || d.is_bool())) {
    bits = static_cast<uint64_t>(d.is_bool() ? v.v.i != 0 : v.v.i);
  } else {
    fail_element(d, v);
  }
  std::memcpy(to, &bits, static_cast<size_t>(d.bytes()));  // which wraps integers
}

}  // namespace

void op_read_elements(Machine&, const Op& op, AnyView* base) {
  const RegisterOperands& o = op.as<Opcode::ReadElements>();
  const Values<Opcode::ReadElements> in(op);
  const Tensor t = tensor(in["tensor"], base, in.mnemonic);  // its register may be written
  if (t.rank() > 1 || t.count() != static_cast<int64_t>(o.registers.size()) || !t.compact() ||
      t.device().device_type != kDLCPU) {
    fail_element_count(o.registers.size(), t);
  }
  release_last_uses(o, base);
  for (size_t i = 0; i < o.registers.size(); ++i) {
    if (o.registers[i] >= 0) {
      put(base[o.registers[i]], read_element(t, static_cast<int64_t>(i)).leak());
    }
  }
}

void op_make_tensor(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::MakeTensor> in(op);
  const DataType dtype = op.operands->dtype;
  const std::span<const ValueRef> elements = in.list("elements");
  const int64_t dims[] = {static_cast<int64_t>(elements.size())};
  Tensor t = m.allocate_tensor(std::span(dims, static_cast<size_t>(literal(in["rank"]))), dtype);
  char* to = t.data_as<char>();
  for (const ValueRef& element : elements) {
    write_element(to, dtype, value_of(element, base));
    to += dtype.bytes();
  }
  finish(op, base, Any(std::move(t)));
}

}  // namespace tenon::vm::slow_path
