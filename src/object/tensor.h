// Tensor: a DLPack tensor that is counted and owns, or shares, its storage.
//
//   TensorObj  header
//     byte 24  DLTensor (tvm-ffi's layout ends here)
//          72  uint64 layout: the cached word below
//          80  owner: keeps the data alive (a Storage, another Tensor, a file's mapping)
//          88  dimensions, then strides, int64 each
//
//   layout   bits 0-31 dtype (code, bits, lanes) · 32-39 rank · 40-47 device type · 48.. flags
//
// The word lets a kernel check dtype, rank, device, compactness and writability in one comparison.
// It may be read only of a TensorObj whose deleter is ours (`is_ours`); values from outside are
// rewrapped on entry (`admit`). A tensor never changes its shape, dtype or data pointer.
#pragma once

#include <cstdint>
#include <span>

#include "object/any.h"
#include "object/shape.h"
#include "tenon/dlpack.h"

namespace tenon {

// The element types that tensors may have.
bool is_tensor_dtype(DataType t);

struct LayoutWord {
  static constexpr uint64_t kCompact = uint64_t{1} << 48;   // row-major without gaps
  static constexpr uint64_t kReadOnly = uint64_t{1} << 49;  // constants and a call's arguments
  static constexpr uint64_t kPooled = uint64_t{1} << 50;    // the storage may be reused in place
  static constexpr uint64_t kAligned = uint64_t{1} << 51;  // the data's address is a multiple of 64
  static constexpr uint64_t kConstant = uint64_t{1} << 52;  // read-only, and nobody else writes it
  static constexpr uint64_t kTypeMask = 0xffffffffffff;     // dtype, rank, device type

  static constexpr uint64_t of(DataType t, int32_t rank, DLDeviceType device) {
    return uint64_t{t.word()} | uint64_t(static_cast<uint8_t>(rank)) << 32 |
           uint64_t(static_cast<uint8_t>(device)) << 40;
  }
};

inline constexpr DLDevice kCpu{kDLCPU, 0};
constexpr int32_t kMaxRank = 32;
constexpr size_t kAddressSpace = SIZE_MAX >> (sizeof(void*) == 8
                                                  ? 17
                                                  : 1);  // no allocator is asked for more bytes
constexpr size_t kDataAlignment = 64;                    // of what the library allocates

// Memory on a device. `free` gives it back where it came from (an allocator, a machine's pool).
struct StorageObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Storage;
  static constexpr int32_t kTypeLast = kTypeIndex;
  enum Flags : uint32_t { kIsPooled = 1, kIsReadOnly = 2 };

  void* data = nullptr;
  size_t size = 0;  // bytes
  DLDevice device = kCpu;
  uint32_t flags = 0;
  void (*free)(StorageObj*) = nullptr;  // null when the memory isn't owned
  void* context = nullptr;              // for `free`
  Ref<Object> owner;                    // kept alive as long as the storage

  StorageObj() = default;
  StorageObj(const StorageObj&) = delete;
  ~StorageObj() {
    if (free) free(this);
  }
};

struct TensorObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Tensor;
  static constexpr int32_t kTypeLast = kTypeIndex;
  DLTensor dl;
  uint64_t layout;
  Ref<Object> owner;

  bool is_ours() const { return deleter == &delete_object<TensorObj>; }
  int64_t* dims() { return reinterpret_cast<int64_t*>(this + 1); }
  size_t tail_bytes() const { return 2 * static_cast<size_t>(dl.ndim) * sizeof(int64_t); }
};

class Tensor : public Handle {
 public:
  Tensor() = default;
  explicit Tensor(Ref<Object> r) { ref_ = std::move(r); }

  // A compact tensor over `storage`, from `offset` bytes on. A Runtime error when the size
  // overflows or doesn't fit. What is read-only or pooled of the storage is so of the tensor.
  static Tensor over(Ref<StorageObj> storage, uint64_t offset, DataType dtype,
                     std::span<const int64_t> shape);
  // A compact tensor on the CPU, not initialised, in memory of its own from the C++ heap, aligned
  // to 64 bytes. (The machine's and devices' allocators are in device/.)
  static Tensor empty(std::span<const int64_t> shape, DataType dtype);
  static Tensor empty(std::initializer_list<int64_t> shape, DataType dtype) {
    return empty(std::span(shape.begin(), shape.size()), dtype);
  }
  // A copy of `data`, compact, on the CPU.
  template <class T>
  static Tensor copy_of(std::span<const int64_t> shape, DataType dtype, std::span<const T> data) {
    return copy_of_bytes(shape, dtype, data.data(), data.size_bytes());
  }
  static Tensor copy_of_bytes(std::span<const int64_t> shape, DataType dtype, const void* data,
                              size_t bytes);
  // A view of memory that `owner` keeps alive (a mapped file); read-only unless said otherwise.
  static Tensor view(const void* data, std::span<const int64_t> shape, DataType dtype,
                     Ref<Object> owner, bool read_only = true, DLDevice device = kCpu);
  // The same elements in another shape, sharing the storage. A Runtime error when the counts differ
  // or this isn't compact.
  Tensor reshaped(std::span<const int64_t> shape) const;
  // The same tensor, which nobody may write through the result.
  Tensor as_read_only() const;
  // The same of a tensor whose elements never change again, so that what is made of them may be
  // kept as long as the result lives.
  Tensor as_constant() const;
  // This tensor if it is compact, else a compact copy of it on the CPU's heap.
  Tensor compacted() const;
  // Writes the elements to memory on the CPU, in row-major order without gaps. An Unsupported error
  // for a strided tensor on another device.
  void copy_elements(void* to) const;

  // DLPack. `from_` takes over the managed tensor, whose deleter runs when the last view of it dies
  // (at once when this throws: a Usage error for what no tensor of ours can be: negative or
  // overflowing sizes, too many dimensions, element types that aren't listed, null data).
  // An unversioned tensor can't say that it is read-only; it is taken as read-only when
  // `read_only`.
  static Tensor from_dlpack(DLManagedTensor* managed, bool read_only = false);
  static Tensor from_dlpack(DLManagedTensorVersioned* managed);
  // A managed tensor that shares this one's memory; its receiver calls its deleter. The unversioned
  // form can't say read-only: a Usage error for a read-only tensor unless `allow_read_only`.
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
  bool read_only() const { return (get()->layout & LayoutWord::kReadOnly) != 0; }
  bool constant() const { return (get()->layout & LayoutWord::kConstant) != 0; }
  uint64_t layout() const { return get()->layout; }

  static bool accepts(const AnyView& a) { return a.type_index == TypeIndex::Tensor || a.is_none(); }
  static std::string type_text() { return "tensor"; }
};

std::string to_text(const Tensor& t);  // "float32[2, 48]"
// The type of a tensor as messages write it.
std::string tensor_type_text(DataType dtype, std::span<const int64_t> shape);

// The entry from outside: the same value, with a tensor that isn't ours rewrapped around the same
// data, a foreign function wrapped so that its results enter here too, raw strings and bytes
// copied, and what we don't know (a bare DLTensor*, built-in types we have no use for, null
// pointers) refused with a Usage error.
Any admit(const AnyView& value);

}  // namespace tenon
