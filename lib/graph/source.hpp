#pragma once
// The other half of a loaded model: what can be run. A Source belongs to one Graph and gives executables for runs of
// its ops and the weights by parameter. Each model format has its own Source (torchscript.hpp); stage knows only this.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace vpp {

/// A run of ops [begin, end).
struct OpRange {
    int begin = 0;
    int end = 0;
    /// Each of them.
    std::vector<int> list() const {
        std::vector<int> ops;
        for (int op = begin; op < end; ++op) ops.push_back(op);
        return ops;
    }
};

/// Ops with the values that they take and give: what an op takes is given or made by one of them. Indices of the Graph.
struct OpSelection {
    std::vector<int> ops;  ///< ascending
    std::vector<int> live_ins;
    std::vector<int> parameters;
    std::vector<int> live_outs;
};

/// An input of an executable that ops take in another dtype.
struct CastInput {
    size_t input = 0;
    at::ScalarType dtype = at::kFloat;
};

/// Compiled ops, run one by one by an interpreter that never fuses. Not for concurrent use.
class Executable {
  public:
    virtual ~Executable() = default;
    /// Takes the live-in values and then the parameters, in the order asked for; gives the live-out values.
    /// `key` is the microbatch's (base/random.hpp). Ops that fail throw what LibTorch throws.
    virtual std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, uint64_t key) = 0;
    /// Inputs of which ops take copies where there are some (graph/weight_casts.hpp); one may be there more than once.
    virtual const std::vector<CastInput>& cast_inputs() const = 0;
};

class Source {
  public:
    virtual ~Source() = default;
    /// Where stages compute. The CPU unless set.
    void place_on(at::Device device) { device_ = device; }
    at::Device device() const { return device_; }

    /// It computes on `device`, whatever device the model was exported on; its inputs are tensors of it.
    virtual std::unique_ptr<Executable> executable(const OpSelection& selection, at::Device device) = 0;
    /// A fresh copy of a parameter as the file has it, its checksum compared; strides as in the file.
    /// Throws Error{BadData} for a damaged record.
    /// On the CPU, wherever the ops compute.
    virtual at::Tensor weight(int parameter) = 0;

  private:
    at::Device device_ = at::kCPU;
};

}  // namespace vpp
