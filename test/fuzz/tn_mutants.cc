// tn_mutants COUNT FIRST FILE.tn...: makes mutants FIRST to FIRST + COUNT - 1 of textual programs:
// changes numbers, names and operators, sometimes repeats or drops a part. A mutant that is still a
// program is compiled and its functions are called, including its own kernels, in a separate
// process, because a mutant's kernel may run forever, which is not a finding. Exits with 0 if each
// gave values or errors. Build it with a sanitizer preset; kernels have no sanitizer checks, so
// their tensors lie between guard pages (guarded_memory.cc).
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "arguments.h"
#include "bounds.h"
#include "graph_target.h"
#include "library/onednn/register.h"
#include "mutate.h"
#include "tnx_target.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

constexpr unsigned kSeconds = 5;  // per process

// Splits into words, numbers with their sign, strings and punctuation; blanks belong to the token
// before them.
std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> out;
  auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (is_word(text[at]) || text[at] == '%' || text[at] == '@') {
      while (end < text.size() && is_word(text[end])) ++end;
    }
    while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

class TextMutator {
 public:
  explicit TextMutator(uint64_t seed) : m_(seed) {}

  std::string mutant(const std::string& text) {
    std::vector<std::string> tokens = tokens_of(text);
    for (uint64_t changes = 1 + m_.below(2); changes-- > 0 && !tokens.empty();) change(tokens);
    std::string out;
    for (const std::string& t : tokens) out += t;
    return out;
  }

 private:
  enum Class : uint8_t { kNumber, kVariable, kSign, kSymbol, kElementType, kOther };
  static constexpr const char* kElementTypes[] = {"bool", "i8",  "i32",  "i64", "u8",   "u64",
                                                  "f16",  "f32", "bf16", "f64", "void", "i4"};
  static Class class_of(const std::string& token) {
    const auto first = static_cast<unsigned char>(token[0]);
    if (std::isdigit(first)) return kNumber;
    if (token[0] == '%' && token.size() > 1) return kVariable;
    const std::string word = token.substr(0, token.find_last_not_of(" \n\t") + 1);
    if (word == "+" || word == "-" || word == "*" || word == "<") return kSign;
    if (std::ranges::find(kElementTypes, word) != std::end(kElementTypes)) return kElementType;
    return std::isalpha(first) && word.size() == 1 ? kSymbol : kOther;
  }
  static std::string with_blanks_of(const std::string& word, const std::string& token) {
    return word + token.substr(token.find_last_not_of(" \n\t") + 1);
  }

  // The next token of that class, from `at` on.
  static size_t place(const std::vector<std::string>& tokens, size_t at, Class c) {
    for (size_t tries = 0; tries < tokens.size() && class_of(tokens[at]) != c; ++tries) {
      at = (at + 1) % tokens.size();
    }
    return at;
  }

  // Most changes keep the program parsable: they replace a token by another of its class, and a
  // variable by a nearby one.
  void change(std::vector<std::string>& tokens) {
    const size_t any = m_.below(tokens.size());
    static constexpr Class kClasses[] = {kNumber,   kNumber, kNumber, kVariable,
                                         kVariable, kSign,   kSymbol, kElementType};
    if (m_.below(12) == 0) return break_up(tokens, any);
    const Class c = kClasses[m_.below(std::size(kClasses))];
    std::string& token = tokens[place(tokens, any, c)];
    if (c == kNumber) {
      static const char* const kNumbers[] = {"0",
                                             "1",
                                             "2",
                                             "3",
                                             "5",
                                             "7",
                                             "8",
                                             "9",
                                             "15",
                                             "16",
                                             "17",
                                             "100",
                                             "4095",
                                             "1000000007",
                                             "4294967296",
                                             "4611686018427387904",
                                             "9223372036854775807",
                                             "-1",
                                             "-2",
                                             "-8",
                                             "-4294967296",
                                             "-9223372036854775808"};
      token = with_blanks_of(kNumbers[m_.below(std::size(kNumbers))], token);
    } else if (c == kSign) {
      static const char* const kSigns[] = {"+", "-", "*", "<<", ">>", "&", "^"};
      token = with_blanks_of(kSigns[m_.below(std::size(kSigns))], token);
    } else if (c == kElementType) {
      token = with_blanks_of(kElementTypes[m_.below(std::size(kElementTypes))], token);
    } else if (c == kVariable && m_.below(6) == 0) {  // an operand of another kind
      static const char* const kOperands[] = {
          "()",       "3",           "true",           "0.5",
          "\"text\"", "shape[2, 3]", "tensor[f32]{1}", "tensor[1; bool]{7}"};
      token = with_blanks_of(kOperands[m_.below(std::size(kOperands))], token);
    } else {
      const std::string& other = tokens[place(tokens, (any + 1 + m_.below(60)) % tokens.size(), c)];
      token = with_blanks_of(other.substr(0, other.find_last_not_of(" \n\t") + 1), token);
    }
  }

