// Object, the reference-counted header of every heap value, and Ref, an owning pointer to one.
//
//   byte 0   uint64  counts: strong in the low half; weak in the high half, plus 1 for all strong
//        8   int32   type_index
//       12   uint32  number of the budget that counts the object's memory; zero for none
//       16   deleter(self, flags): flags 1 destroy the value, 2 free the memory, 3 both
//       24   the type's own fields
//
// The layout and the protocol are tvm-ffi's, so that each side can release the other's objects.
// Types derive from Object (or from one another), have no virtual functions, and are made by
// `make`. Destroying a value never recurses over what it owns: objects that die meanwhile are
// queued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "object/object_budget.h"
#include "object/object_cache.h"
#include "object/type_index.h"

namespace tenon {

struct TypeInfo;

struct Object {
  static constexpr int32_t kTypeIndex = TypeIndex::ObjectBegin;
  static constexpr int32_t kTypeLast = TypeIndex::ObjectEnd;
  static constexpr uint64_t kOneStrong = 1;
  static constexpr uint64_t kOneWeak = uint64_t{1} << 32;
  static constexpr uint64_t kCountsOfNew = kOneStrong | kOneWeak;
  // A strong count that reaches kSaturated stays saturated and the object is never freed, so that
  // the count can't wrap and free an object in use.
  static constexpr uint32_t kSaturated = uint32_t{1} << 31;
  static constexpr uint64_t kCountsOfImmortal = kOneWeak | kSaturated | kSaturated >> 2;
  enum DeleterFlags : int { kDestroy = 1, kFree = 2, kBoth = 3 };

  uint64_t counts = 0;
  int32_t type_index = 0;
  uint32_t budget = 0;
  union {
    void (*deleter)(void* self, int flags) = nullptr;
    uint64_t deleter_room;  // with 32-bit pointers, keeps fields of derived types out
  };

  Object() = default;
  // Copies a derived type's fields but never the header: a copy is a new object.
  Object(const Object&) noexcept {}
  Object& operator=(const Object&) noexcept { return *this; }

  static const TypeInfo& type_info();

