// Tensors. Included by tenon/tenon.h.
#pragma once

#include <complex>
#include <cstring>
#include <ranges>

#include "tenon/cpp/container.h"

namespace tenon {
inline namespace v1 {

/// The dtype of tensors whose elements are Ts: bool, integers of 8 to 64 bits, float, double, and
/// std::complex of these two.
/// Specialise it for a type of your own, such as a 16-bit float:
///
///   template <> inline constexpr DLDataType tenon::dtype_of<Half> = {kDLFloat, 16, 1};
template <class T>
inline constexpr DLDataType dtype_of = {std::same_as<T, bool>       ? kDLBool
                                        : std::floating_point<T>    ? kDLFloat
                                        : std::unsigned_integral<T> ? kDLUInt
                                        : std::signed_integral<T>   ? kDLInt
                                                                    : kDLOpaqueHandle,
                                        8 * sizeof(T), 1};

template <class T>
requires std::same_as<T, float> || std::same_as<T, double>
inline constexpr DLDataType dtype_of<std::complex<T>> = {kDLComplex, 8 * sizeof(std::complex<T>),
                                                         1};

/// A type that has a dtype.
template <class T>
concept Element = dtype_of<T>
.code != kDLOpaqueHandle;

/// The dtype of tensors of strings.
inline constexpr DLDataType string_dtype = {kDLOpaqueHandle, 64, 1};

/// The processor that runs programs.
inline constexpr DLDevice cpu = {kDLCPU, 0};

namespace detail {
struct DeleteManaged {
  template <class T>
  void operator()(T* tensor) const {
    if (tensor->deleter) tensor->deleter(tensor);
  }
};
inline bool same(DLDataType a, DLDataType b) noexcept {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
}  // namespace detail

/// Tensors of DLPack, owned. `release()` hands one to another library.
using DLPack = std::unique_ptr<DLManagedTensor, detail::DeleteManaged>;
using DLPackVersioned = std::unique_ptr<DLManagedTensorVersioned, detail::DeleteManaged>;

/// A tensor: a reference to elements in memory with a shape, a dtype, strides and a device. Copies
/// share the elements. Threads may read the elements at the same time; who writes them must be
/// alone.
class Tensor : public Value {
 public:
  static constexpr const char* kTypeName = "tensor";
  static bool accepts(const Value& v) noexcept { return v.type_index() == TENON_TENSOR; }
  static Tensor unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  Tensor() = default;
  /// A compact tensor whose elements aren't initialised.
  static Tensor empty(Dims shape, DLDataType dtype, DLDevice device = cpu) {
    Tensor t;
    detail::check(tenon_tensor_create(shape.data(), static_cast<int32_t>(shape.size()), dtype,
                                      device, t.out()));
    return t;
  }
  /// A compact tensor of zeros.
  static Tensor zeros(Dims shape, DLDataType dtype) {
    Tensor t = empty(shape, dtype);
    std::memset(t.dl().data, 0, t.byte_size());
    return t;
  }
  /// A compact tensor with every element equal to `value`.
  template <Element T>
  static Tensor full(Dims shape, T value) {
    Tensor t = empty(shape, dtype_of<T>);
    std::ranges::fill(t.mutable_view<T>(), value);
    return t;
  }
  /// A compact tensor with a copy of the values, the last axis innermost. Throws UsageError unless
  /// the shape has as many elements.
  template <std::ranges::contiguous_range R>
  requires Element<std::ranges::range_value_t<R>>
  static Tensor copy(const R& values, Dims shape) {
    using T = std::ranges::range_value_t<R>;
    check_count(std::ranges::size(values), shape);
    Tensor t = empty(shape, dtype_of<T>);
    std::ranges::copy(values, t.mutable_view<T>().begin());
    return t;
  }
  template <Element T>
  static Tensor copy(std::initializer_list<T> values, Dims shape) {
    return copy(std::span(std::data(values), values.size()), shape);
  }
  /// A tensor of strings with a copy of the texts, which must be UTF-8, the last axis innermost.
  /// Throws UsageError unless the shape has as many elements. Such a tensor is immutable and has no
  /// DLPack.
  template <std::ranges::sized_range R>
  requires std::convertible_to<std::ranges::range_reference_t<R>, std::string_view>
  static Tensor strings(const R& texts, Dims shape) {
    check_count(std::ranges::size(texts), shape);
    std::vector<tenon_text> elements;
    elements.reserve(std::ranges::size(texts));
    for (const auto& text : texts) {
      const std::string_view view(text);
      elements.push_back({view.data(), view.size()});
    }
    Tensor t;
    detail::check(tenon_string_tensor_create(elements.data(), shape.data(),
                                             static_cast<int32_t>(shape.size()), t.out()));
    return t;
  }
  static Tensor strings(std::initializer_list<std::string_view> texts, Dims shape) {
    return strings(std::span(std::data(texts), texts.size()), shape);
  }
  /// A compact tensor that takes over the vector's memory.
  template <Element T>
  requires(!std::same_as<T, bool>) static Tensor take(std::vector<T> values, Dims shape) {
    check_count(values.size(), shape);
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    void* const data = kept->data();
    return over(data, shape, dtype_of<T>, false, kept.release(),
                [](void* context) { delete static_cast<std::vector<T>*>(context); });
  }
  /// A compact tensor in the caller's memory, such as that of a span or of a vector that outlives
  /// every reference to the tensor. One made of const elements is read-only.
  template <std::ranges::contiguous_range R>
  requires std::ranges::borrowed_range<R> && Element<std::ranges::range_value_t<R>>
  static Tensor borrow(R&& values, Dims shape) {
    const std::span all(std::ranges::data(values), std::ranges::size(values));
    check_count(all.size(), shape);
    using T = typename decltype(all)::element_type;
    return over(all.data(), shape, dtype_of<std::remove_const_t<T>>, std::is_const_v<T>);
  }

  /// Takes over a tensor of DLPack without copying its elements; its deleter runs when the last
  /// reference ends, or at once if this throws.
  static Tensor from_dlpack(DLPack tensor, bool read_only = false) {
    Tensor t;
    detail::check(tenon_tensor_from_dlpack(tensor.release(), read_only, t.out()));
    return t;
  }
  static Tensor from_dlpack(DLPackVersioned tensor) {
    Tensor t;
    detail::check(tenon_tensor_from_dlpack_versioned(tensor.release(), t.out()));
    return t;
  }
  /// A tensor of DLPack that shares the elements. The unversioned one can't express that a tensor
  /// is read-only, so for such a tensor it throws UsageError.
  DLPack to_dlpack() const {
    DLManagedTensor* tensor = nullptr;
    detail::check(tenon_tensor_to_dlpack(raw(), &tensor));
    return DLPack(tensor);
  }
  DLPackVersioned to_dlpack_versioned() const {
    DLManagedTensorVersioned* tensor = nullptr;
    detail::check(tenon_tensor_to_dlpack_versioned(raw(), &tensor));
    return DLPackVersioned(tensor);
  }

  /// The tensor as DLPack describes it, borrowed.
  const DLTensor& dl() const {
    const DLTensor* tensor = tenon_tensor_view(raw());
    if (!tensor) throw UsageError("this Tensor holds no tensor", {{"found", type_key()}});
    return *tensor;
  }
  /// Whether the elements are strings, which `text` reads.
  bool is_strings() const { return detail::same(dl().dtype, string_dtype); }
  /// Element `index` of a tensor of strings, borrowed. Throws UsageError for any other tensor and
  /// beyond the last element.
  std::string_view text(size_t index) const& {
    const tenon_text found = tenon_string_tensor_element(raw(), index);
    if (!found.data) {
      throw UsageError("there is no such string in the tensor",
                       {{"index", std::to_string(index)}, {"tensor", type_key()}});
    }
    return {found.data, found.size};
  }
  std::string_view text(size_t index) const&& = delete;
  size_t rank() const { return static_cast<size_t>(dl().ndim); }
  /// The dimensions, borrowed.
  std::span<const int64_t> shape() const& { return {dl().shape, rank()}; }
  std::span<const int64_t> shape() const&& = delete;
  DLDataType dtype() const { return dl().dtype; }
  DLDevice device() const { return dl().device; }
  /// The number of elements.
  size_t size() const { return count_of({dl().shape, rank()}); }
  /// The number of bytes of the elements, without gaps.
  size_t byte_size() const { return (size() * dtype().bits * dtype().lanes + 7) / 8; }
  /// Whether the elements are contiguous, the last axis innermost.
  bool is_compact() const {
    const DLTensor& t = dl();
    int64_t stride = 1;
    for (int32_t axis = t.ndim; t.strides && axis-- > 0;) {
      if (t.shape[axis] != 1 && t.strides[axis] != stride) return size() == 0;
      stride *= t.shape[axis];
    }
    return true;
  }
  /// Whether the elements must not be written through this reference: `mutable_view` throws.
  bool is_read_only() const noexcept { return tenon_tensor_flags(raw()) & TENON_TENSOR_READ_ONLY; }
  /// Whether the elements never change.
  bool is_constant() const noexcept { return tenon_tensor_flags(raw()) & TENON_TENSOR_CONSTANT; }

  /// The elements in memory order, borrowed. Throws UsageError unless the dtype is T's, the tensor
  /// is compact, and its memory can be read by the CPU.
  template <Element T>
  std::span<const T> view() const& {
    return {static_cast<const T*>(elements(dtype_of<T>)), size()};
  }
  template <Element T>
  std::span<const T> view() const&& = delete;
  /// The same for writing, which throws for a read-only tensor too.
  template <Element T>
  std::span<T> mutable_view() & {
    if (is_read_only()) {
      throw UsageError("a read-only tensor can't be written",
                       {{"help", "write to a copy: Tensor::copy(t.view<T>(), t.shape())"}});
    }
    return {static_cast<T*>(elements(dtype_of<T>)), size()};
  }
  /// The bytes of the elements of a compact tensor of any dtype.
  std::span<const std::byte> bytes() const& {
    return {static_cast<const std::byte*>(elements(dtype())), byte_size()};
  }
  std::span<const std::byte> bytes() const&& = delete;
  /// A copy of the elements in order, the last axis innermost, for compact tensors and others.
  template <Element T>
  std::vector<T> to_vector() const {
    check_readable(dtype_of<T>);
    std::vector<T> out;
    out.reserve(size());
    std::vector<int64_t> index(rank());
    for (size_t n = size(); n > 0; --n) {
      out.push_back(element<T>(index));
      for (size_t axis = rank(); axis-- > 0;) {
        if (++index[axis] < dl().shape[axis]) break;
        index[axis] = 0;
      }
    }
    return out;
  }
  /// The element at an index: `t.at<float>({1, 2})`; `t.at<float>({})` for rank 0. Throws
  /// UsageError for another dtype and for an index out of range.
  template <Element T>
  T at(Dims index) const {
    check_readable(dtype_of<T>);
    bool inside = index.size() == rank();
    for (size_t axis = 0; inside && axis < rank(); ++axis) {
      inside = index.data()[axis] >= 0 && index.data()[axis] < dl().shape[axis];
    }
    if (!inside) {
      throw UsageError("an index is outside the tensor",
                       {{"found", Shape(index).repr()}, {"expected", "an index into " + repr()}});
    }
    return element<T>(std::span(index.data(), index.size()));
  }

 private:
  Tensor(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}

  // A tensor over memory that `release(context)` frees.
  static Tensor over(const void* data, Dims shape, DLDataType dtype, bool read_only,
                     void* context = nullptr, void (*release)(void*) = nullptr) {
    DLTensor view{};
    // DLPack has no const; read_only says it.
    view.data = const_cast<void*>(data);
    view.device = cpu;
    view.ndim = static_cast<int32_t>(shape.size());
    view.dtype = dtype;
    view.shape = const_cast<int64_t*>(shape.data());
    Tensor t;
    detail::check(tenon_tensor_from_memory(&view, read_only, context, release, t.out()));
    return t;
  }
  static size_t count_of(std::span<const int64_t> shape) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    return count;
  }
  static void check_count(size_t values, Dims shape) {
    if (values == count_of({shape.data(), shape.size()})) return;
    throw UsageError(
        "the values don't fill the shape",
        {{"found", std::to_string(values) + " values"}, {"expected", Shape(shape).repr()}});
  }
  void check_readable(DLDataType wanted) const {
    if (!detail::same(dtype(), wanted)) {
      throw UsageError("a tensor has another dtype",
                       {{"found", Value(dtype()).repr()}, {"expected", Value(wanted).repr()}});
    }
    if (device().device_type != kDLCPU) {
      throw UsageError("the CPU can't read this tensor's memory",
                       {{"found", Value(device()).repr()}, {"expected", "cpu"}});
    }
  }
  void* elements(DLDataType wanted) const {
    check_readable(wanted);
    if (!is_compact()) {
      throw UsageError("a tensor's elements aren't contiguous", {{"help", "use to_vector or at"}});
    }
    return static_cast<std::byte*>(dl().data) + dl().byte_offset;
  }
  template <class T>
  T element(std::span<const int64_t> index) const {
    const DLTensor& t = dl();
    int64_t at = 0;
    int64_t compact_stride = 1;
    for (size_t axis = index.size(); axis-- > 0;) {
      at += index[axis] * (t.strides ? t.strides[axis] : compact_stride);
      compact_stride *= t.shape[axis];
    }
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(t.data) + t.byte_offset)[at];
  }
};

}  // namespace v1
}  // namespace tenon