  void break_up(std::vector<std::string>& tokens, size_t at) {
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    if (m_.below(2)) {
      tokens.erase(from);
      return;
    }
    const size_t n = std::min<size_t>(1 + m_.below(12), tokens.size() - at);
    const std::vector<std::string> part(from, from + static_cast<std::ptrdiff_t>(n));
    tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(m_.below(tokens.size())),
                  part.begin(), part.end());
  }

  Mutator m_;
};

// Exit codes of processes; any other code, such as a sanitizer's, is a finding.
enum Outcome : int { kRefused = 40, kLowered, kRan, kFinding };

// Processes a mutant in its own process.
Outcome run_mutant(const std::string& text, uint64_t number) {
  GraphTarget target;
  target.level = number % 4 ? 2 : 0;
  target.fold = true;
  std::string problem = run_graph_text(text, target);
  TnxOutcome run;
  try {
    const graph::Module module = graph::parse_module(text, "mutant.tn");
    graph::check_module(module);
    run = run_unit(driver::compile(module, compile_options(target)), {});
    if (problem.empty()) problem = run.problem;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal && problem.empty()) problem = e.render();
  }
  if (!problem.empty()) {
    finding(cat("mutant ", number, ": ", problem));
    return kFinding;
  }
  return run.values > 0 ? kRan : run.loaded ? kLowered : kRefused;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read_arguments(argc, argv);
  driver::initialise();
  register_onednn();
  vm::register_builtins();
  std::vector<std::string> seeds;
  for (const std::string& file : arguments.files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    // Lets LLVM and others initialise before the process forks.
    if (run_mutant(seeds.back(), 0) == kRefused) {
      std::fprintf(stderr, "left out %s: it does not run\n", file.c_str());
      seeds.pop_back();
    }
  }
  if (seeds.empty()) return 2;
  set_bounds(2 * kSeconds);

  long refused = 0, compiled = 0, ran = 0, late = 0, findings = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    TextMutator mutator(number);
    const std::string text = mutator.mutant(seeds[number % seeds.size()]);
    begin_mutant(number, text);
    const pid_t child = fork();
    if (child < 0) {
      std::perror("fork");
      return 2;
    }
    if (child == 0) {
      std::signal(SIGALRM, SIG_DFL);
      alarm(kSeconds);
      Bounds::findings = static_cast<long>(number);  // names the file of one
      _exit(run_mutant(text, number));
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    refused += code == kRefused;
    compiled += code == kLowered;
    ran += code == kRan;
    const bool is_late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    late += is_late;
    if (is_late || (code >= kRefused && code <= kRan)) continue;
    ++findings;
    if (code == kFinding) continue;  // and has said so
    Bounds::findings = static_cast<long>(number);
    finding(cat("mutant ", number, " ends its process"));
  }
  end_mutants();
  std::printf(
      "%llu mutants: %ld refused, %ld compiled, %ld ran, %ld took longer than %u s; %ld findings\n",
      static_cast<unsigned long long>(arguments.count()), refused, compiled, ran, late, kSeconds,
      findings);
  return findings ? 1 : 0;
}
