// tenon completion: scripts for shells, generated from the commands' options.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "driver/options.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/program_file.h"

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
  // The type name of an option with fixed values lists them: "TEXT:{onednn,none}".
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos) {
    std::string words = type.substr(open + 1, close - open - 1);
    std::replace(words.begin(), words.end(), ',', ' ');
    return words;
  }
#define TENON_COMPILE_OPTION(type, field, initial, text, allowed, flag, record, meaning) \
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
  return "";
}

// The branch of `case "$command"` for one command.
std::string branch_of(const CLI::App& command) {
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
    if (option->check_lname("input")) {
      values += cat("        ", names, ") offered= files= inputs=1 ;;\n");
    } else if (known.empty()) {
      any += cat(any.empty() ? "" : "|", names);
    } else {
      values += cat("        ", names, ") offered=\"", known, "\" files= ;;\n");
    }
  }
  if (!any.empty()) values += cat("        ", any, ") offered= ;;\n");
  std::string out = cat("    ", command.get_name(), ") offered=\"", words, "\"", files);
  if (!values.empty()) out += cat("\n      case \"$previous\" in\n", values, "      esac");
  return out + " ;;\n";
}

// Bash splits words at "=". The options before the command take no values. Names of inputs come
// from a file, so that they must not reach `compgen -W`, which expands its words.
constexpr char kBash[] = R"(_tenon_inputs() {
  local word
  for word in "${COMP_WORDS[@]:2}"; do
    if [ -f "$word" ]; then tenon completion --inputs "$word" 2>/dev/null; return; fi
  done
}
_tenon() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local command= offered= files=1 inputs= i
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
  if [ -n "$inputs" ]; then
    compopt -o nospace 2>/dev/null
    while IFS= read -r i; do
      case "$i" in "$current"*) COMPREPLY+=("$i") ;; esac
    done < <(_tenon_inputs)
  fi
  local IFS=$'\n'
  case "$current" in -*) ;; *) [ -n "$files" ] && COMPREPLY+=($(compgen -f -- "$current")) ;; esac
}
complete -o filenames -F _tenon tenon
)";

std::string bash_script(const CLI::App& app) {
  std::string commands, branches;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands += cat(sub->get_name(), " ");
    branches += branch_of(*sub);
  }
  std::string script = kBash;
  const auto replace = [&](const std::string& with) { script.replace(script.find("%s"), 2, with); };
  replace(cat(commands, names_of(app)));
  replace(branches);
  return script;
}

// A word of fish in single quotes.
std::string fish_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\n') {
      out += ' ';
      continue;
    }
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_option(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_snames()) out += cat(" -s ", name);
  for (const std::string& name : option.get_lnames()) out += cat(" -l ", name);
  if (option.get_items_expected_max() > 0) {
    const std::string known = option.check_lname("input") ? "(__tenon_inputs)" : values_of(option);
    out += known.empty() ? " -r" : cat(" -x -a ", fish_word(known));
  }
  return cat(out, " -d ", fish_word(option.get_description()), "\n");
}

constexpr char kFish[] = R"(function __tenon_inputs
  for word in (commandline -opc)[3..-1]
    if test -f $word
      tenon completion --inputs $word 2>/dev/null
      return
    end
  end
end
)";

std::string fish_script(const CLI::App& app) {
  std::string out = kFish;
  for (const CLI::Option* option : app.get_options()) {
    out += cat("complete -c tenon -n __fish_use_subcommand", fish_option(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    out += cat("complete -c tenon -n __fish_use_subcommand -f -a ", sub->get_name(), " -d ",
               fish_word(sub->get_description()), "\n");
    const std::string within =
        cat("complete -c tenon -n '__fish_seen_subcommand_from ", sub->get_name(), "'");
    for (const CLI::Option* option : sub->get_options()) {
      if (option->nonpositional()) {
        out += cat(within, fish_option(*option));
      } else if (const std::string known = values_of(*option); !known.empty()) {
        out += cat(within, " -f -a ", fish_word(known), "\n");
      }
    }
  }
  return out;
}

// The inputs of @main as NAME=, a line each. Names come from a file that nobody may have looked at,
// and end on a command line, so those with characters that a shell interprets are left out.
void print_inputs(const std::string& path) {
  const driver::Source source = open_input(path);
  driver::initialise();
  std::vector<std::string> names;
  if (source.kind == driver::SourceKind::Model) {
    for (const onnx::Value& input : driver::read_model(source).graph.inputs) {
      names.push_back(input.name);
    }
  } else if (source.is_graph()) {
    const graph::Module module = driver::read_module(source);
    for (const vm::Param& param : signature_of(module, "main", path).params) {
      names.push_back(param.name);
    }
  } else {
    const vm::Unit unit = driver::read_code(source);
    const int64_t main = unit.find_exported("main");
    if (main < 0) return;
    for (const vm::Param& param : unit.functions[static_cast<size_t>(main)].params) {
      names.push_back(param.name);
    }
  }
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_./:+-", c);
  };
  for (const std::string& name : names) {
    if (std::ranges::all_of(name, is_plain)) std::printf("%s=\n", name.c_str());
  }
}

}  // namespace

void add_completion_command(CLI::App* app) {
  auto* command = app->add_subcommand(
      "completion", "print a completion script: eval \"$(tenon completion bash)\"");
  command->footer(
      "Put this line into ~/.bashrc, or with zsh instead of bash into ~/.zshrc; for fish, store\n"
      "the script as a file.\n\n"
      "  eval \"$(tenon completion bash)\"\n"
      "  tenon completion fish > ~/.config/fish/completions/tenon.fish");
  auto shell = std::make_shared<std::string>("bash"), inputs = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->add_option("--inputs", *inputs,
                      "print the names of a file's inputs instead, as the scripts complete them");
  command->callback([app, shell, inputs] {
    if (!inputs->empty()) return print_inputs(*inputs);
    if (*shell == "zsh") std::printf("autoload -U +X bashcompinit && bashcompinit\n");
    std::printf("%s", (*shell == "fish" ? fish_script(*app) : bash_script(*app)).c_str());
  });
}

}  // namespace tenon::tool
