// What the programs that check random programs have in common: their command lines, and findings.
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
using CheckSeed = std::function<void(uint64_t seed, const Report& report)>;
// The difference that a program of this text shows, or "".
using CheckText = std::function<std::string(const std::string& text, uint64_t seed)>;

// The main function of
//
//   NAME COUNT FIRST [FOLDER]   checks the programs FIRST to FIRST + COUNT - 1, forever if COUNT is
//                               0. Writes findings to FOLDER, by default here.
//   NAME FILE.tn SEED           checks a finding, or a smaller one, again; unless `again` is null
//
// Returns the process's exit status: 1 after a finding, 2 if it was called in another way.
int check_seeds(int argc, char** argv, const CheckSeed& check, const CheckText& again = nullptr);

}  // namespace tenon::random_programs
