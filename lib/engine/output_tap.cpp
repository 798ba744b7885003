#include "engine/output_tap.hpp"

#include "base/error.hpp"
#include "graph/ivalue_tensors.hpp"

namespace vpp {

OutputTap::OutputTap(const Graph& graph)
    : last_op_(graph.num_ops() - 1), num_outputs_(graph.outputs.size() + graph.tallies.size()) {
    if (num_outputs_ > 0) gathered_ = graph.ops.back().outputs[0];
}

void OutputTap::begin(Take take) {
    microbatch_ = 0;
    take_ = std::move(take);
}

void OutputTap::pass(const c10::IValue& gathered) {
    const std::vector<at::Tensor> outputs = tensors_in(gathered);
    if (outputs.size() != num_outputs_) {
        throw Error(ErrorKind::BadData, "forward gives " + std::to_string(outputs.size()) +
                                            " tensors beside the loss, "
                                            "other than when the model was prepared (" +
                                            std::to_string(num_outputs_) + ")");
    }
    take_(microbatch_++, outputs);
}

/// Runs the ops and keeps the last result to itself.
class TappedExecutable : public Executable {
  public:
    TappedExecutable(std::unique_ptr<Executable> inner, OutputTap& tap) : inner_(std::move(inner)), tap_(tap) {}
    std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, uint64_t key) override {
        std::vector<c10::IValue> results = inner_->run(std::move(inputs), key);
        const c10::IValue gathered = std::move(results.back());
        results.pop_back();
        tap_.pass(gathered);
        return results;
    }
    const std::vector<CastInput>& cast_inputs() const override { return inner_->cast_inputs(); }

  private:
    std::unique_ptr<Executable> inner_;
    OutputTap& tap_;
};

std::unique_ptr<Executable> TappedSource::executable(OpRange range, const std::vector<int>& live_ins,
                                                     const std::vector<int>& parameters,
                                                     const std::vector<int>& live_outs) {
    const bool gathers = tap_.gathered_ >= 0 && range.begin <= tap_.last_op_ && tap_.last_op_ < range.end;
    if (!gathers) return inner_.executable(range, live_ins, parameters, live_outs);
    std::vector<int> wanted = live_outs;
    wanted.push_back(tap_.gathered_);
    return std::make_unique<TappedExecutable>(inner_.executable(range, live_ins, parameters, wanted), tap_);
}

}  // namespace vpp
