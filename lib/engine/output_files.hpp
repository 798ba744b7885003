#pragma once
// The model's outputs as .npy files, one an output, samples along dim 0 in the order of the data.
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/npy_writer.hpp"
#include "graph/graph.hpp"

namespace vpp {

/// The outputs that have a row for each sample; the others are named in `left_out`.
std::vector<int> outputs_by_sample(const Graph& graph, int64_t microbatch_size, std::vector<std::string>& left_out);

/// "<folder>/<name>.npy" of these outputs.
std::vector<std::filesystem::path> output_paths(const Graph& graph, const std::vector<int>& outputs,
                                                const std::filesystem::path& folder);

/// Files appear under their names only when all of them are whole, and never beside old ones of another time.
class OutputFiles {
  public:
    /// Makes the folder. Throws Error{Output} when it cannot, or when a file is there already and may not be replaced.
    OutputFiles(const Graph& graph, std::vector<int> outputs, const std::filesystem::path& folder, int64_t num_samples,
                bool overwrite);
    /// The next samples of all outputs of the model. Throws Error{BadData} when one has not a row for each sample.
    void take(const std::vector<at::Tensor>& outputs, int64_t num_samples);
    /// Requires: all samples were taken.
    void publish();

  private:
    std::vector<std::string> names_;
    std::vector<int> outputs_;
    std::vector<std::filesystem::path> paths_;
    int64_t num_samples_;
    std::vector<std::unique_ptr<NpyWriter>> writers_;  ///< made when the first samples show dtype and shape
    std::vector<at::Tensor> first_;                    ///< what all later ones must be like
};

}  // namespace vpp
