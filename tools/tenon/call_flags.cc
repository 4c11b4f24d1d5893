#include "tools/tenon/call_flags.h"

#include "device/parallel.h"
#include "evaluate/reference_evaluator.h"
#include "support/text.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/quantity.h"

namespace tenon::tool {

void CallFlags::add_to(CLI::App* command) {
  command->add_option("FILE", file, kAnyFileHelp)->required();
  command->add_option("--function,-f", function, "function to call")->capture_default_str();
  add_repeated(
      command, "--input,-i", inputs.inputs,
      "NAME=F.npy, F.npz:ARRAY, F.pb, random[:LO..HI], a number or data; once for each input");
  command->add_option("--inputs", inputs.store,
                      "folder with input_0.pb, ... or NAME.npy, or a .npz file");
  command->add_option("--seed", inputs.seed, "of random inputs")->capture_default_str();
  command->add_option("--weights", weights, kWeightsHelp);
  command->add_option("--threads", threads, "threads for kernels; 0: all")
      ->check(between(0, kMostThreads))
      ->group("Limits");
  add_size(command, "--stack", stack, kMegabytes, Zero::Refused,
           cat("registers of nested calls, such as 1GB; in megabytes without a unit.\nBy default ",
               vm::Limits().stack_bytes >> 20, " MB, never less than ",
               vm::Limits::kLeastStackBytes >> 10, " KB; with --mode interpret, by default ",
               graph::EvaluatorState::kMaxStackBytes >> 20, " MB"))
      ->group("Limits");
  command
      ->add_option("--depth", depth,
                   cat("calls that may nest; ", vm::Limits().depth, " by default"))
      ->check(between(1, 1 << 30))
      ->group("Limits");
  flags.add_to(command);
  untrusted_option =
      command->add_flag("--untrusted", untrusted,
                        "refuse libraries, functions that are not for untrusted files, and native\n"
                        "kernels (which are compiled again if --keep-computes stored them);\n"
                        "`tenon verify --untrusted` says beforehand whether that works");
  limit_flags.add_to(command, "opening the file, reading its inputs, and a call may each");
}

driver::Source CallFlags::read() const {
  return open_input(file, untrusted, limit_flags.work());
}

OpenOptions CallFlags::open_options() const {
  return {.trusted = !untrusted,
          .limits = limit_flags.work(),
          .weights = weight_source(weights, limit_flags.work())};
}

Inputs CallFlags::make_inputs_within_limits(const FunctionSignature& signature,
                                            bool random_rest) const {
  const BudgetedWork work(limit_flags.work(), "reading", cat("the inputs of ", file));
  return make_inputs(signature, inputs, random_rest);
}

std::pair<ProgramFile, Inputs> CallFlags::open_with_inputs(driver::Source source) {
  ProgramFile program = open_program(std::move(source), flags, open_options());
  const FunctionSignature signature = program.signature(function);
  if (program.source.kind != driver::SourceKind::Model) bind_sizes(signature, &inputs.sizes);
  Inputs given = make_inputs_within_limits(signature, /*random_rest=*/true);
  for (const std::string& note : given.notes) progress(note);
  return {std::move(program), std::move(given)};
}

vm::Limits CallFlags::call_limits() const {
  vm::Limits limits;
  const WorkLimits work = limit_flags.work();
  limits.deadline = work.deadline;
  limits.memory = work.memory;
  limits.threads = threads;
  if (depth) limits.depth = *depth;
  if (stack > 0) limits.stack_bytes = static_cast<size_t>(stack);
  return limits;
}

}  // namespace tenon::tool
