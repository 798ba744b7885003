#pragma once
// The files of a plan's model: one, or with mode = "MANUAL_EAGER" one per stage.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/archive.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// Where a key of the plan was written.
using KeyPosition = std::function<std::optional<SourcePosition>(const std::string& key)>;

struct ModelFiles {
    std::shared_ptr<const Archive> model;                ///< null when every stage has a file of its own
    std::vector<std::shared_ptr<const Archive>> stages;  ///< by stage; null where it names submodules of the model

    ModelFiles() = default;
    /// One model, one file.
    ModelFiles(std::shared_ptr<const Archive> file) : model(std::move(file)) {}
};

/// Maps the files and reads their directories. Throws Error{MissingInput, BadData}; of stages all that cannot be
/// opened.
ModelFiles open_model_files(const Plan& plan);

/// The files' names in the order of the stages, each once, for people.
std::string file_names(const Plan& plan);

}  // namespace vpp
