// Tensors from and for other frameworks, by DLPack.
#include <memory>

#include "object/new_tensor.h"
#include "object/packed_elements.h"
#include "support/error.h"
#include "support/failures.h"

namespace tenon {

namespace {

// How a DLPack tensor's memory is given back.
template <class Managed>
HostMemory memory_of(Managed* managed) {
  return {managed, [](void* context) {
            auto* const m = static_cast<Managed*>(context);
            if (m->deleter) m->deleter(m);
          }};
}

// What a DLPack consumer holds: the managed tensor and a reference to ours.
template <class Managed>
struct Export {
  Managed managed;
  Ref<TensorObj> tensor;
};

template <class Managed>
Managed* export_tensor(TensorObj* tensor) {
  if (DataType(tensor->dl.dtype) == string_elements)
    throw_misuse("DLPack can't express a tensor of strings", to_text(Tensor(Ref<Object>(tensor))));
  auto made = std::make_unique<Export<Managed>>();
  made->tensor = share(tensor);
  made->managed.dl_tensor = tensor->dl;
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->manager_ctx); };
  return &made.release()->managed;
}

// A copy with a byte per element if the host's elements are packed. `flags` are DLPack's.
Tensor unpacked(Tensor tensor, uint64_t flags) {
  const DataType dtype = tensor.dtype();
  if (dtype.bits >= 8 || (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)) return tensor;
  if (!tensor.compact())
    throw_failure(ErrorKind::Unsupported, "packed elements with strides", to_text(tensor),
                  "a compact tensor");
  const auto bytes = static_cast<size_t>(packed_bytes(dtype, tensor.count()));
  return unpack_elements({tensor.data_as<uint8_t>(), bytes}, tensor.shape(), dtype);
}

}  // namespace

Tensor Tensor::from_dlpack(DLManagedTensor* managed, bool read_only) {
  if (!managed) throw Error(ErrorKind::Usage, "a DLPack tensor is null");
  return unpacked(host_tensor(managed->dl_tensor, read_only, memory_of(managed)), 0);
}

Tensor Tensor::from_dlpack(DLManagedTensorVersioned* managed) {
  if (!managed) throw Error(ErrorKind::Usage, "a DLPack tensor is null");
  const HostMemory memory = memory_of(managed);
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    const std::unique_ptr<void, void (*)(void*)> ended(memory.context, memory.end);
    throw_failure(ErrorKind::Unsupported, "a DLPack tensor of an unsupported version",
                  cat(managed->version.major, '.', managed->version.minor),
                  cat(DLPACK_MAJOR_VERSION, ".x"));
  }
  const bool read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  return unpacked(host_tensor(managed->dl_tensor, read_only, memory), managed->flags);
}

DLManagedTensor* Tensor::to_dlpack(bool allow_read_only) const {
  if (read_only() && !allow_read_only) {
    throw Error(ErrorKind::Usage, "unversioned DLPack can't express that a tensor is read-only")
        .help("request a versioned DLPack tensor");
  }
  if (dtype().bits < 8) {
    throw Error(ErrorKind::Usage,
                cat("unversioned DLPack can't express a byte per element of ", to_text(dtype())))
        .help("request a versioned DLPack tensor");
  }
  return export_tensor<DLManagedTensor>(get());
}

DLManagedTensorVersioned* Tensor::to_dlpack_versioned() const {
  auto* m = export_tensor<DLManagedTensorVersioned>(get());
  m->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m->flags = read_only() ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  if (dtype().bits < 8) m->flags |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return m;
}

}  // namespace tenon
