// tenon check: runs ONNX's test cases, each in its own process, so that a crash or hang fails only
// that case.
#include <poll.h>
#include <unistd.h>

#include <fnmatch.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "driver/code_choice.h"
#include "evaluate/reference_evaluator.h"
#include "import/onnx/import_model.h"
#include "import/onnx/tensor_file.h"
#include "support/error.h"
#include "tools/tenon/child_process.h"
#include "tools/tenon/command.h"
#include "tools/tenon/compare.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/quantity.h"
#include "tools/tenon/report_page.h"
#include "tools/tenon/status_line.h"
#include "tools/tenon/tensor_store.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

enum class Outcome : uint8_t { Passed, Failed, Skipped };

const char* to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::Passed:
      return "passed";
    case Outcome::Failed:
      return "failed";
    case Outcome::Skipped:
      break;
  }
  return "skipped";
}

struct Result {
  Outcome outcome = Outcome::Failed;
  std::string reason;

  // What a child process sends to its parent: a byte for the outcome, then the reason.
  std::string encode() const { return static_cast<char>(outcome) + reason; }
  static Result decode(const std::string& sent) {
    return {static_cast<Outcome>(sent[0]), sent.substr(1)};
  }
};

// The models (model.onnx) in folders below `path`, or `path` itself if it is a file.
void find_cases(const fs::path& path, std::vector<fs::path>* cases) {
  if (fs::is_regular_file(path)) {
    cases->push_back(path.has_parent_path() ? path : "." / path);
    return;
  }
  if (!fs::is_directory(path)) {
    throw Error(ErrorKind::Usage, cat(path.string(), " does not exist"))
        .expected("a folder of cases, or a model");
  }
  for (auto it =
           fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied);
       it != fs::recursive_directory_iterator(); ++it) {
    if (it->path().extension() == ".onnx" && it->is_regular_file()) cases->push_back(it->path());
  }
}

// Joins the rows of an error with "; ".
std::string one_line(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    bool gap = false, first = true;
    if (at > 0) out += "; ";
    for (; at < end; ++at) {
      if (text[at] == ' ') {
        gap = true;
        continue;
      }
      if (gap && !first) out += ' ';
      gap = first = false;
      out += text[at];
    }
    ++at;
  }
  return out;
}

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) {
      sets.push_back(entry.path());
    }
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

// What a model's inputs and outputs are.
struct Types {
  std::vector<onnx::ValueType> inputs, outputs;
};

onnx::ValueType type_named(const std::vector<onnx::Value>& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &onnx::Value::name);
  return found == values.end() ? onnx::ValueType() : found->type;
}

// There may be more files than the model has values, which is found when it runs.
onnx::ValueType type_at(const std::vector<onnx::ValueType>& types, size_t i) {
  return i < types.size() ? types[i] : onnx::ValueType();
}

// The rank of all tensors in a value; nullopt if they differ or there are none.
std::optional<size_t> common_rank(const Any& value) {
  if (value.type_index == TypeIndex::Tensor) {
    return static_cast<size_t>(value.as<Tensor>().rank());
  }
  std::vector<Any> parts;
  if (value.type_index == TypeIndex::Array) {
    parts = value.as<Array<Any>>().to_vector();
  } else if (const auto cell = value.try_as<Ref<const CellObj>>()) {
    parts.assign((*cell)->begin(), (*cell)->end());
  }
  std::optional<size_t> rank;
  for (const Any& part : parts) {
    const auto found = common_rank(part);
    if (!found || (rank && *rank != *found)) return std::nullopt;
    rank = found;
  }
  return rank;
}

struct CheckCommand {
  std::vector<std::string> paths;
  std::string filter;
  Mode mode = Mode::Compiled;
  Criterion criterion = Criterion::of_onnx();
  CompileFlags flags;
  int jobs = 0;
  std::chrono::nanoseconds timeout = std::chrono::seconds(120);
  LimitFlags limit_flags;
  vm::MachineOptions machine_options;
  ReportFlag report_flag;
  int* exit_code = nullptr;

