#include "object/tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "object/function.h"
#include "object/new_tensor.h"
#include "support/failures.h"

namespace tenon {

namespace {

// The flags that a view of the same elements inherits.
constexpr uint64_t kFlagMask =
    ~(LayoutWord::kTypeMask | LayoutWord::kCompact | LayoutWord::kOfHost);

// Writes the dimensions of a compact, row-major tensor and after them its strides, in elements.
// These don't overflow if the element count doesn't; if a dimension is zero they are unused and may
// wrap.
void fill_compact(std::span<const int64_t> shape, int64_t* room) {
  int64_t* const strides = room + shape.size();
  uint64_t n = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    room[i] = shape[i];
    strides[i] = static_cast<int64_t>(n);
    n *= static_cast<uint64_t>(std::max<int64_t>(shape[i], 1));
  }
}

bool is_compact(const DLTensor& t) {
  if (!t.strides) return true;
  int64_t n = 1;
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 0) return true;
  }
  for (int32_t i = t.ndim; i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != n) return false;
    n *= t.shape[i];
  }
  return true;
}

// An object with room for the dimensions and strides, and `more` bytes, and only its header filled
// in.
TensorObj* tensor_memory(size_t rank, size_t more = 0) {
  const detail::ObjectMemory memory =
      detail::object_memory(sizeof(TensorObj) + 2 * rank * sizeof(int64_t) + more);
  auto* t = new (memory.at) TensorObj;
  init_header(t, memory.budget);
  return t;
}

// Fills in the rest, after the dimensions and strides: what `like` says besides these.
inline void place(TensorObj* t, const DLTensor& like, Ref<Object>&& owner, uint64_t flags) {
  t->dl = like;
  t->dl.shape = t->dims();
  t->dl.strides = t->dims() + like.ndim;
  new (&t->owner) Ref<Object>(std::move(owner));  // it is null
  if ((reinterpret_cast<uintptr_t>(like.data) + like.byte_offset) % kDataAlignment == 0)
    flags |= LayoutWord::kAligned;
  t->layout = LayoutWord::of(like.dtype, like.ndim, like.device.device_type) | flags;
}

}  // namespace

Ref<TensorObj> new_tensor(const DLTensor& like, Ref<Object>&& owner, uint64_t flags,
                          const HostMemory* host) {
  const auto rank = static_cast<size_t>(like.ndim);
  TensorObj* t = tensor_memory(rank, host ? sizeof *host : 0);
  if (like.strides) {
    std::copy(like.shape, like.shape + rank, t->dims());
    std::copy(like.strides, like.strides + rank, t->dims() + rank);
  } else {
    fill_compact(shape_of(like), t->dims());
  }
  if (!like.strides || is_compact(like)) flags |= LayoutWord::kCompact;
  if (host) flags |= LayoutWord::kOfHost;
  place(t, like, std::move(owner), flags);
  if (host) new (t->host()) HostMemory(*host);
  return Ref<TensorObj>::adopt(t);
}

