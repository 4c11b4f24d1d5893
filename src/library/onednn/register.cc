#include "library/onednn/register.h"

#include <mutex>

#include <oneapi/dnnl/dnnl.hpp>

#include "device/thread_pool.h"
#include "library/onednn/functions.h"
#include "library/onednn/packed_weights.h"
#include "library/onednn/team.h"
#include "library/signatures/registration.h"
#include "object/library.h"
#include "object/registry.h"

namespace tenon {

namespace {
// Lends the threads only once, so that a host can withdraw them.
void lend_threads() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (thread_team().run == run_on_pool) set_thread_team(onednn::lent_team());
  });
}
}  // namespace

void register_onednn_functions() {
  // oneDNN's own cache would keep primitives that ours has evicted.
  dnnl::set_primitive_cache_capacity(0);
  Registration functions;
  library::add(functions, library::signature("onednn.convolution"),
               Function::from_packed(onednn::convolution));
  library::add(functions, library::signature("onednn.matmul"),
               Function::from_packed(onednn::matmul));
  library::add(functions, library::signature("onednn.attention"),
               Function::from_packed(onednn::attention));
  functions.add_typed("onednn.packing_count", [] { return onednn::packing_count(); });
  functions.add_typed("onednn.packed_count", [] { return onednn::packed_count(); });
  functions.add_typed("onednn.lend_threads", lend_threads, {.at_program_start = true});
  functions.add_typed("onednn.forget_unused", [] { onednn::forget_unused(); },
                      {.at_program_end = true});
  functions.commit();
}

void register_onednn() {
  define_library("tenon_onednn", register_onednn_functions);
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return cat(version->major, ".", version->minor, ".", version->patch);
}

}  // namespace tenon