  uint32_t strong_count() const {
    return static_cast<uint32_t>(__atomic_load_n(&counts, __ATOMIC_RELAXED));
  }
  bool unique() const {
    return static_cast<uint32_t>(__atomic_load_n(&counts, __ATOMIC_ACQUIRE)) == 1;
  }
};
static_assert(sizeof(Object) == 24 && offsetof(Object, type_index) == 8 &&
              offsetof(Object, deleter) == 16);

// Whether a value of that type index is a T. Derived types are numbered within their base's range.
template <class T>
constexpr bool type_is(int32_t index) {
  if constexpr (T::kTypeIndex == T::kTypeLast) {
    return index == T::kTypeIndex;
  } else {
    return index >= T::kTypeIndex && index <= T::kTypeLast;
  }
}

namespace detail {
// Moves a saturated count back to the middle of the saturated range.
void stay_saturated(Object* o);
// Handles the release of the last reference, whose count need not have been taken down, or of a
// saturated count.
void release_rare(Object* o, uint64_t counts_before);
// Runs `o`'s deleter body now, or later if this thread is destroying another value.
void destroy_in_turn(Object* o, int flags, void (*body)(Object*, int));
constexpr int kInTurn = 1 << 16;  // flag: the deleter was called for a queued object
}  // namespace detail

inline void retain(const Object* o) {
  auto* m = const_cast<Object*>(o);
  if (m->strong_count() >= Object::kSaturated) [[unlikely]]
    return detail::stay_saturated(m);
  __atomic_fetch_add(&m->counts, Object::kOneStrong, __ATOMIC_RELAXED);
}

inline void release(const Object* o) {
  auto* m = const_cast<Object*>(o);
  // The only reference there is needs no atomic subtraction: nobody else can change the count.
  uint64_t before = __atomic_load_n(&m->counts, __ATOMIC_ACQUIRE);
  if (before != Object::kCountsOfNew) {
    before = __atomic_fetch_sub(&m->counts, Object::kOneStrong, __ATOMIC_RELEASE);
    // One comparison covers a count of 1 and the saturated ones: 1 - 2 wraps to above them.
    if (static_cast<uint32_t>(before) - 2 < Object::kSaturated - 2) return;
  }
  detail::release_rare(m, before);
}

namespace detail {
// The bytes of an object. `tail_bytes` of a type with memory behind its fields gives that memory's
// size.
template <class T>
size_t bytes_of(const T& t) {
  if constexpr (requires { t.tail_bytes(); }) {
    return sizeof(T) + t.tail_bytes();
  } else {
    return sizeof(T);
  }
}
// Memory for an object, and the number of the budget that counts it.
struct ObjectMemory {
  void* at;
  uint32_t budget;
};
inline ObjectMemory object_memory(size_t bytes) {
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();
  if (ObjectBudget* budget = object_budget) [[unlikely]]
    return {counted_memory(bytes), budget->number()};
  return {new_memory(bytes), 0};
}
// Frees the memory of an object whose construction failed.
inline void drop_object_memory(ObjectMemory memory, size_t bytes) {
  if (memory.budget) ObjectBudget::give_back(memory.budget, bytes);
  delete_memory(memory.at, bytes);
}
}  // namespace detail

// A type's deleter. A type whose fields own no other objects, or only leaves, declares `static
// constexpr bool kLeaf = true` and is destroyed without queueing.
template <class T>
void delete_object(void* self, int flags) {
  auto body = [](Object* o, int f) {
    T* t = static_cast<T*>(o);
    if (!(f & Object::kDestroy)) return ::operator delete(static_cast<void*>(t));
    const size_t bytes = detail::bytes_of(*t);
    if (t->budget) [[unlikely]]
      ObjectBudget::give_back(t->budget, bytes);
    t->~T();
    if (f & Object::kFree) delete_memory(t, bytes);
  };
  if constexpr (requires { requires T::kLeaf; }) {
    body(static_cast<Object*>(self), flags);
  } else {
    detail::destroy_in_turn(static_cast<Object*>(self), flags, body);
  }
}

template <class T>
class Ref;

// Initialises the header of an object in memory from `object_memory`; the count starts at one.
template <class T>
void init_header(T* t, uint32_t budget) {
  static_assert(!std::is_polymorphic_v<T>, "a virtual table would take the header's place");
  t->counts = Object::kCountsOfNew;
  t->type_index = T::kTypeIndex;
  t->budget = budget;
  t->deleter = &delete_object<T>;
}

template <class T, class... Args>
Ref<T> make(Args&&... args);
// Like `make`, with `extra_bytes` of memory behind the object, which its `tail_bytes` must report.
template <class T, class... Args>
Ref<T> make_with_tail(size_t extra_bytes, Args&&... args);

// An owning pointer to an object, or null.
template <class T>
class Ref {
 public:
  using Type = T;

  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : ptr_(object) {  // adds a reference
    if (ptr_) retain(ptr_);
  }
  Ref(const Ref& o) : Ref(o.ptr_) {}
  Ref(Ref&& o) noexcept : ptr_(std::exchange(o.ptr_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& o) : Ref(static_cast<T*>(o.get())) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(Ref<U>&& o)
  noexcept : ptr_(o.leak()) {}
  ~Ref() {
    if (ptr_) release(ptr_);
  }
  Ref& operator=(const Ref& o) {
    Ref copy(o);
    std::swap(ptr_, copy.ptr_);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    Ref moved(std::move(o));
    std::swap(ptr_, moved.ptr_);
    return *this;
  }

  // Takes over a reference that the caller holds.
  static Ref adopt(T* object) {
    Ref r;
    r.ptr_ = object;
    return r;
  }
  // Hands the reference to the caller.
  T* leak() { return std::exchange(ptr_, nullptr); }

  T* get() const { return ptr_; }
  T* operator->() const { return ptr_; }
  T& operator*() const { return *ptr_; }
  explicit operator bool() const { return ptr_ != nullptr; }
  bool operator==(const Ref& o) const { return ptr_ == o.ptr_; }
  template <class U>
  bool operator==(const Ref<U>& o) const {
    return static_cast<const Object*>(ptr_) == static_cast<const Object*>(o.get());
  }
  bool operator==(std::nullptr_t) const { return ptr_ == nullptr; }

  // The object as a U, or null if it isn't one; borrowed.
  template <class U>
  auto as() const {
    using R = std::conditional_t<std::is_const_v<T>, const U, U>;
    return ptr_ && type_is<U>(ptr_->type_index) ? static_cast<R*>(ptr_) : static_cast<R*>(nullptr);
  }
  template <class U>
  bool is() const {
    return ptr_ && type_is<U>(ptr_->type_index);
  }
  // The same as an owning Ref.
  template <class U>
  auto cast() const {
    using R = std::conditional_t<std::is_const_v<T>, const U, U>;
    return Ref<R>(as<U>());
  }

 private:
  T* ptr_ = nullptr;
};

// Fields without an argument keep their default initialisers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
template <class T, class... Args>
Ref<T> make_with_tail(size_t extra_bytes, Args&&... args) {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  static_assert(requires(const T& t) { t.tail_bytes(); });
  if (extra_bytes > PTRDIFF_MAX) throw std::bad_alloc();  // adding the fields' size could wrap
  detail::ObjectMemory memory = detail::object_memory(sizeof(T) + extra_bytes);
  T* t;
  try {
    t = new (memory.at) T{{}, std::forward<Args>(args)...};
  } catch (...) {
    detail::drop_object_memory(memory, sizeof(T) + extra_bytes);
    throw;
  }
  init_header(t, memory.budget);
  return Ref<T>::adopt(t);
}

template <class T, class... Args>
Ref<T> make(Args&&... args) {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  detail::ObjectMemory memory = detail::object_memory(sizeof(T));
  T* t;
  try {
    if constexpr (std::is_constructible_v<T, Args...>) {
      t = new (memory.at) T(std::forward<Args>(args)...);
    } else {
      // An aggregate: the arguments fill the fields after the header (or after the base).
      t = new (memory.at) T{{}, std::forward<Args>(args)...};
    }
  } catch (...) {
    detail::drop_object_memory(memory, sizeof(T));
    throw;
  }
  init_header(t, memory.budget);
  return Ref<T>::adopt(t);
}

#pragma GCC diagnostic pop

template <class T>
Ref<T> share(T* object) {
  return Ref<T>(object);
}

}  // namespace tenon

// Declares a type's number and its table of fields (defined with reflect.h).
#define TENON_TYPE(index)                          \
  static constexpr int32_t kTypeIndex = (index);   \
  static constexpr int32_t kTypeLast = kTypeIndex; \
  static const ::tenon::TypeInfo& type_info()
// The same for a base; types derived from it are numbered up to `last`.
#define TENON_BASE_TYPE(index, last)             \
  static constexpr int32_t kTypeIndex = (index); \
  static constexpr int32_t kTypeLast = (last);   \
  static const ::tenon::TypeInfo& type_info()
