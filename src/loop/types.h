// Registers this folder's types for printing and JSON.
#pragma once

namespace tenon::loop {

void register_loop_types();

}  // namespace tenon::loop
