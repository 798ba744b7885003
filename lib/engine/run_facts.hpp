#pragma once
// What makes a run this run: facts that a checkpoint holds and that a resumed run is compared with.
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

class Engine;

/// By name: model, data, batch, seed, optimizer, learning rates, numeric environment; and by their plan keys those that
/// say what a sample is and when it comes.
std::map<std::string, std::string> facts_of(const Plan& plan, const Program& program, at::Device device = at::kCPU);

/// The same of a training, and how long it is.
std::map<std::string, std::string> training_facts(const Plan& plan, const Program& program, const Engine& engine);

/// What a checkpoint says of a fact. One that is older than a plan key has what a plan without that key means.
std::optional<std::string> fact_of(const CheckpointState& saved, const std::string& name);

/// Compares the facts that both have. Differences that allow other bits go to the log, numbers of lists by their plan
/// keys. Another number of steps is one only where the finished steps would have had other learning rates. Other
/// validation data make no other run: that is said.
/// Throws: Error{Refused} naming both values of each fact whose change makes it another run.
void compare_facts(const CheckpointState& saved, const std::map<std::string, std::string>& now,
                   const std::filesystem::path& folder, const Logger& log);

}  // namespace vpp
