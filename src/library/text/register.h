// The library "text": functions on tensors of strings.
#pragma once

namespace tenon {

// Registers its functions.
void register_text_functions();
// Defines the library "tenon_text" in a process that links it. May be called repeatedly.
void register_text();

}  // namespace tenon
