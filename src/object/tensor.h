// Tensor: a reference-counted DLPack tensor that owns, or shares, its storage.
//
//   TensorObj  header
//     byte 24  DLTensor (tvm-ffi's layout ends here)
//          72  uint64 layout: the cached word below
//          80  owner: keeps the data alive (a Storage, another Tensor, a mapped file)
//          88  dimensions, strides, and, of the host's memory (kOfHost), its HostMemory
//
//   layout   bits 0-31 dtype (code, bits, lanes) · 32-39 rank · 40-47 device type · 48.. flags
//
// The word lets a kernel check dtype, rank, device, compactness and writability in one comparison.
// It exists only in a TensorObj whose deleter is ours (`is_ours`); values from outside are
// rewrapped on entry (`admit`). A tensor's shape, dtype and data pointer never change.
#pragma once

#include <cstdint>
#include <span>

#include "object/any.h"
#include "object/shape.h"
#include "tenon/dlpack.h"

namespace tenon {

// The element types that tensors of numbers may have, and so all tensors from outside; a string
// tensor's isn't one of them.
bool is_tensor_dtype(DataType t);
// Those of them of which there are scalars: the elements are single numbers or booleans.
inline bool is_scalar_dtype(DataType t) {
  return is_tensor_dtype(t) && !t.is_complex();
}

struct LayoutWord {
  static constexpr uint64_t kCompact = uint64_t{1} << 48;   // row-major without gaps
  static constexpr uint64_t kReadOnly = uint64_t{1} << 49;  // constants and a call's arguments
  static constexpr uint64_t kPooled = uint64_t{1} << 50;    // the storage may be reused in place
  static constexpr uint64_t kAligned = uint64_t{1} << 51;  // the data's address is a multiple of 64
  static constexpr uint64_t kConstant = uint64_t{1}
                                        << 52;  // read-only, and the elements never change
  static constexpr uint64_t kOfHost = uint64_t{1} << 53;  // the tensor is its own owner
  static constexpr uint64_t kTypeMask = 0xffffffffffff;   // dtype, rank, device type

  static constexpr uint64_t of(DataType t, int32_t rank, DLDeviceType device) {
    return uint64_t{t.word()} | uint64_t(static_cast<uint8_t>(rank)) << 32 |
           uint64_t(static_cast<uint8_t>(device)) << 40;
  }
};

inline constexpr DLDevice kCpu{kDLCPU, 0};
constexpr int32_t kMaxRank = 32;
constexpr size_t kAddressSpace =
    SIZE_MAX >> (sizeof(void*) == 8 ? 17 : 1);  // the most bytes ever requested from an allocator
constexpr size_t kDataAlignment = 64;           // of all memory that the library allocates

// Memory on a device. `free` returns it to its source (an allocator, a machine's pool).
struct StorageObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Storage;
  static constexpr int32_t kTypeLast = kTypeIndex;
  // kHasStrings: of a string tensor, made by StringTensorBuilder.
  enum Flags : uint32_t { kIsPooled = 1, kIsReadOnly = 2, kHasStrings = 4 };

  void* data = nullptr;
  size_t size = 0;  // bytes
  DLDevice device = kCpu;
  uint32_t flags = 0;
  void (*free)(StorageObj*) = nullptr;  // null if the memory isn't owned
  void* context = nullptr;              // for `free`
  Ref<Object> owner;                    // kept alive as long as the storage

  StorageObj() = default;
  StorageObj(const StorageObj&) = delete;
  ~StorageObj() {
    if (free) free(this);
  }
};

// New memory on the C++ heap, of at least one byte, aligned to kDataAlignment and not initialised.
// It counts for the thread's ObjectBudget as long as it lives. A Runtime error when there is none.
Ref<StorageObj> heap_storage(size_t bytes);

// Memory of the host, which it takes back by a call of `end`.
struct HostMemory {
  void* context;
  void (*end)(void* context);
};

struct TensorObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Tensor;
  static constexpr int32_t kTypeLast = kTypeIndex;
  DLTensor dl;
  uint64_t layout;
  Ref<Object> owner;

  bool is_ours() const { return deleter == &delete_object<TensorObj>; }
  int64_t* dims() { return reinterpret_cast<int64_t*>(this + 1); }
  size_t tail_bytes() const {
    return 2 * static_cast<size_t>(dl.ndim) * sizeof(int64_t) +
           (is_of_host() ? sizeof(HostMemory) : 0);
  }
  bool is_of_host() const { return (layout & LayoutWord::kOfHost) != 0; }
  HostMemory* host() { return reinterpret_cast<HostMemory*>(dims() + 2 * dl.ndim); }
  // What keeps the data of a view of this tensor alive.
  Ref<Object> owner_of_view() { return is_of_host() ? Ref<Object>(this) : owner; }

  ~TensorObj() {
    if (is_of_host()) host()->end(host()->context);
  }
};