  // Runs @main on its inputs.
  using Run = std::function<std::vector<Any>(const std::vector<Any>&)>;

  // `program` is set to what runs.
  Run compiled(const graph::Module& module, const std::string& name,
               Ref<vm::Program>* program) const {
    driver::CompileOptions options = flags.options;
    options.threads = 1;
    options.keep_graph = report_flag.is_given();
    const WorkLimits work = limit_flags.work();
    vm::Limits limits;
    limits.deadline = work.deadline;
    limits.memory = work.memory;
    *program = compile_in_memory(module, options, name);
    auto machine = std::make_shared<vm::Machine>(*program, limits, machine_options);
    const vm::SignatureType type = signature_of(module, "main", name).result;
    return [machine, type](const std::vector<Any>& inputs) {
      std::vector<AnyView> views(inputs.begin(), inputs.end());
      return results_of(machine->call("main", views), type);
    };
  }

  Run interpreted(const graph::Module& module) const {
    auto evaluator = std::make_shared<graph::ReferenceEvaluator>(
        driver::choose_code(flags.options).targets.front());
    return [module, evaluator](const std::vector<Any>& inputs) {
      return evaluator->run(module, module->functions.at("main"), inputs);
    };
  }

  // In the child: compiles or interprets the model, and runs every data set.
  Result run_case(const fs::path& model) const {
    const std::vector<fs::path> sets = data_sets(model.parent_path());
    if (sets.empty()) {
      return {Outcome::Skipped, cat("no test_data_set_N beside it; `tenon inspect ", model.string(),
                                    "` describes the model")};
    }
    std::optional<ReportPage> page;
    if (report_flag.is_given()) page.emplace(report_flag.path, model.string(), "--report");
    const BudgetedWork work(limit_flags.work(), "checking", model.string());
    // The ranks of inputs for which the model states none, taken from the data.
    std::map<std::string, std::vector<int64_t>> ranks;
    const driver::Source source = driver::open_source(model.string());
    const onnx::Model model_of_case = driver::read_model(source);
    const onnx::ModelReport report = onnx::inspect_model(model_of_case);
    Types types;
    for (const auto& input : report.inputs) {
      types.inputs.push_back(type_named(model_of_case.graph.inputs, input.name));
    }
    for (const auto& output : model_of_case.graph.outputs) types.outputs.push_back(output.type);
    const std::vector<std::string> first = numbered_files(sets[0].string(), "input");
    for (size_t i = 0; i < first.size() && i < report.inputs.size(); ++i) {
      if (report.inputs[i].rank_known) continue;
      const auto rank = common_rank(onnx::read_value_file(first[i], type_at(types.inputs, i)));
      if (rank) ranks[report.inputs[i].name] = std::vector<int64_t>(*rank, -1);
    }
    const graph::Module module = read_module(source, flags, ranks);
    Ref<vm::Program> program;
    const Run run =
        mode == Mode::Interpret ? interpreted(module) : compiled(module, model.string(), &program);
    const Result result = run_data_sets(sets, types, run);
    if (page) {
      page->add_fact("Check", result.reason.empty() ? to_text(result.outcome) : result.reason);
      page->write(program->unit(), model.string(), 1);
    }
    return result;
  }

  static std::vector<Any> read_values(const std::vector<std::string>& files,
                                      const std::vector<onnx::ValueType>& types) {
    std::vector<Any> out;
    for (size_t i = 0; i < files.size(); ++i) {
      out.push_back(onnx::read_value_file(files[i], type_at(types, i)));
    }
    return out;
  }

  Result run_data_sets(const std::vector<fs::path>& sets, const Types& types,
                       const Run& run) const {
    for (const fs::path& set : sets) {
      const std::vector<Any> inputs =
          read_values(numbered_files(set.string(), "input"), types.inputs);
      const std::vector<Any> results = run(inputs);
      const std::vector<Any> expected =
          read_values(numbered_files(set.string(), "output"), types.outputs);
      if (expected.size() != results.size()) {
        return {Outcome::Failed,
                cat(set.filename().string(), " expects ", counted(expected.size(), "output"),
                    ", found ", results.size())};
      }
      for (size_t i = 0; i < expected.size(); ++i) {
        const Difference d = compare_values(results[i], expected[i], criterion);
        if (!d.equal) {
          return {Outcome::Failed, cat(set.filename().string(), ", output ", i, ": ", to_text(d))};
        }
      }
    }
    return {Outcome::Passed, ""};
  }

