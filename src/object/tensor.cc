#include "object/tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "object/function.h"
#include "support/poll.h"

namespace tenon {

namespace {

constexpr uint64_t kFlagMask = ~LayoutWord::kTypeMask;

// The strides of a compact, row-major tensor, in elements. They don't overflow if the element count
// doesn't; if a dimension is zero they are unused and may wrap.
void fill_strides(std::span<const int64_t> shape, int64_t* strides) {
  uint64_t n = 1;
  for (size_t i = shape.size(); i-- > 0;) {
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

// Makes a tensor object; `strides` may be null for compact ones.
Ref<TensorObj> new_tensor(void* data, uint64_t byte_offset, DLDevice device, DataType dtype,
                          std::span<const int64_t> shape, const int64_t* strides, Ref<Object> owner,
                          uint64_t flags) {
  size_t rank = shape.size();
  detail::ObjectMemory memory =
      detail::object_memory(sizeof(TensorObj) + 2 * rank * sizeof(int64_t));
  auto* t = new (memory.at) TensorObj;
  init_header(t, memory.budget);
  int64_t* dims = t->dims();
  std::copy(shape.begin(), shape.end(), dims);
  if (strides) {
    std::copy(strides, strides + rank, dims + rank);
  } else {
    fill_strides(shape, dims + rank);
  }
  t->dl = DLTensor{data, device, static_cast<int32_t>(rank), dtype, dims, dims + rank, byte_offset};
  t->owner = std::move(owner);
  t->layout = LayoutWord::of(dtype, t->dl.ndim, device.device_type) | flags;
  if (!strides || is_compact(t->dl)) t->layout |= LayoutWord::kCompact;
  if ((reinterpret_cast<uintptr_t>(data) + byte_offset) % kDataAlignment == 0) {
    t->layout |= LayoutWord::kAligned;
  }
  return Ref<TensorObj>::adopt(t);
}

size_t checked_bytes(std::span<const int64_t> shape, DataType dtype) {
  auto bytes = byte_count(shape, dtype);
  if (!bytes || shape.size() > kMaxRank) {
    throw Error(ErrorKind::Runtime,
                cat("a tensor ", tensor_type_text(dtype, shape), " can't exist"))
        .expected(cat("at most ", kMaxRank, " dimensions, none negative, and a size below 2^63"));
  }
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
      return t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64;
    case kDLFloat:
      return t.bits == 16 || t.bits == 32 || t.bits == 64;
    case kDLBfloat:
      return t.bits == 16;
    case kDLBool:
      return t.bits == 8;
    default:
      return false;
  }
}

namespace {

// A view of a foreign tensor, after checking that we can represent it.
Ref<TensorObj> wrap(const DLTensor& t, Ref<Object> owner, uint64_t flags) {
  auto refuse = [](std::string_view why) {
    throw Error(ErrorKind::Usage, "invalid DLPack tensor").found(why);
  };
  if (t.ndim < 0 || t.ndim > kMaxRank) refuse(cat(t.ndim, " dimensions"));
  if (t.ndim > 0 && !t.shape) refuse("no shape");
  DataType dtype = t.dtype;
  if (!is_tensor_dtype(dtype)) {
    throw Error(ErrorKind::Unsupported,
                cat("a tensor can't have elements of type ", to_text(dtype)))
        .expected("bool, int8..int64, uint8..uint64, float16, bfloat16, float32, float64");
  }
  std::span<const int64_t> shape(t.shape, static_cast<size_t>(t.ndim));
  auto bytes = byte_count(shape, dtype);
  if (!bytes) refuse(cat("the shape ", to_text(shape)));
  if (*bytes > 0 && !t.data) refuse("no data");
  if (t.strides && *bytes > 0) {
    int64_t extent = 0;  // the farthest element, in elements
    for (int32_t i = 0; i < t.ndim; ++i) {
      int64_t step;
      int64_t size = t.strides[i] < 0 ? -(t.strides[i] + 1) : t.strides[i];
      if (__builtin_mul_overflow(size, t.shape[i] - 1, &step) ||
          __builtin_add_overflow(extent, step, &extent) ||
          extent > (int64_t{1} << 62) / dtype.bytes()) {
        refuse(cat("strides ", to_text(std::span<const int64_t>(t.strides, shape.size()))));
      }
    }
  }
  return new_tensor(t.data, t.byte_offset, t.device, dtype, shape, t.strides, std::move(owner),
                    flags);
}

template <class Managed>
struct ManagedOwner : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;
  static constexpr int32_t kTypeLast = kTypeIndex;
  Managed* managed;
  explicit ManagedOwner(Managed* m) : managed(m) {}
  ~ManagedOwner() {
    if (managed->deleter) managed->deleter(managed);
  }
};

template <class Managed>
Ref<Object> owner_of(Managed* managed) {
  try {
    return make<ManagedOwner<Managed>>(managed);
  } catch (...) {
    if (managed->deleter) managed->deleter(managed);
    throw;
  }
}

// What a DLPack consumer holds: the managed tensor and a reference to ours.
template <class Managed>
struct Export {
  Managed managed;
  Ref<TensorObj> tensor;
};

template <class Managed>
Managed* export_tensor(TensorObj* tensor) {
  auto made = std::make_unique<Export<Managed>>();
  made->tensor = share(tensor);
  made->managed.dl_tensor = tensor->dl;
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->manager_ctx); };
  return &made.release()->managed;
}

}  // namespace

