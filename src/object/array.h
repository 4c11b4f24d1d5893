// Array<T>: a sequence with value semantics. Copies share one object; changing a shared one copies
// it first. The elements are Anys, so every Array<T> has the same object type. Null is empty.
//
//   object: header, byte 24 int64 size, 32 int64 capacity, 40 the elements
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "object/any.h"
#include "object/string.h"

namespace tenon {

struct ArrayObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Array;
  static constexpr int32_t kTypeLast = kTypeIndex;
  int64_t size;
  int64_t capacity;

  Any* begin() { return reinterpret_cast<Any*>(this + 1); }
  const Any* begin() const { return reinterpret_cast<const Any*>(this + 1); }
  const Any* end() const { return begin() + size; }
  ~ArrayObj();

  // An empty array with room for `capacity` elements.
  static Ref<ArrayObj> with_capacity(int64_t capacity);
  static ArrayObj* empty();
  // The array, or null for an empty one, for a change: it becomes an object that nothing else
  // references, with room for `extra` more elements.
  static ArrayObj* own(Ref<Object>* array, int64_t extra);
  size_t tail_bytes() const { return static_cast<size_t>(capacity) * sizeof(Any); }
};
static_assert(sizeof(ArrayObj) == 40);

class ArrayBase : public Handle {
 public:
  size_t size() const { return ref_ ? static_cast<size_t>(get()->size) : 0; }
  bool empty() const { return size() == 0; }
  const Any* any_begin() const { return ref_ ? get()->begin() : nullptr; }
  const Any* any_end() const { return ref_ ? get()->end() : nullptr; }
  static Object* empty_object();

 protected:
  const ArrayObj* get() const { return static_cast<const ArrayObj*>(ref_.get()); }
  ArrayObj* own(int64_t extra) { return ArrayObj::own(&ref_, extra); }
  void push_any(Any value);
  void set_any(size_t i, Any value);
  void resize_down(size_t n);
  void insert_any(size_t i, Any value);
  void erase_at(size_t i);
  void check_index(size_t i) const;
};

template <class T>
class Array : public ArrayBase {
  static_assert(!std::is_same_v<T, float> && !std::is_same_v<T, std::string>,
                "elements are accessed in place: use double and String");

 public:
  using Element = T;
  class iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;
    iterator() = default;
    explicit iterator(const Any* at) : at_(at) {}
    const T& operator*() const { return payload_as<T>(*at_); }
    const T* operator->() const { return &payload_as<T>(*at_); }
    const T& operator[](std::ptrdiff_t n) const { return payload_as<T>(at_[n]); }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return iterator(at_++); }
    iterator& operator--() { return --at_, *this; }
    iterator operator--(int) { return iterator(at_--); }
    iterator& operator+=(std::ptrdiff_t n) { return at_ += n, *this; }
    iterator& operator-=(std::ptrdiff_t n) { return at_ -= n, *this; }
    friend iterator operator+(iterator i, std::ptrdiff_t n) { return iterator(i.at_ + n); }
    friend iterator operator+(std::ptrdiff_t n, iterator i) { return iterator(i.at_ + n); }
    friend iterator operator-(iterator i, std::ptrdiff_t n) { return iterator(i.at_ - n); }
    friend std::ptrdiff_t operator-(iterator a, iterator b) { return a.at_ - b.at_; }
    auto operator<=>(const iterator&) const = default;

   private:
    const Any* at_ = nullptr;
  };

  Array() = default;
  explicit Array(Ref<Object> r) : ArrayBase{} { ref_ = std::move(r); }
  Array(std::initializer_list<T> items) { append(items.begin(), items.end()); }
  Array(const std::vector<T>& items) { append(items.begin(), items.end()); }
  template <class It>
  requires requires(It i) {
    *i;
    ++i;
  }
  Array(It first, It last) { append(first, last); }
  // An array of a type converts to an array of its base.
  template <class U>
  requires(!std::is_same_v<U, T> && (std::is_convertible_v<const U&, T> && std::is_class_v<U>))
      Array(const Array<U>& o) {
    if constexpr (std::is_same_v<T, Any> || sizeof(U) == sizeof(void*)) {
      ref_ = o.ref();
    } else {
      append(o.begin(), o.end());
    }
  }

  // Borrowed from the array: valid until it changes or is destroyed.
  const T& operator[](size_t i) const { return payload_as<T>(get()->begin()[i]); }
  const T& at(size_t i) const {  // out of range is an Internal error
    check_index(i);
    return (*this)[i];
  }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[size() - 1]; }
  iterator begin() const { return iterator(any_begin()); }
  iterator end() const { return iterator(any_end()); }

  void reserve(size_t n) {
    if (n > size()) own(static_cast<int64_t>(n - size()));
  }
  void push_back(T value) { push_any(Any(std::move(value))); }
  void set(size_t i, T value) { set_any(i, Any(std::move(value))); }
  void insert(size_t i, T value) { insert_any(i, Any(std::move(value))); }
  void erase(size_t i) { erase_at(i); }
  void pop_back() { resize_down(size() - 1); }
  void clear() { ref_ = {}; }
  template <class It>
  void append(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  template <class F>
  auto map(F&& f) const {
    using U = std::remove_cvref_t<decltype(f((*this)[0]))>;
    Array<U> out;
    out.reserve(size());
    for (const T& t : *this) out.push_back(f(t));
    return out;
  }
  std::vector<T> to_vector() const { return std::vector<T>(begin(), end()); }

  static Object* empty_value() { return empty_object(); }
  static bool accepts(const AnyView& a) {
    const auto* o = a.as_object<const ArrayObj>();
    if (!o) return false;
    if constexpr (!std::is_same_v<T, Any>) {
      for (const Any& e : *o) {
        if (std::is_floating_point_v<T> ? e.type_index != TypeIndex::Float : !AnyTraits<T>::is(e)) {
          return false;
        }
      }
    }
    return true;
  }
  static std::string type_text() { return cat("array of ", AnyTraits<T>::name()); }
};

}  // namespace tenon
