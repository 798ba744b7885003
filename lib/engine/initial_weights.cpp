#include "engine/initial_weights.hpp"

#include <ATen/ops/empty.h>

#include <cstring>
#include <map>

#include "checkpoint/weights_match.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace {

/// Whether training writes it, or would: evaluation only reads what batch norms keep.
bool is_statistic(const Graph& graph, const GraphParameter& parameter) {
    if (parameter.written) return true;
    for (int op : parameter.uses) {
        if (graph.ops[static_cast<size_t>(op)].kind.find("batch_norm") != std::string::npos) return true;
    }
    return false;
}

std::vector<WantedWeight> wanted_by(const Graph& graph) {
    std::vector<WantedWeight> wanted;
    for (const GraphParameter& parameter : graph.parameters) {
        WantedWeight weight{{parameter.name}, parameter.dtype, parameter.shape, false};
        weight.names.insert(weight.names.end(), parameter.aliases.begin(), parameter.aliases.end());
        weight.may_be_absent = parameter.is_buffer && !is_statistic(graph, parameter);
        wanted.push_back(std::move(weight));
    }
    return wanted;
}

/// The file of a plan, matched with a graph.
class InitialWeights {
  public:
    InitialWeights(const std::string& path, const Graph& graph, bool verify) : file_(path) {
        if (verify) file_.verify();
        matched_ = match_weights(file_, wanted_by(graph));
        for (size_t i = 0; i < graph.parameters.size(); ++i) index_of_["model." + graph.parameters[i].name] = i;
    }

    /// Of the file's dtype. Nothing for what is absent, and for what is no weight.
    std::optional<at::Tensor> find(const std::string& name) const {
        const auto index = index_of_.find(name);
        if (index == index_of_.end() || !matched_.values[index->second]) return std::nullopt;
        const TensorBytes& value = *matched_.values[index->second];
        at::Tensor tensor = at::empty(value.shape, at::TensorOptions().dtype(to_torch(value.dtype)));
        if (!value.bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), value.bytes.data(), value.bytes.size());
        return tensor;
    }

    void say(const Logger& log) const {
        const auto step = file_.step();
        log->info("starting with the weights of " + file_.path().string() + (step ? ", of step " + *step : ""));
        for (const std::string& note : matched_.notes) log->info("model.init_from: " + note);
        if (!matched_.extra.empty()) {
            log->warn("model.init_from: not in the model, so not taken: " + names_text(matched_.extra));
        }
        if (!matched_.absent.empty()) {
            log->warn("model.init_from: not in the file, so the model file's own: " + names_text(matched_.absent));
        }
    }

  private:
    WeightsFile file_;
    MatchedWeights matched_;
    std::map<std::string, size_t> index_of_;
};

}  // namespace

void load_initial_weights(Engine& engine, const Plan& plan, const Program& program, const Logger& log) {
    if (plan.model.init_from.empty()) return;
    const bool is_first = engine.transport().rank() == 0;
    engine.transport().set_position("reading model.init_from");
    const InitialWeights initial(plan.model.init_from, program.training.graph, is_first);
    engine.load_state(
        [&](const std::string& name, at::ScalarType, const std::vector<int64_t>&) { return initial.find(name); });
    if (is_first && log) initial.say(log);
}

void load_initial_weights(const Weights& weights, const Plan& plan, const Graph& graph, bool is_first,
                          const Logger& log) {
    if (plan.model.init_from.empty()) return;
    const InitialWeights initial(plan.model.init_from, graph, is_first);
    for (int parameter : weights.held()) {
        const GraphParameter& entry = graph.parameters[static_cast<size_t>(parameter)];
        const std::optional<at::Tensor> value = initial.find("model." + entry.name);
        if (value) weights.at(parameter).detach().copy_(*value);
    }
    if (is_first) initial.say(log);
}

}  // namespace vpp
