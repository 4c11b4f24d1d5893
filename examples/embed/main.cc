// The C++ form of main.c: runs a compiled model.
//
//   embed_cpp PROGRAM.tnx [FUNCTION]
//
// Prints the function's signature, calls it with ones for every tensor (symbols that the file
// leaves open become 2), and prints what comes back. The program may call the function
// "host.scale", which is registered here.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tenon/tenon.h>

namespace {

// An argument that fits the parameter: a tensor of ones (of zeros, unless it holds float32), or 4.
tenon::Value argument(const tenon::Parameter& parameter) {
  if (parameter.kind != TENON_TENSOR) return 4;
  std::vector<int64_t> shape;
  if (parameter.dims) {
    for (const tenon::Dim& dim : *parameter.dims) shape.push_back(dim.size < 0 ? 2 : dim.size);
  }
  if (tenon::Value(parameter.dtype) == tenon::dtype_of<float>)
    return tenon::Tensor::full(shape, 1.0f);
  return tenon::Tensor::zeros(shape, parameter.dtype);
}

void run(const char* path, const char* function) {
  tenon::register_function("host.scale", [](int64_t x) { return 10 * x; });

  const auto program = tenon::Program::load(path);
  std::vector<tenon::Value> arguments;
  for (const tenon::Parameter& parameter : program.signature(function).params) {
    std::printf("input  %s: %s\n", parameter.name.c_str(), parameter.type.c_str());
    arguments.push_back(argument(parameter));
  }

  const tenon::Function f = program.function(function, {.deadline = std::chrono::seconds(10)});
  const tenon::Value result = f.call(arguments);
  std::printf("result %s\n", result.repr().c_str());
  if (const auto tensor = result.get_if<tenon::Tensor>()) {
    std::printf("first  %g\n", tensor->to_vector<float>().at(0));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: embed_cpp PROGRAM.tnx [FUNCTION]\n");
    return 2;
  }
  setenv("GOMP_SPINCOUNT", "1000", 0);  // idle threads of oneDNN don't spin for long (docs/cpp.md)
  try {
    run(argv[1], argc > 2 ? argv[2] : "main");
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "embed_cpp: %s\n", error.what());
    return 1;
  }
}