Tensor Tensor::over(Ref<StorageObj> storage, uint64_t offset, DataType dtype,
                    std::span<const int64_t> shape) {
  size_t bytes = checked_bytes(shape, dtype);
  if (offset > storage->size || bytes > storage->size - offset) {
    throw Error(ErrorKind::Runtime, "a tensor doesn't fit its storage")
        .expected(cat(bytes, " bytes at ", offset), tensor_type_text(dtype, shape))
        .found(cat(storage->size, " bytes"));
  }
  uint64_t flags = 0;
  if (storage->flags & StorageObj::kIsPooled) flags |= LayoutWord::kPooled;
  if (storage->flags & StorageObj::kIsReadOnly) flags |= LayoutWord::kReadOnly;
  DLDevice device = storage->device;
  void* data = storage->data;
  if (device.device_type == kDLCPU) {  // on other devices, `data` may not be an address
    data = static_cast<char*>(data) + offset;
    offset = 0;
  }
  return Tensor(new_tensor(data, offset, device, dtype, shape, nullptr, std::move(storage), flags));
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
  return Tensor(new_tensor(const_cast<void*>(data), 0, device, dtype, shape, nullptr,
                           std::move(owner), read_only ? LayoutWord::kReadOnly : 0));
}

Tensor Tensor::reshaped(std::span<const int64_t> to) const {
  auto n = element_count(to);
  if (!compact() || !n || *n != count() || to.size() > kMaxRank) {
    throw Error(ErrorKind::Runtime, "a tensor can't be reshaped")
        .expected(cat(count(), " elements, compact"))
        .found(cat(to_text(to), compact() ? "" : " for a strided tensor"));
  }
  TensorObj* t = get();
  return Tensor(new_tensor(t->dl.data, t->dl.byte_offset, t->dl.device, t->dl.dtype, to, nullptr,
                           t->owner, t->layout & kFlagMask & ~LayoutWord::kCompact));
}

