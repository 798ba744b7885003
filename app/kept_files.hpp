#pragma once
// What a command must not write over: its plan with all that the plan names, and what a run folder holds. Cost files
// and schedules are none, since commands make them.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

/// A file that must stay, or a folder with all that lies in it.
struct KeptFile {
    std::string path;
    std::string what;  ///< "the plan"
};

/// A file that a command writes; without a name it is none.
struct NamedOutput {
    std::string option;
    std::string path;
};

/// The plan, the files of its model and its data, and its run folder's.
std::vector<KeptFile> files_of_plan(const Plan& plan);
/// What vpp reads in the folder of a run.
std::vector<KeptFile> files_of_run(const std::string& folder);

/// Throws: Error{CommandLine} where an output is one of the files, by whatever name.
void check_outputs(const std::vector<NamedOutput>& outputs, const std::vector<KeptFile>& kept);

}  // namespace vpp
