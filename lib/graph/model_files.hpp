#pragma once
// The files of a plan's model: one, or with mode = "MANUAL_EAGER" one per stage. A trace has one mode, so evaluation
// may have files of its own.
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
    std::shared_ptr<const ModelFiles> evaluation = {};   ///< what evaluation runs; null: these files, in eval mode

    ModelFiles() = default;
    /// One model, one file.
    ModelFiles(std::shared_ptr<const Archive> file) : model(std::move(file)) {}

    /// Those of a mode.
    const ModelFiles& in_mode(bool training) const { return training || !evaluation ? *this : *evaluation; }
    /// The file of a stage, or of the one model: -1, or a stage that names submodules of it.
    const std::shared_ptr<const Archive>& file_of(int stage) const;
    /// Whether evaluation runs another file there.
    bool has_two(int stage) const { return evaluation && evaluation->file_of(stage) != file_of(stage); }
};

/// Maps the files and reads their directories. Throws Error{MissingInput, BadData}; of stages all that cannot be
/// opened.
ModelFiles open_model_files(const Plan& plan);

/// The files' names, each once, for people: in the order of the stages, each with its twin for evaluation behind it.
std::string file_names(const Plan& plan);
/// Those of one mode.
std::string file_names(const ModelFiles& files);

}  // namespace vpp
