#include "graph/scripted_module.hpp"

#include <ATen/ops/empty.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/export.h>

#include <memory>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "data/synthetic.hpp"

namespace vpp {

namespace {

double value_at(const NewParameter& parameter, uint64_t key, int64_t element) {
    using enum NewParameter::Values;
    const uint64_t bits = combine_key(key, static_cast<uint64_t>(element));
    switch (parameter.values) {
        case Zeros:
            return 0;
        case Ones:
            return 1;
        case Uniform:
            return parameter.scale * (static_cast<double>(bits >> 11) * 0x1p-52 - 1);
        case Normal:
            break;
    }
    return parameter.scale * synthetic_normal(bits);
}

at::Tensor tensor_of(const NewParameter& parameter, uint64_t key) {
    at::Tensor tensor = at::empty(parameter.shape, at::kFloat);
    auto* values = tensor.mutable_data_ptr<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(value_at(parameter, key, i));
    return tensor.set_requires_grad(true);
}

/// Makes modules of one file, the innermost first.
class ModuleMaker {
  public:
    explicit ModuleMaker(uint64_t seed) : seed_(seed) {}

    /// `prefix` stands before the names of its parameters: "blocks.0."
    torch::jit::Module make(const ScriptedModule& spec, const std::string& prefix) const {
        torch::jit::Module module(c10::QualifiedName("__torch__." + spec.class_name), unit_, /*shouldMangle=*/true);
        module.register_attribute("training", c10::BoolType::get(), true);
        for (const NewParameter& parameter : spec.parameters) {
            const uint64_t key = combine_key(mix64(seed_), hash_text(prefix + parameter.name).low);
            module.register_parameter(parameter.name, tensor_of(parameter, key), /*is_buffer=*/false);
        }
        for (const auto& [name, child] : spec.children) {
            module.register_module(name, make(child, prefix + name + "."));
        }
        module.define(spec.code);
        return module;
    }

  private:
    std::shared_ptr<torch::jit::CompilationUnit> unit_ = std::make_shared<torch::jit::CompilationUnit>();
    uint64_t seed_;
};

}  // namespace

std::string model_file(const ScriptedModule& module, uint64_t seed) {
    std::string bytes;
    const auto take = [&](const void* data, size_t size) -> size_t {
        bytes.append(static_cast<const char*>(data), size);
        return size;
    };
    torch::jit::ExportModule(ModuleMaker(seed).make(module, ""), take);
    return bytes;
}

}  // namespace vpp