namespace {

// What a host's tensor can have that Tenon's can't.
enum class Fault { None, Rank, NoShape, DType, Shape, NoData, Strides };

// Of a tensor with elements.
Fault fault_in_strides(const DLTensor& t) {
  int64_t extent = 0;  // the farthest element, in elements
  for (int32_t i = 0; i < t.ndim; ++i) {
    int64_t step;
    const int64_t size = t.strides[i] < 0 ? -(t.strides[i] + 1) : t.strides[i];
    if (__builtin_mul_overflow(size, t.shape[i] - 1, &step) ||
        __builtin_add_overflow(extent, step, &extent) ||
        extent > (int64_t{1} << 62) / DataType(t.dtype).bytes()) {
      return Fault::Strides;
    }
  }
  return Fault::None;
}

inline Fault fault_in(const DLTensor& t) {
  if (static_cast<uint32_t>(t.ndim) > kMaxRank) return Fault::Rank;
  if (t.ndim > 0 && !t.shape) return Fault::NoShape;
  if (!is_tensor_dtype(t.dtype)) return Fault::DType;
  const std::optional<int64_t> bytes = byte_count(shape_of(t), t.dtype);
  if (!bytes) return Fault::Shape;
  if (*bytes == 0) return Fault::None;
  if (!t.data) return Fault::NoData;
  return t.strides ? fault_in_strides(t) : Fault::None;
}

[[noreturn, gnu::cold]] void refuse(const DLTensor& t, Fault fault) {
  if (fault == Fault::DType) {
    throw Error(ErrorKind::Unsupported,
                cat("a tensor can't have elements of type ", to_text(DataType(t.dtype))))
        .expected(kTensorDtypes);
  }
  std::string found = "no data";
  if (fault == Fault::NoShape) found = "no shape";
  if (fault == Fault::Rank) found = cat(t.ndim, " dimensions");
  if (fault == Fault::Shape) found = cat("the shape ", to_text(shape_of(t)));
  if (fault == Fault::Strides)
    found = cat("strides ", to_text(std::span<const int64_t>(t.strides, shape_of(t).size())));
  throw_misuse("invalid DLPack tensor", found);
}

// The same for a tensor of the host's. Throws Usage for an invalid one and Unsupported for its
// dtype.
Ref<TensorObj> wrap(const DLTensor& t, Ref<Object>&& owner, uint64_t flags,
                    const HostMemory* host) {
  if (const Fault fault = fault_in(t); fault != Fault::None) [[unlikely]]
    refuse(t, fault);
  return new_tensor(t, std::move(owner), flags, host);
}

}  // namespace

Tensor host_tensor(const DLTensor& view, bool read_only, const HostMemory& memory) {
  const uint64_t flags = read_only ? LayoutWord::kReadOnly : 0;
  try {
    return Tensor(wrap(view, nullptr, flags, memory.end ? &memory : nullptr));
  } catch (...) {
    if (memory.end) memory.end(memory.context);
    throw;
  }
}

namespace {

[[noreturn, gnu::cold]] void fail_size(std::span<const int64_t> shape, DataType dtype) {
  throw Error(ErrorKind::Runtime, cat(tensor_type_text(dtype, shape), " can't exist"))
      .expected(cat("at most ", kMaxRank, " dimensions, none negative, and a size below 2^63"));
}

size_t checked_bytes(std::span<const int64_t> shape, DataType dtype) {
  auto bytes = byte_count(shape, dtype);
  if (!bytes || shape.size() > kMaxRank) fail_size(shape, dtype);
  return static_cast<size_t>(*bytes);
}

void free_heap(StorageObj* s) {
  ::operator delete (s->data, std::align_val_t{kDataAlignment});
  if (s->budget) ObjectBudget::give_back(s->budget, s->size);
}

}  // namespace

bool is_tensor_dtype(DataType t) {
  if (t.lanes != 1) return false;
  switch (t.code) {
    case kDLInt:
    case kDLUInt:
      return t.bits >= 2 && t.bits <= 64 && std::has_single_bit(unsigned{t.bits});
    case kDLFloat:
      return t.bits == 16 || t.bits == 32 || t.bits == 64;
    case kDLBfloat:
      return t.bits == 16;
    case kDLComplex:
      return t.bits == 64 || t.bits == 128;
    case kDLBool:
    case kDLFloat8_e4m3fn:
    case kDLFloat8_e4m3fnuz:
    case kDLFloat8_e5m2:
    case kDLFloat8_e5m2fnuz:
    case kDLFloat8_e8m0fnu:
      return t.bits == 8;
    case kDLFloat4_e2m1fn:
      return t.bits == 4;
    default:
      return false;
  }
}

CompactForm::CompactForm(DataType dtype, std::span<const int64_t> shape, int64_t* room)
    : dtype_(dtype), rank_(shape.size()), bytes_(checked_bytes(shape, dtype)), room_(room) {
  fill_compact(shape, room);
}

