#include "object/object.h"

namespace tenon {
namespace detail {

namespace {
// Values that died while another was being destroyed. An object that nobody else can reach (its
// only weak count is the shared one) is linked through its counts, so that queueing can't fail.
struct Node {
  Object* object;
  Node* next;
};
struct Turn {
  bool active = false;
  Object* whole = nullptr;  // to destroy and free; linked through `counts`
  Node* values = nullptr;   // to destroy only: there are other weak references
};
constinit thread_local Turn turn __attribute__((tls_model("initial-exec")));

void drop_weak(Object* o) {
  uint64_t before = __atomic_fetch_sub(&o->counts, Object::kOneWeak, __ATOMIC_ACQ_REL);
  if (before == Object::kOneWeak) o->deleter(o, Object::kFree);
}
}  // namespace

void stay_saturated(Object* o) {
  constexpr uint64_t kStrong = 0xffffffff;
  uint64_t now = __atomic_load_n(&o->counts, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&o->counts, &now,
                                      (now & ~kStrong) | (Object::kCountsOfImmortal & kStrong),
                                      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void release_rare(Object* o, uint64_t counts_before) {
  if (static_cast<uint32_t>(counts_before) >= Object::kSaturated) return stay_saturated(o);
  // Makes the writes of other owners before their release visible. (A fence would do too, but the
  // thread sanitizer doesn't support fences.)
  (void)__atomic_load_n(&o->counts, __ATOMIC_ACQUIRE);
  if (counts_before == Object::kCountsOfNew) {
    o->deleter(o, Object::kBoth);
    return;
  }
  o->deleter(o, Object::kDestroy);
  drop_weak(o);
}

void destroy_in_turn(Object* o, int flags, void (*body)(Object*, int)) {
  if ((flags & kInTurn) || !(flags & Object::kDestroy)) {
    body(o, flags & Object::kBoth);
    return;
  }
  if (turn.active) {
    if (flags & Object::kFree) {
      o->counts = reinterpret_cast<uintptr_t>(turn.whole);
      turn.whole = o;
    } else if (auto* node = new (std::nothrow) Node{o, turn.values}) {
      __atomic_fetch_add(&o->counts, Object::kOneWeak, __ATOMIC_RELAXED);
      turn.values = node;
    } else {
      body(o, Object::kDestroy);
    }
    return;
  }
  turn.active = true;
  body(o, flags);
  while (turn.whole || turn.values) {
    if (Object* next = turn.whole) {
      turn.whole = reinterpret_cast<Object*>(static_cast<uintptr_t>(next->counts));
      next->deleter(next, Object::kBoth | kInTurn);
    } else {
      Node* node = turn.values;
      turn.values = node->next;
      Object* value = node->object;
      delete node;
      value->deleter(value, Object::kDestroy | kInTurn);
      drop_weak(value);
    }
  }
  turn.active = false;
}

}  // namespace detail
}  // namespace tenon
