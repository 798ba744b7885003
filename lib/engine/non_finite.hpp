#pragma once
// Where a step first left the finite numbers: it watches the step being run once more and notes what leaves a stage.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "engine/executor.hpp"

namespace vpp {

/// A value that is not finite.
struct NonFiniteValue {
    bool is_backward = false;
    int replica = 0;
    int microbatch = 0;  ///< of the replica
    int stage = 0;
    std::string name;  ///< "the loss", "the tensor 'x'", "the gradient of 'w'"

    bool is_loss() const { return name == "the loss"; }
};

/// "the tensor 'x' of stage 2, F of microbatch 3"; of one of several replicas "... of microbatch 3 of replica 1".
std::string to_text(const NonFiniteValue& value, int num_replicas);

/// "samples 3, 17, 5", as the files count them.
std::string sample_names(const Dataset& data, const std::vector<Draw>& samples);

/// The first value of these samples that the model is given and that is not finite: "the field 'x' of x.npy, sample 5";
/// empty where all are.
std::string non_finite_input(const Dataset& data, const Graph& graph, const std::vector<Draw>& samples);

/// A parameter of this rank and where its gradient grows.
struct WatchedParameter {
    std::string name;
    at::Tensor tensor;
};

/// Whether all its numbers are; other types have no others.
bool is_finite(const at::Tensor& tensor);

/// The first parameter of the model, by its place in `parameters()`, that is not finite on some rank; nothing when all
/// are. `parameters`: those of this rank by their places.
/// Calls: collective.
std::optional<int> first_non_finite(Transport& transport, const std::map<int, at::Tensor>& parameters);

/// Notes the first value of each pass of each microbatch.
class NonFiniteWatch {
  public:
    NonFiniteWatch(Executor& executor, const Split& split, int replica, std::vector<WatchedParameter> parameters);
    ~NonFiniteWatch();
    NonFiniteWatch(const NonFiniteWatch&) = delete;
    NonFiniteWatch& operator=(const NonFiniteWatch&) = delete;

    /// Of the values of all ranks the one that comes first: forward before backward, then by microbatch, then the way
    /// the data go. Nothing when all were finite.
    /// Calls: collective.
    std::optional<NonFiniteValue> first(Transport& transport) const;

  private:
    void see_tensor(const Edge& edge, int microbatch, Direction direction, const at::Tensor& tensor);
    void see_action(const Action& action);

    Executor& executor_;
    const Split& split_;
    int replica_;
    std::vector<WatchedParameter> parameters_;
    std::vector<NonFiniteValue> found_;
};

}  // namespace vpp
