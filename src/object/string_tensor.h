// String tensors: tensors whose elements are strings of valid UTF-8.
//
//   data   int64 ends[count]  element i is the text from ends[i - 1], or 0, up to ends[i]
//          char  text[]       of all elements, in row-major order
//
// One is a Tensor of the element type `string_elements`, so that shapes, reshaping, types of
// functions and memory limits treat it as they treat all tensors. But its memory is a form of
// Tenon's own: it is immutable, DLPack doesn't export it, no tensor from outside has the type, and
// no kernel or instruction makes one. Only StringTensorBuilder does; the storage carries
// StorageObj::kHasStrings, which every reader demands, so that a program can't forge the ends.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "object/tensor.h"

namespace tenon {

inline bool is_string_tensor(const Tensor& t) {
  return t && t.dtype() == string_elements;
}

// Reads the elements of a string tensor, whose memory it keeps alive.
class Strings {
 public:
  // A Runtime error for any other tensor; `what` names it there.
  explicit Strings(const Tensor& tensor, std::string_view what = "a value");

  int64_t size() const { return count_; }
  std::string_view operator[](int64_t i) const;  // 0 <= i < size()
  int64_t text_bytes() const;                    // of all elements

 private:
  Tensor tensor_;
  int64_t count_;
};

// Makes a string tensor on the C++ heap, element by element in row-major order. Its memory counts
// for the thread's ObjectBudget; all functions throw that budget's error, or Runtime if there is no
// memory or no such tensor. They poll while they copy much.
class StringTensorBuilder {
 public:
  // Reserves room for `text_bytes` of text, and gets more as needed.
  explicit StringTensorBuilder(std::span<const int64_t> shape, size_t text_bytes = 0);

  // Adds the next element: the parts, joined. They must be valid UTF-8 (see require_utf8).
  void append(std::string_view part) { append({&part, 1}); }
  void append(std::span<const std::string_view> parts);
  // Adds text to the next element, which the next `append` completes.
  void extend(std::string_view text);
  // The tensor, once it has all elements. The builder is empty afterwards.
  Tensor finish();

 private:
  void reserve(size_t more);  // bytes of text
  int64_t* ends() const { return static_cast<int64_t*>(storage_->data); }

  Shape shape_;
  int64_t count_, added_ = 0;
  size_t used_ = 0;  // bytes of text
  Ref<StorageObj> storage_;
};

Tensor string_tensor(std::span<const int64_t> shape, std::span<const std::string_view> elements);

// The bytes that make up a compact tensor's value: Tensor::bytes() and, of strings, their text.
size_t content_bytes(const Tensor& tensor);
// The string tensor whose content these bytes are, as at the head of this file, which may be
// unaligned. Null if they can't be: wrong ends, or text that isn't UTF-8.
Tensor string_tensor_of_content(std::span<const int64_t> shape, std::string_view content);

// A Usage error, which names element `index` of `what`, for text that isn't valid UTF-8.
void require_utf8(std::string_view text, int64_t index, std::string_view what);

}  // namespace tenon
