// tenon completion: a shell script, generated from the commands' options.
#include <algorithm>
#include <cstdio>

#include "driver/options.h"
#include "tools/tenon/command.h"

namespace tenon::tool {
namespace {

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back(cat("--", name));
  for (const std::string& name : option.get_snames()) names.push_back(cat("-", name));
  return names;
}

std::string names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : names_of(*option)) names.push_back(name);
  }
  return join(names, " ");
}

// The possible or typical values of an option of the compiler.
std::string values_of(const driver::Allowed& allowed) {
  std::vector<std::string> values = allowed.words;
  constexpr int64_t kMost = 16;
  if (allowed.least >= 0 && allowed.most < kMost) {
    for (int64_t i = allowed.least; i <= allowed.most; ++i) values.push_back(cat(i));
  }
  return join(values, " ");
}

// The same for any option; empty if it may be anything.
std::string values_of(const CLI::Option& option) {
#define TENON_COMPILE_OPTION(type, field, initial, text, allowed, flag, meaning) \
  if (option.check_name(driver::flag.name)) return values_of(driver::allowed);
#define TENON_HOST_OPTION(...)
#include "driver/options.def"
  if (option.check_lname("stop-after") || option.check_lname("dump-after") ||
      option.check_lname("passes")) {
    std::vector<std::string> passes;
    if (option.check_lname("dump-after")) passes.emplace_back("all");
    for (const driver::Step& step : driver::all_steps()) passes.push_back(step.name);
    return join(passes, " ");
  }
  // The type name of an option with fixed values lists them: "TEXT:{onednn,none}".
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return "";
  std::string words = type.substr(open + 1, close - open - 1);
  std::replace(words.begin(), words.end(), ',', ' ');
  return words;
}

// The branch of `case "$command"` for one command.
std::string branch_of(const CLI::App& command, const std::string& global) {
  std::string words = names_of(command), values, any;
  const char* files = "";
  for (const CLI::Option* option : command.get_options()) {
    const std::string known = values_of(*option);
    if (option->get_positional()) {
      if (!known.empty()) files = " files=";
      words += known.empty() ? "" : cat(" ", known);
    }
    if (!option->nonpositional() || option->get_items_expected_max() == 0) continue;
    const std::string names = join(names_of(*option), "|");
    if (known.empty()) {
      any += cat(any.empty() ? "" : "|", names);
    } else {
      values += cat("        ", names, ") offered=\"", known, "\" files= ;;\n");
    }
  }
  if (!any.empty()) values += cat("        ", any, ") offered= ;;\n");
  std::string out =
      cat("    ", command.get_name(), ") offered=\"", words, " ", global, "\"", files);
  if (!values.empty()) out += cat("\n      case \"$previous\" in\n", values, "      esac");
  return out + " ;;\n";
}

// bash splits words at "=". The options before the command take no values.
constexpr char kScript[] = R"(_tenon() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local command= offered= files=1 i
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ] && [ "$COMP_CWORD" -gt 2 ]; then
    previous="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in -*) ;; *) command="${COMP_WORDS[i]}"; break ;; esac
  done
  case "$command" in
    "") offered="%s" files= ;;
%s  esac
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  local IFS=$'\n'
  case "$current" in -*) ;; *) [ -n "$files" ] && COMPREPLY+=($(compgen -f -- "$current")) ;; esac
}
complete -o filenames -F _tenon tenon
)";

}  // namespace

void add_completion_command(CLI::App* app) {
  auto* command = app->add_subcommand(
      "completion", "print a completion script: eval \"$(tenon completion bash)\"");
  command->footer(
      "Put this line into ~/.bashrc, or with zsh instead of bash into ~/.zshrc:\n\n"
      "  eval \"$(tenon completion bash)\"");
  auto shell = std::make_shared<std::string>("bash");
  command->add_option("SHELL", *shell, "bash or zsh")->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([app, shell] {
    const std::string global = names_of(*app);
    // Options of the command line that also apply after a command.
    std::vector<std::string> kept;
    for (const CLI::Option* option : app->get_options()) {
      if (option == app->get_help_ptr() || option == app->get_help_all_ptr() ||
          option == app->get_version_ptr()) {
        continue;
      }
      for (const std::string& name : names_of(*option)) kept.push_back(name);
    }
    const std::string everywhere = join(kept, " ");
    std::string commands, branches;
    for (const CLI::App* sub : app->get_subcommands([](CLI::App*) { return true; })) {
      commands += cat(sub->get_name(), " ");
      branches += branch_of(*sub, everywhere);
    }
    if (*shell == "zsh") std::printf("autoload -U +X bashcompinit && bashcompinit\n");
    std::printf(kScript, cat(commands, global).c_str(), branches.c_str());
  });
}

}  // namespace tenon::tool
