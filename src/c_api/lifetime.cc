// Ends and shares references for the C interface. Compiled for speed: each call from a host does
// this several times.
#include "c_api/entry.h"

using namespace tenon;

void c_api::give(tenon_any* out, Any value) {
  give_owned(out, value.leak());
}

void c_api::give_owned(tenon_any* out, AnyView owned) {
  auto* const place = reinterpret_cast<AnyView*>(out);
  const AnyView before = *place;
  *place = owned;
  if (Object* const object = before.object()) release(object);
}

extern "C" {

void tenon_object_retain(tenon_object* object) {
  if (object) retain(reinterpret_cast<Object*>(object));
}
void tenon_object_release(tenon_object* object) {
  if (object) release(reinterpret_cast<Object*>(object));
}
void tenon_any_release(tenon_any* value) {
  if (value) c_api::give_owned(value, AnyView());
}

}  // extern "C"
