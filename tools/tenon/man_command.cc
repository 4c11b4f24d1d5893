// tenon man: manual pages, generated from the commands' options.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "tools/tenon/version.h"

namespace tenon::tool {
namespace {

// Text for roff: its special characters escaped.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  // A line that begins with these would be a request.
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// The lines of a text.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Paragraphs, and lines that are indented as they are.
std::string paragraphs(const std::string& text) {
  std::string out;
  bool as_is = false;
  for (const std::string& line : lines_of(text)) {
    const bool indented = line.starts_with(' ');
    if (indented != as_is && !line.empty()) {
      out += indented ? ".PP\n.nf\n" : ".fi\n.PP\n";
      as_is = indented;
    }
    out += line.empty() ? (as_is ? "\n" : ".PP\n") : cat(roff(line), "\n");
  }
  return out + (as_is ? ".fi\n" : "");
}

std::string heading(const std::string& name, const std::string& description) {
  const std::string title =
      name.find(' ') == std::string::npos
          ? name
          : cat(name.substr(0, name.find(' ')), "-", name.substr(name.find(' ') + 1));
  return cat(".TH ", upper(title), " 1 \"\" \"Tenon ", tenon_version(), "\" \"User Commands\"\n",
             ".SH NAME\n", roff(title), " \\- ", roff(description), "\n");
}

std::string names_of(const CLI::Option& option) {
  if (option.get_positional() && !option.nonpositional()) {
    return cat("\\fI", roff(option.get_name()), "\\fR");
  }
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back(cat("\\fB", roff("-" + name), "\\fR"));
  for (const std::string& name : option.get_lnames()) {
    names.push_back(cat("\\fB", roff("--" + name), "\\fR"));
  }
  const std::string type = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  return cat(join(names, ", "), type.empty() ? "" : cat(" \\fI", roff(type), "\\fR"));
}

// A section for each group of options.
std::string options_of(const CLI::App& command) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : command.get_options()) {
    if (std::ranges::find(groups, option->get_group()) == groups.end()) {
      groups.push_back(option->get_group());
    }
  }
  std::string out;
  for (const std::string& group : groups) {
    if (group.empty()) continue;  // hidden options
    out += cat(".SH ", upper(group), "\n");
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_group() != group) continue;
      out += cat(".TP\n", names_of(*option), "\n");
      for (const std::string& line : lines_of(option->get_description())) {
        out += cat(roff(line), "\n");
      }
      const std::string initial = option->get_default_str();
      if (!initial.empty()) out += cat("The default is ", roff(initial), ".\n");
    }
  }
  return out;
}

std::string synopsis(const CLI::App& command) {
  std::string out =
      cat(".SH SYNOPSIS\n.B tenon ", roff(command.get_name()), "\n[\\fIOPTION\\fR]...");
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() || option->nonpositional()) continue;
    const std::string name = cat("\\fI", roff(option->get_name()), "\\fR",
                                 option->get_items_expected_max() > 1 ? "..." : "");
    out += option->get_required() ? cat(" ", name) : cat(" [", name, "]");
  }
  return out + "\n";
}

std::string page_of(const CLI::App& command) {
  return cat(heading(cat("tenon ", command.get_name()), command.get_description()),
             synopsis(command), ".SH DESCRIPTION\n", paragraphs(command.get_footer()),
             options_of(command), ".SH SEE ALSO\n.BR tenon (1)\n");
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The page of the whole application: its commands.
std::string overview(const CLI::App& app) {
  std::string out =
      cat(heading("tenon", app.get_description()),
          ".SH SYNOPSIS\n.B tenon\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n",
          paragraphs(app.get_footer()), ".SH COMMANDS\n");
  for (const CLI::App* command : commands_of(app)) {
    out += cat(".TP\n.BR tenon\\-", roff(command->get_name()), " (1)\n",
               roff(command->get_description()), "\n");
  }
  return out + options_of(app);
}

void write_all(const CLI::App& app, const std::string& folder) {
  std::filesystem::create_directories(folder);
  write_file(cat(folder, "/tenon.1"), overview(app));
  for (const CLI::App* command : commands_of(app)) {
    write_file(cat(folder, "/tenon-", command->get_name(), ".1"), page_of(*command));
  }
}

}  // namespace

void add_man_command(CLI::App* app) {
  auto* command = app->add_subcommand("man", "print a manual page, or write all of them");
  command->footer(
      "`cmake --install` installs the pages.\n\n"
      "  tenon man run | man -l -\n"
      "  tenon man --folder ~/.local/share/man/man1");
  auto name = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  command->add_option("COMMAND", *name, "the command that the page is about; without it, tenon");
  command->add_option("--folder", *folder, "write every page into this folder instead");
  command->callback([=] {
    if (!folder->empty() && !name->empty()) {
      throw Error(ErrorKind::Usage, "COMMAND has no effect with --folder")
          .help("leave it out: --folder writes the pages of all commands");
    }
    if (!folder->empty()) {
      check_folder_writable(*folder);
      return write_all(*app, *folder);
    }
    if (name->empty()) {
      std::printf("%s", overview(*app).c_str());
      return;
    }
    std::vector<std::string> names;
    for (const CLI::App* some : commands_of(*app)) {
      names.push_back(some->get_name());
      if (some->get_name() != *name) continue;
      std::printf("%s", page_of(*some).c_str());
      return;
    }
    const std::string near = nearest(*name, names);
    throw Error(ErrorKind::Usage, cat("there is no command '", *name, "'"))
        .expected(join(names, ", "))
        .help(near.empty() ? "`tenon --help` lists the commands" : cat("did you mean ", near, "?"));
  });
}

}  // namespace tenon::tool
