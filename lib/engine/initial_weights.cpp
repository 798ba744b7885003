#include "engine/initial_weights.hpp"

#include <ATen/ops/empty.h>

#include <cstring>
#include <map>

#include "checkpoint/weights_match.hpp"
#include "comm/collective.hpp"
#include "device/repeated_elements.hpp"
#include "engine/reading_time.hpp"
#include "graph/initial_values.hpp"
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

const InitRule* rule_of(const GraphParameter& parameter, const Plan& plan) {
    return parameter.is_buffer ? nullptr : rule_for(plan.model.init, parameter.name, parameter.aliases);
}

std::vector<WantedWeight> wanted_by(const Graph& graph, const Plan& plan) {
    std::vector<WantedWeight> wanted;
    for (const GraphParameter& parameter : graph.parameters) {
        WantedWeight weight{{parameter.name}, parameter.dtype, parameter.shape, false};
        weight.names.insert(weight.names.end(), parameter.aliases.begin(), parameter.aliases.end());
        weight.may_be_absent = parameter.is_buffer && !is_statistic(graph, parameter);
        if (!parameter.is_buffer) weight.seed_fill = rule_of(parameter, plan) ? SeedFill::Named : SeedFill::IfNamed;
        wanted.push_back(std::move(weight));
    }
    return wanted;
}

/// The file of a plan, matched with a graph.
class InitialWeights {
  public:
    InitialWeights(const Plan& plan, const Graph& graph)
        : plan_(plan),
          graph_(graph),
          file_(plan.model.init_from),
          matched_(match_weights(file_, wanted_by(graph, plan))) {
        for (size_t i = 0; i < graph.parameters.size(); ++i) index_of_["model." + graph.parameters[i].name] = i;
    }

    uint64_t size_bytes() const { return file_.size_bytes(); }

    /// Rank 0 compares checksums for all.  Calls: collective.
    void verify_once(Transport& transport) const {
        from_first_rank(transport, [&] { return file_.verify(), ""; });
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

    /// What a [[model.init]] table fills a parameter with that the file lacks: the bits that it was opened with.
    std::optional<at::Tensor> from_seed(const std::string& name, at::ScalarType dtype,
                                        const std::vector<int64_t>& shape) const {
        const auto index = index_of_.find(name);
        if (index == index_of_.end()) return std::nullopt;
        const GraphParameter& parameter = graph_.parameters[index->second];
        const InitRule* rule = rule_of(parameter, plan_);
        if (!rule) return std::nullopt;
        return filled(at::empty(shape, at::TensorOptions().dtype(dtype)), *rule, plan_.train.seed, parameter.name);
    }

    void say(const Logger& log) const {
        const auto step = file_.step();
        log->info("starting with the weights of " + file_.path().string() + (step ? ", of step " + *step : ""));
        for (const std::string& note : matched_.notes) log->info("model.init_from: " + note);
        if (!matched_.extra.empty()) {
            log->warn("model.init_from: not in the model, so not taken: " + names_text(matched_.extra));
        }
        if (!matched_.seeded.empty()) {
            log->info("model.init_from: not in the file, so filled by [[model.init]]: " + names_text(matched_.seeded));
        }
        if (!matched_.absent.empty()) {
            log->warn("model.init_from: not in the file, so the model file's own: " + names_text(matched_.absent));
        }
    }

  private:
    const Plan& plan_;
    const Graph& graph_;
    WeightsFile file_;
    MatchedWeights matched_;
    std::map<std::string, size_t> index_of_;
};

}  // namespace

void load_initial_weights(Engine& engine, const Plan& plan, const Program& program, const Logger& log) {
    if (plan.model.init_from.empty()) return;
    Transport& transport = engine.transport();
    transport.set_position("reading model.init_from");
    const InitialWeights initial(plan, program.training.graph);
    ReadingTime time(transport, initial.size_bytes());
    initial.verify_once(transport);
    engine.load_state([&](const std::string& name, at::ScalarType dtype, const std::vector<int64_t>& shape) {
        const std::optional<at::Tensor> value = initial.find(name);
        return value ? value : initial.from_seed(name, dtype, shape);
    });
    time.wait_for_all();
    if (transport.rank() == 0 && log) initial.say(log);
}

void load_initial_weights(const Weights& weights, const Plan& plan, const Graph& graph, Transport& transport,
                          const Logger& log) {
    if (plan.model.init_from.empty()) return;
    const InitialWeights initial(plan, graph);
    ReadingTime time(transport, initial.size_bytes());
    initial.verify_once(transport);
    for (int parameter : weights.held()) {
        const GraphParameter& entry = graph.parameters[static_cast<size_t>(parameter)];
        const std::optional<at::Tensor> value = initial.find("model." + entry.name);
        if (value) take_values(weights.at(parameter).detach(), *value, entry.name);
    }
    time.wait_for_all();
    if (transport.rank() == 0) initial.say(log);
}

}  // namespace vpp