  struct Job {
    std::unique_ptr<ChildProcess> child;
    size_t index = 0;
    std::chrono::steady_clock::time_point end;
    std::string text;  // what it has said
    bool over = false, timed_out = false;
  };

  Job start(const std::vector<fs::path>& cases, size_t index) const {
    auto work = [&](int pipe) {
      Result result;
      try {
        result = run_case(cases[index]);
      } catch (const Error& error) {
        result = {Outcome::Failed, with_limit_help(error).render()};
      } catch (const std::exception& error) {
        result = {Outcome::Failed, cat("error: ", error.what())};
      }
      const std::string text = result.encode();
      for (size_t at = 0; at < text.size();) {
        const ssize_t n = write(pipe, text.data() + at, text.size() - at);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
      return 0;
    };
    return {std::make_unique<ChildProcess>(work, limit_flags.given().memory),
            index,
            std::chrono::steady_clock::now() + timeout,
            "",
            false,
            false};
  }

  Result finish(Job& job) const {
    if (job.timed_out)
      return {Outcome::Failed,
              cat("did not end within ", std::chrono::duration<double>(timeout).count(), " s")};
    const ChildProcess::End ended = job.child->wait();
    if (ended.signal != 0) return {Outcome::Failed, crash_text(ended.signal)};
    if (job.text.empty()) return {Outcome::Failed, "ended without a result"};
    return Result::decode(job.text);
  }

  void run() {
    if (mode == Mode::Interpret && machine_options.poison) {
      throw Error(ErrorKind::Usage, "--poison has no effect with --mode interpret")
          .help("leave out --poison, or --mode interpret");
    }
    if (mode == Mode::Interpret && report_flag.is_given()) {
      throw Error(ErrorKind::Usage, "--report has no effect with --mode interpret")
          .help("leave out --report, or --mode interpret");
    }
    driver::initialise();
    std::vector<fs::path> cases;
    for (const std::string& path : paths) find_cases(path, &cases);
    std::sort(cases.begin(), cases.end());
    if (!filter.empty()) {
      std::erase_if(cases, [&](const fs::path& path) {
        return fnmatch(filter.c_str(), path.parent_path().filename().c_str(), 0) != 0 &&
               fnmatch(filter.c_str(), path.c_str(), 0) != 0;
      });
    }
    if (cases.empty()) {
      throw Error(ErrorKind::Usage, cat("no case to check in ", join(paths, ", ")))
          .expected(filter.empty() ? "folders with a model.onnx, and test_data_set_N beside it"
                                   : cat("a case whose name or path matches '", filter, "'"));
    }
    if (report_flag.is_given() && cases.size() > 1) {
      throw Error(ErrorKind::Usage, "--report is for one case")
          .found(counted(cases.size(), "case"))
          .help("choose one with --filter");
    }
    const size_t width =
        jobs > 0 ? static_cast<size_t>(jobs) : static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
    std::vector<Result> results(cases.size());
    std::vector<Job> running;
    size_t next = 0, done = 0;
    StatusLine status("checking");
    status.set(cat("0 of ", counted(cases.size(), "case")));
    while (done < cases.size()) {
      while (next < cases.size() && running.size() < width) running.push_back(start(cases, next++));
      wait_for(running);
      for (Job& job : running) {
        if (!job.over) continue;
        results[job.index] = finish(job);
        report(cases[job.index], results[job.index]);
        status.set(cat(++done, " of ", counted(cases.size(), "case")));
      }
      std::erase_if(running, [](const Job& job) { return job.over; });
    }
    summarise(cases, results);
  }

  // Reads the children's output until one ends.
  static void wait_for(std::vector<Job>& running) {
    const auto is_over = [](const Job& job) { return job.over; };
    while (std::none_of(running.begin(), running.end(), is_over)) {
      std::vector<pollfd> polls;
      polls.reserve(running.size());
      for (const Job& job : running) polls.push_back({job.child->pipe(), POLLIN, 0});
      ::poll(polls.data(), polls.size(), 200);
      for (size_t i = 0; i < running.size(); ++i) {
        Job& job = running[i];
        if (polls[i].revents != 0) {
          char buffer[4096];
          const ssize_t n = read(job.child->pipe(), buffer, sizeof buffer);
          if (n > 0) job.text.append(buffer, static_cast<size_t>(n));
          job.over = n <= 0;
        }
        job.timed_out = !job.over && std::chrono::steady_clock::now() > job.end;
        job.over = job.over || job.timed_out;
      }
    }
  }

  // A test case is its folder; any other model is its file.
  static std::string name_of(const fs::path& model) {
    const fs::path path = model.lexically_normal();
    const bool is_case = path.filename() == "model.onnx" && path.has_parent_path();
    return is_case ? path.parent_path().string() : path.string();
  }

  static void report(const fs::path& path, const Result& result) {
    const std::string name = name_of(path);
    if (result.outcome == Outcome::Passed) detail(cat("ok   ", name));
    if (json_output() || result.outcome == Outcome::Passed) return;
    StatusLine::make_room();
    std::printf("%s %s: %s\n", result.outcome == Outcome::Failed ? "FAIL" : "skip",
                printable(name).c_str(), printable(one_line(result.reason)).c_str());
    std::fflush(stdout);
  }

  void summarise(const std::vector<fs::path>& cases, const std::vector<Result>& results) const {
    const auto count = [&](Outcome outcome) {
      return static_cast<size_t>(std::ranges::count(results, outcome, &Result::outcome));
    };
    const size_t passed = count(Outcome::Passed), failed = count(Outcome::Failed),
                 skipped = count(Outcome::Skipped);
    if (json_output()) {
      JsonWriter out = json_document();
      out.begin_object();
      out.key("passed").value(static_cast<uint64_t>(passed));
      out.key("failed").value(static_cast<uint64_t>(failed));
      out.key("skipped").value(static_cast<uint64_t>(skipped));
      out.key("cases").begin_array();
      for (size_t i = 0; i < cases.size(); ++i) {
        out.begin_object().key("case").value(name_of(cases[i]));
        out.key("outcome").value(to_text(results[i].outcome));
        out.key("reason").value(results[i].reason).end_object();
      }
      print_json(std::move(out.end_array().end_object()));
    }
    if (!json_output())
      std::printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    if (passed + failed == 0) *exit_code = tenon::exit_code(ErrorKind::Usage);
    if (failed > 0) *exit_code = 1;
  }
};

}  // namespace