Tensor CompactForm::at(Ref<StorageObj> storage, uint64_t offset) const {
  if (offset > storage->size || bytes_ > storage->size - offset) [[unlikely]] {
    throw Error(ErrorKind::Runtime, "a tensor doesn't fit its storage")
        .expected(cat(bytes_, " bytes at ", offset), tensor_type_text(dtype_, shape()))
        .found(cat(storage->size, " bytes"));
  }
  uint64_t flags = LayoutWord::kCompact;
  if (storage->flags & StorageObj::kIsPooled) flags |= LayoutWord::kPooled;
  if (storage->flags & StorageObj::kIsReadOnly) flags |= LayoutWord::kReadOnly;
  const DLDevice device = storage->device;
  void* data = storage->data;
  if (device.device_type == kDLCPU) {  // on other devices, `data` may not be an address
    data = static_cast<char*>(data) + offset;
    offset = 0;
  }
  TensorObj* t = tensor_memory(rank_);
  std::copy(room_, room_ + 2 * rank_, t->dims());
  const DLTensor like{data, device, static_cast<int32_t>(rank_), dtype_, nullptr, nullptr, offset};
  place(t, like, std::move(storage), flags);
  return Tensor(Ref<TensorObj>::adopt(t));
}

Tensor Tensor::over(Ref<StorageObj> storage, uint64_t offset, DataType dtype,
                    std::span<const int64_t> shape) {
  int64_t room[2 * kMaxRank];
  return CompactForm(dtype, shape, room).at(std::move(storage), offset);
}

Ref<StorageObj> heap_storage(size_t bytes) {
  auto none = [&] { return Error(ErrorKind::Runtime, cat("no memory for ", bytes, " bytes")); };
  if (bytes > kAddressSpace) throw none();
  auto s = make<StorageObj>();
  s->size = std::max<size_t>(1, bytes);
  if (s->budget) detail::object_budget->take(s->size);
  s->free = &free_heap;  // from here on, what was counted is given back
  s->data = ::operator new (s->size, std::align_val_t{kDataAlignment}, std::nothrow);
  if (!s->data) throw none();
  return s;
}

Tensor Tensor::empty(std::span<const int64_t> shape, DataType dtype) {
  return over(heap_storage(checked_bytes(shape, dtype)), 0, dtype, shape);
}

Tensor Tensor::copy_of_bytes(std::span<const int64_t> shape, DataType dtype, const void* data,
                             size_t bytes) {
  Tensor t = empty(shape, dtype);
  if (static_cast<size_t>(t.bytes()) != bytes) {
    throw Error(ErrorKind::Usage, "the data's size is not the tensor's")
        .expected(cat(t.bytes(), " bytes"), to_text(t))
        .found(cat(bytes, " bytes"));
  }
  if (bytes) std::memcpy(t.data(), data, bytes);
  return t;
}

Tensor Tensor::view(const void* data, std::span<const int64_t> shape, DataType dtype,
                    Ref<Object> owner, bool read_only, DLDevice device) {
  checked_bytes(shape, dtype);
  const DLTensor like{const_cast<void*>(data),
                      device,
                      static_cast<int32_t>(shape.size()),
                      dtype,
                      const_cast<int64_t*>(shape.data()),
                      nullptr,
                      0};
  return Tensor(new_tensor(like, std::move(owner), read_only ? LayoutWord::kReadOnly : 0));
}

Tensor Tensor::reshaped(std::span<const int64_t> to) const {
  auto n = element_count(to);
  if (!compact() || !n || *n != count() || to.size() > kMaxRank) {
    throw_failure(cat("a tensor can't be reshaped to ", to_text(to)),
                  cat(tenon::to_text(*this), compact() ? "" : ", not compact"),
                  "a compact tensor of as many elements");
  }
  TensorObj* t = get();
  DLTensor like = t->dl;
  like.ndim = static_cast<int32_t>(to.size());
  like.shape = const_cast<int64_t*>(to.data());
  like.strides = nullptr;
  return Tensor(new_tensor(like, t->owner_of_view(), t->layout & kFlagMask));
}

