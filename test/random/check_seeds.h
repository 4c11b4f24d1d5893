// What the programs that check random programs have in common: a range of numbers, and findings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::random_programs {

struct Finding {
  std::string name;        // of its file, without extension
  std::string text;        // the program
  std::string difference;  // or what failed
};
using Report = std::function<void(const Finding&)>;

// The main function of `NAME COUNT FIRST [FOLDER]`: checks the programs FIRST to FIRST + COUNT - 1,
// forever if COUNT is 0. Writes findings to FOLDER, by default here. Returns the process's exit
// status: 1 after a finding, 2 if it was called in another way.
int check_seeds(int argc, char** argv,
                const std::function<void(uint64_t seed, const Report& report)>& check);

}  // namespace tenon::random_programs
