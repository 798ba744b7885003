#pragma once
// Examples written into a folder, read as vpp reads them, and model files of a few lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "app/registries.hpp"
#include "base/error.hpp"
#include "examples/examples.hpp"
#include "graph/scripted_module.hpp"
#include "plan/reader.hpp"
#include "support/pipeline.hpp"
#include "unit/data/support.hpp"

namespace vpp::test {

/// The files of a made example in a folder of their own.
class MadeFolder {
  public:
    explicit MadeFolder(const MadeExample& made) {
        for (const ExampleFile& file : made.files) folder_.write(file.name, file.contents);
    }
    Plan plan(const std::vector<std::string>& set = {}) const {
        return load_plan(folder_.path("plan.toml"), set, registered_names());
    }
    /// The plan's data and its program.
    Rig rig(const std::vector<std::string>& set = {}) const { return set_up(plan(set)); }

  private:
    TemporaryFolder folder_;
};

inline MadeExample make(const std::string& name) {
    return example_of(name).make({name});
}

inline const std::string& contents_of(const MadeExample& made, const std::string& name) {
    for (const ExampleFile& file : made.files) {
        if (file.name == name) return file.contents;
    }
    throw std::out_of_range("the example has no file " + name);
}

/// A model file that is there already.
inline std::shared_ptr<const Archive> archive_of(const ScriptedModule& module) {
    const TemporaryFolder folder;
    return std::make_shared<const Archive>(folder.write("model.pt", model_file(module, 1)));
}

}  // namespace vpp::test