namespace {

Tensor with_flags(const Tensor& tensor, uint64_t more) {
  TensorObj* t = tensor.get();
  if ((t->layout & more) == more) return tensor;
  return Tensor(new_tensor(t->dl, t->owner_of_view(), (t->layout & kFlagMask) | more));
}

}  // namespace

Tensor Tensor::as_read_only() const {
  return with_flags(*this, LayoutWord::kReadOnly);
}
Tensor Tensor::as_constant() const {
  return with_flags(*this, LayoutWord::kReadOnly | LayoutWord::kConstant);
}

Tensor Tensor::compacted() const {
  if (compact()) return *this;
  Tensor out = empty(shape(), dtype());
  copy_elements(out.data());
  return out;
}

bool Tensor::aligned() const {
  if (layout() & LayoutWord::kAligned) return true;
  const auto unit = static_cast<uintptr_t>(std::max<int64_t>(dtype().bytes(), 1));
  return reinterpret_cast<uintptr_t>(data()) % unit == 0;
}

int64_t Tensor::count() const {
  return element_count(shape()).value_or(0);
}
int64_t Tensor::bytes() const {
  return count() * dtype().bytes();
}

[[gnu::cold]] std::string tensor_type_text(DataType dtype, std::span<const int64_t> shape) {
  const std::string sizes = to_text(shape);  // in brackets
  return tensor_type_text(std::string_view(sizes).substr(1, sizes.size() - 2), dtype);
}
std::string to_text(const Tensor& t) {
  return t ? tensor_type_text(t.dtype(), t.shape()) : std::string("no tensor");
}

Any admit(const AnyView& value) {
  int32_t t = value.type_index;
  bool points =
      t == TypeIndex::RawStr || t == TypeIndex::ByteArrayPtr || t >= TypeIndex::ObjectBegin;
  if (points && !value.v.p) {
    throw Error(ErrorKind::Usage, cat("a value of type ", type_name(t), " is a null pointer"))
        .help("pass None for no value");
  }
  if (t < TypeIndex::ObjectBegin) {
    bool known = t >= TypeIndex::None && t <= TypeIndex::SmallBytes &&
                 t != TypeIndex::DLTensorPtr && t != TypeIndex::ObjectRValueRef;
    bool fits = (t != TypeIndex::SmallStr && t != TypeIndex::SmallBytes) || value.small_length <= 7;
    if (t == TypeIndex::None) return Any();  // without a payload
    if (known && fits) return t == TypeIndex::Bool ? Any(value.v.i != 0) : Any(value);
  } else if (t == TypeIndex::Tensor) {
    auto* tensor = static_cast<TensorObj*>(value.v.object);
    if (tensor->is_ours()) return Any(value);
    return Any(Tensor(wrap(tensor->dl, Ref<Object>(tensor), 0, nullptr)));
  } else if (t == TypeIndex::Function) {
    auto* function = static_cast<FunctionObj*>(value.v.object);
    if (function->is_ours()) return Any(value);
    // The results of a foreign function must be admitted as well.
    Object* held = Ref<Object>(function).leak();
    return Any(Function::from_c(
        [](void* self, const AnyView* args, int32_t n, Any* result) {
          auto* f = static_cast<FunctionObj*>(static_cast<Object*>(self));
          return f->call(f, args, n, result);
        },
        held, [](void* self) { release(static_cast<Object*>(self)); }));
  } else if ((t >= TypeIndex::Str && t <= TypeIndex::Shape) ||
             (t >= TypeIndex::OursBegin && t < TypeIndex::OursEnd)) {
    return Any(value);
  }
  Error e(ErrorKind::Usage, "a value of a type that Tenon doesn't accept");
  e.found(t == TypeIndex::DLTensorPtr ? "a bare DLTensor*" : type_name(t));
  if (t == TypeIndex::DLTensorPtr) e.help("pass a managed DLPack tensor, which can be owned");
  throw e;
}

}  // namespace tenon
