// Tensors from and for other frameworks, by DLPack.
#include <memory>

#include "object/new_tensor.h"
#include "support/error.h"

namespace tenon {

Ref<TensorObj> wrap_tensor(const DLTensor& t, Ref<Object> owner, uint64_t flags) {
  auto refuse = [](std::string_view why) {
    throw Error(ErrorKind::Usage, "invalid DLPack tensor").found(why);
  };
  if (t.ndim < 0 || t.ndim > kMaxRank) refuse(cat(t.ndim, " dimensions"));
  if (t.ndim > 0 && !t.shape) refuse("no shape");
  DataType dtype = t.dtype;
  if (!is_tensor_dtype(dtype)) {
    throw Error(ErrorKind::Unsupported,
                cat("a tensor can't have elements of type ", to_text(dtype)))
        .expected("bool, i8 to i64, u8 to u64, f16, bf16, f32 or f64");
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

namespace {

// Memory of the host.
struct HostOwner : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;
  void* const context;
  void (*const end)(void* context);
  HostOwner(void* c, void (*e)(void*)) : context(c), end(e) {}
  ~HostOwner() {
    if (end) end(context);
  }
};

Ref<Object> owner_of(void* context, void (*end)(void*)) {
  try {
    return make<HostOwner>(context, end);
  } catch (...) {
    if (end) end(context);
    throw;
  }
}

template <class Managed>
Ref<Object> owner_of(Managed* managed) {
  return owner_of(managed, [](void* context) {
    auto* const m = static_cast<Managed*>(context);
    if (m->deleter) m->deleter(m);
  });
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

Tensor host_tensor(const DLTensor& view, bool read_only, void* context, void (*end)(void*)) {
  Ref<Object> owner = owner_of(context, end);
  return Tensor(wrap_tensor(view, std::move(owner), read_only ? LayoutWord::kReadOnly : 0));
}

Tensor Tensor::from_dlpack(DLManagedTensor* managed, bool read_only) {
  if (!managed) throw Error(ErrorKind::Usage, "a DLPack tensor is null");
  Ref<Object> owner = owner_of(managed);
  return Tensor(
      wrap_tensor(managed->dl_tensor, std::move(owner), read_only ? LayoutWord::kReadOnly : 0));
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
  return Tensor(
      wrap_tensor(managed->dl_tensor, std::move(owner), read_only ? LayoutWord::kReadOnly : 0));
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

}  // namespace tenon