namespace {

Tensor with_flags(const Tensor& tensor, uint64_t more) {
  TensorObj* t = tensor.get();
  if ((t->layout & more) == more) return tensor;
  uint64_t flags = (t->layout & kFlagMask & ~LayoutWord::kCompact) | more;
  return Tensor(new_tensor(t->dl.data, t->dl.byte_offset, t->dl.device, t->dl.dtype, tensor.shape(),
                           t->dl.strides, t->owner, flags));
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

namespace {

// Copies `count` elements of `size` bytes, whose distance is `step` bytes, without gaps.
void copy_row(char* to, const char* from, int64_t count, int64_t size, int64_t step,
              Ticker* ticker) {
  constexpr int64_t kPart = int64_t{1} << 18;  // elements
  for (int64_t at = 0; at < count; at += kPart) {
    const int64_t end = std::min(count, at + kPart);
    if (step == size) {
      std::memcpy(to + at * size, from + at * size, static_cast<size_t>((end - at) * size));
    } else {
      for (int64_t i = at; i < end; ++i) {
        std::memcpy(to + i * size, from + i * step, static_cast<size_t>(size));
      }
    }
    ticker->tick(static_cast<size_t>((end - at) * size));
  }
}

}  // namespace

void Tensor::copy_elements(void* memory) const {
  if (device().device_type != kDLCPU) {
    throw Error(ErrorKind::Unsupported, "a strided tensor on a device can't be made compact here");
  }
  const int64_t size = dtype().bytes();
  const char* from = static_cast<const char*>(data());
  char* to = static_cast<char*>(memory);
  Ticker ticker;
  if (count() == 0) return;
  if (compact()) return copy_row(to, from, count(), size, size, &ticker);
  const auto last = static_cast<size_t>(rank()) - 1;  // a tensor of rank 0 is compact
  const int64_t inner = dim(rank() - 1);
  std::vector<int64_t> at(last);
  int64_t offset = 0;
  for (int64_t row = 0, rows = count() / inner; row < rows; ++row, to += inner * size) {
    copy_row(to, from + offset, inner, size, strides()[last] * size, &ticker);
    for (size_t i = last; i-- > 0;) {
      const int64_t step = strides()[i] * size, extent = shape()[i];
      offset += step;
      if (++at[i] < extent) break;
      offset -= step * extent;
      at[i] = 0;
    }
  }
}

Tensor Tensor::from_dlpack(DLManagedTensor* managed, bool read_only) {
  if (!managed) throw Error(ErrorKind::Usage, "a DLPack tensor is null");
  Ref<Object> owner = owner_of(managed);
  return Tensor(wrap(managed->dl_tensor, std::move(owner), read_only ? LayoutWord::kReadOnly : 0));
}

Tensor Tensor::from_dlpack(DLManagedTensorVersioned* managed) {
  if (!managed) throw Error(ErrorKind::Usage, "a DLPack tensor is null");
  Ref<Object> owner = owner_of(managed);
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    throw Error(ErrorKind::Unsupported, "a DLPack tensor of an unsupported version")
        .expected(cat(DLPACK_MAJOR_VERSION, ".x"))
        .found(cat(managed->version.major, '.', managed->version.minor));
  }
  bool read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  return Tensor(wrap(managed->dl_tensor, std::move(owner), read_only ? LayoutWord::kReadOnly : 0));
}

DLManagedTensor* Tensor::to_dlpack(bool allow_read_only) const {
  if (read_only() && !allow_read_only) {
    throw Error(ErrorKind::Usage, "unversioned DLPack can't express that a tensor is read-only")
        .help("request a versioned DLPack tensor");
  }
  return export_tensor<DLManagedTensor>(get());
}

DLManagedTensorVersioned* Tensor::to_dlpack_versioned() const {
  auto* m = export_tensor<DLManagedTensorVersioned>(get());
  m->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m->flags = read_only() ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return m;
}

int64_t Tensor::count() const {
  return element_count(shape()).value_or(0);
}
int64_t Tensor::bytes() const {
  return count() * dtype().bytes();
}

[[gnu::cold]] std::string tensor_type_text(DataType dtype, std::span<const int64_t> shape) {
  return to_text(dtype) + to_text(shape);
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
    if (known && fits) return Any(value);
  } else if (t == TypeIndex::Tensor) {
    auto* tensor = static_cast<TensorObj*>(value.v.object);
    if (tensor->is_ours()) return Any(value);
    return Any(Tensor(wrap(tensor->dl, Ref<Object>(tensor), 0)));
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
