// Runs a model in ONNX Runtime, in a process of Python.
#pragma once

#include <string>

namespace tenon::tool {

// Writes the values of the nodes of `model`, by their ONNX names, for the inputs in a .npz file to
// another .npz file. `python` is an interpreter with the packages onnx and onnxruntime. Throws
// Unsupported if it or they are missing, Runtime for what ONNX Runtime reports.
void run_onnx_runtime(const std::string& python, const std::string& model,
                      const std::string& inputs, const std::string& values);

}  // namespace tenon::tool
