#pragma once
// A new model as plain values: TorchScript source of every submodule, and how its parameters begin. From it a model
// file is made, as torch.jit.save would write it, without Python. No torch types.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vpp {

/// A float32 parameter before the first step.
struct NewParameter {
    enum class Values { Zeros, Ones, Uniform, Normal };
    std::string name;
    std::vector<int64_t> shape;
    Values values = Values::Zeros;
    double scale = 0;  ///< Uniform: in [-scale, scale); Normal: the standard deviation
};

struct ScriptedModule {
    std::string class_name;
    std::string code;  ///< forward as TorchScript; ops are torch.NAME, a submodule is called as self.NAME.forward(...)
    std::vector<NewParameter> parameters = {};
    std::vector<std::pair<std::string, ScriptedModule>> children = {};
};

/// The bytes of a model file, in train mode. Every value is a pure function of seed, the parameter's FQN and its place
/// in the tensor, without a call of a mathematics library.
/// Requires: code that compiles.
std::string model_file(const ScriptedModule& module, uint64_t seed);

}  // namespace vpp
