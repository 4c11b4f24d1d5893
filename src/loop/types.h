// Makes this room's types known to printing and JSON.
#pragma once

namespace tenon::loop {

void register_loop_types();

}  // namespace tenon::loop
