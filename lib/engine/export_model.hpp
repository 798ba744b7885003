#pragma once
// `vpp export`: weights of a training for other programs, as one safetensors file, and as the plan's TorchScript with
// these weights in it. One process, no MPI, no data.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "engine/export_request.hpp"
#include "plan/plan.hpp"

namespace vpp {

struct ExportedFile {
    std::filesystem::path path;
    uint64_t size_bytes = 0;
};

struct ExportReport {
    std::string source;       ///< the checkpoint, or the file of the initial weights
    std::string step;         ///< updates that they have seen; empty when nothing says so
    int64_t num_tensors = 0;  ///< parameters and buffers
    std::vector<ExportedFile> files;
};

/// Writes the files that are asked for; each appears when it is whole and durable. The model's files are loaded whole,
/// and every parameter and buffer of them takes the checkpoint's value, which must have the same dtype and shape.
/// Requires: the plan is resolved, and its model files were judged (graph/trial_load.hpp).
/// Throws:   Error{CommandLine} when one file is to be both; Error{Output} for a file that is there or cannot be made,
///           before anything is read; Error{Io} when a write fails; Error{MissingInput} without a checkpoint;
///           Error{BadData} for damage and for weights of another model.
ExportReport export_model(const Plan& plan, const ExportRequest& request, const Logger& log);

}  // namespace vpp
