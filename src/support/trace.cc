#include "support/trace.h"

namespace tenon::trace {

constinit std::atomic<Sink*> sink{nullptr};

}  // namespace tenon::trace
