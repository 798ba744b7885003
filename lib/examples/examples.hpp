#pragma once
// Examples to begin with: a commented plan, its model files and its data, all made by vpp itself, so that nothing is
// downloaded and no Python is needed. One example a file; the table of them is in examples.cpp.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/archive.hpp"

namespace vpp {

struct ExampleFile {
    std::string name;
    std::string contents;
};

/// What an example is made for.
struct ExampleRequest {
    std::string name;                                ///< of its folder; its run gets it too
    std::string model_path = {};                     ///< own-model: as the plan writes it, relative to the plan
    std::shared_ptr<const Archive> model = nullptr;  ///< own-model
};

struct MadeExample {
    std::vector<ExampleFile> files;       ///< the plan first: plan.toml
    std::vector<std::string> notes = {};  ///< what its reader should know, a line each
    std::string first = {};               ///< what is to be done before it can run; empty: nothing
};

struct Example {
    std::string name;
    std::string sentence;  ///< without a full stop
    bool reads_model;      ///< it is made for a model file
    /// Pure: the same request gives the same bytes on every machine.
    MadeExample (*make)(const ExampleRequest& request);
};

/// In the order of the help.
const std::vector<Example>& all_examples();

/// Throws Error{CommandLine} with the nearest name.
const Example& example_of(std::string_view name);

}  // namespace vpp
