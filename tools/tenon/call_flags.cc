#include "tools/tenon/call_flags.h"

namespace tenon::tool {

void CallFlags::add_to(CLI::App* command) {
  command
      ->add_option("FILE", file,
                   "executable, ONNX model, program, or assembly;\n- for standard input")
      ->required();
  command->add_option("--function,-f", function, "function to call")->capture_default_str();
  add_repeated(command, "--input,-i", inputs.inputs,
               "NAME=F.npy, F.pb, random[:LO..HI] or a number; once for each input");
  command->add_option("--inputs", inputs.folder, "folder with input_0.pb, ... or NAME.npy");
  command->add_option("--seed", inputs.seed, "of random inputs")->capture_default_str();
  command->add_option("--weights", weights, kWeightsHelp);
  command->add_option("--threads", threads, "threads for kernels; 0: all")
      ->check(between(0, 4096))
      ->group("Limits");
  flags.add_to(command);
}

}  // namespace tenon::tool