void add_check_command(CLI::App* app, int* exit_code) {
  auto* command = app->add_subcommand(
      "check", "run ONNX test cases: model.onnx with test_data_set_N beside it");
  command->footer(
      "Every case runs in its own process. A line per failed or skipped case gives the reason; "
      "the\n"
      "last line has the counts. Exit code 1 if a case failed, 2 if all were skipped.\n\n"
      "  tenon check onnx/node --filter 'test_add*'");
  auto state = std::make_shared<CheckCommand>();
  state->exit_code = exit_code;
  command->add_option("PATH", state->paths, "folders that are searched for cases, or models")
      ->required();
  add_criterion(command, &state->criterion);
  command->add_option("--jobs,-j", state->jobs, "cases at a time; 0: as many as there are cores")
      ->check(between(0, 1024));
  command->add_option("--filter", state->filter,
                      "only cases whose name or path matches this pattern");
  add_duration(command, "--timeout", state->timeout, kSeconds, Zero::Refused,
               "time for one case, such as 30s or 5m; in seconds without a unit");
  add_json(command);
  add_mode(command, state->mode, state->flags);
  command->add_flag("--poison", state->machine_options.poison, kPoisonHelp);
  state->report_flag.add_to(command);
  state->limit_flags.add_to(command, "a case may");
  state->flags.add_to(command);
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