class Tensor : public Handle {
 public:
  Tensor() = default;
  explicit Tensor(Ref<Object> r) { ref_ = std::move(r); }

  // A compact tensor over `storage`, starting at byte `offset`. A Runtime error if the size
  // overflows or doesn't fit. The tensor inherits the storage's read-only and pooled flags.
  static Tensor over(Ref<StorageObj> storage, uint64_t offset, DataType dtype,
                     std::span<const int64_t> shape);
  // A compact, uninitialised tensor on the CPU, in its own 64-byte aligned memory from the C++
  // heap. (The allocators of machines and devices are in device/.)
  static Tensor empty(std::span<const int64_t> shape, DataType dtype);
  static Tensor empty(std::initializer_list<int64_t> shape, DataType dtype) {
    return empty(std::span(shape.begin(), shape.size()), dtype);
  }
  // A compact copy of `data` on the CPU.
  template <class T>
  static Tensor copy_of(std::span<const int64_t> shape, DataType dtype, std::span<const T> data) {
    return copy_of_bytes(shape, dtype, data.data(), data.size_bytes());
  }
  static Tensor copy_of_bytes(std::span<const int64_t> shape, DataType dtype, const void* data,
                              size_t bytes);
  // A view of memory that `owner` keeps alive (a mapped file).
  static Tensor view(const void* data, std::span<const int64_t> shape, DataType dtype,
                     Ref<Object> owner, bool read_only = true, DLDevice device = kCpu);
  // The same elements with another shape, sharing the storage. A Runtime error if the element
  // counts differ or this tensor isn't compact.
  Tensor reshaped(std::span<const int64_t> shape) const;
  // The same tensor, read-only.
  Tensor as_read_only() const;
  // The same tensor, declared never to change, so that results derived from it may be cached as
  // long as the returned tensor lives.
  Tensor as_constant() const;
  // This tensor if it is compact, else a compact copy on the CPU's heap.
  Tensor compacted() const;
  // Writes the elements to CPU memory in row-major order without gaps, polling (support/poll.h)
  // between parts. The data may be unaligned. An Unsupported error for a tensor on another device.
  void copy_elements(void* to) const;

  // DLPack. `from_dlpack` takes ownership of the managed tensor, whose deleter runs when the last
  // view of it dies, or at once if this throws: a Usage error for negative or overflowing sizes,
  // too many dimensions, unsupported element types, or null data. The unversioned struct has no
  // read-only flag, so `read_only` sets it.
  static Tensor from_dlpack(DLManagedTensor* managed, bool read_only = false);
  static Tensor from_dlpack(DLManagedTensorVersioned* managed);
  // A managed tensor that shares this one's memory; the receiver calls its deleter. The unversioned
  // struct has no read-only flag: a Usage error for a read-only tensor unless `allow_read_only`.
  DLManagedTensor* to_dlpack(bool allow_read_only = false) const;
  DLManagedTensorVersioned* to_dlpack_versioned() const;

  const DLTensor& dl() const { return get()->dl; }
  TensorObj* get() const { return static_cast<TensorObj*>(ref_.get()); }
  TensorObj* operator->() const { return get(); }
  void* data() const { return static_cast<char*>(dl().data) + dl().byte_offset; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }
  DataType dtype() const { return dl().dtype; }
  DLDevice device() const { return dl().device; }
  int32_t rank() const { return dl().ndim; }
  int64_t dim(int32_t i) const { return dl().shape[i]; }
  std::span<const int64_t> shape() const { return {dl().shape, static_cast<size_t>(dl().ndim)}; }
  std::span<const int64_t> strides() const {
    return {dl().strides, static_cast<size_t>(dl().ndim)};
  }
  int64_t count() const;  // elements
  int64_t bytes() const;  // count * bytes of an element
  bool compact() const { return (get()->layout & LayoutWord::kCompact) != 0; }
  // Whether the data's address is a multiple of an element's size.
  bool aligned() const;
  bool read_only() const { return (get()->layout & LayoutWord::kReadOnly) != 0; }
  bool constant() const { return (get()->layout & LayoutWord::kConstant) != 0; }
  uint64_t layout() const { return get()->layout; }

  static bool accepts(const AnyView& a) { return a.type_index == TypeIndex::Tensor || a.is_none(); }
  static std::string type_text() { return "tensor"; }
};

std::string to_text(const Tensor& t);  // "tensor[2, 48; f32]"
// A tensor's type as messages show it.
std::string tensor_type_text(DataType dtype, std::span<const int64_t> shape);

// Brings a value in from outside. A foreign tensor is rewrapped around the same data, a foreign
// function is wrapped so that its results are admitted too, and raw strings and bytes are copied.
// Anything else unknown (a bare DLTensor*, unsupported built-in types, null pointers) is a Usage
// error.
Any admit(const AnyView& value);

}  // namespace tenon
