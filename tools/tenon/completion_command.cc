// tenon completion: a script for the shell, made from the commands' own options.
#include <cstdio>

#include "tools/tenon/command.h"

namespace tenon::tool {
namespace {

std::string words_of(CLI::App* command) {
  std::string words;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) words += cat("--", name, " ");
    for (const std::string& name : option->get_snames()) words += cat("-", name, " ");
  }
  return words;
}

}  // namespace

void add_completion_command(CLI::App* app, int*) {
  auto* command = app->add_subcommand(
      "completion", "print a completion script: eval \"$(tenon completion bash)\"");
  command->footer(
      "In ~/.bashrc, or with zsh for bash in ~/.zshrc:\n\n"
      "  eval \"$(tenon completion bash)\"");
  auto shell = std::make_shared<std::string>("bash");
  command->add_option("SHELL", *shell, "bash or zsh")->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([app, shell] {
    std::string commands, cases;
    for (CLI::App* sub : app->get_subcommands([](CLI::App*) { return true; })) {
      commands += cat(sub->get_name(), " ");
      cases += cat("    ", sub->get_name(), ") words=\"", words_of(sub), "\" ;;\n");
    }
    if (*shell == "zsh") std::printf("autoload -U +X bashcompinit && bashcompinit\n");
    std::printf(
        "_tenon() {\n"
        "  local words current=\"${COMP_WORDS[COMP_CWORD]}\"\n"
        "  if [ \"$COMP_CWORD\" = 1 ]; then words=\"%s%s\"; else case \"${COMP_WORDS[1]}\" in\n%s  "
        "esac; fi\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
        "  local IFS=$'\\n'\n"  // names of files may hold spaces
        "  case \"$current\" in -*) ;; *) [ \"$COMP_CWORD\" != 1 ] && COMPREPLY+=($(compgen -f -- "
        "\"$current\")) ;; esac\n"
        "}\n"
        "complete -o filenames -F _tenon tenon\n",
        commands.c_str(), words_of(app).c_str(), cases.c_str());
  });
}

}  // namespace tenon::tool
