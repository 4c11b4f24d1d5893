// compiler_calls COUNT FIRST: sequences FIRST to FIRST + COUNT - 1 of calls of the compiler's
// functions. Exits with 0 if there is no finding. Build it with a sanitizer preset.
#include "sequence.h"

int main(int argc, char** argv) {
  return tenon::fuzz::run_sequences(argc, argv, tenon::fuzz::call_compiler);
}
