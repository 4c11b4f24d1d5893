// The library "ml": functions of models that were trained on tables and that aren't loop nests.
#pragma once

namespace tenon {

// Registers its functions.
void register_ml_functions();
// Defines the library "tenon_ml" in a process that links it. May be called repeatedly.
void register_ml();

}  // namespace tenon
