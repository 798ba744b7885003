#pragma once
// Programs by hand: a plan in text, then any cuts, any placement and any order of actions, run in this process with
// ranks as threads; and transports that damage what they carry, for negative controls.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/in_process.hpp"
#include "comm/passing_transport.hpp"
#include "engine/engine.hpp"
#include "engine/verify.hpp"
#include "plan/plan.hpp"
#include "program/prepare.hpp"
#include "support/far_device.hpp"

namespace vpp::test {

/// A test rig: a plan with its data and its one-stage program.
struct Rig {
    Plan plan;
    Datasets data;
    Prepared prepared;

    const Graph& graph() const { return prepared.program.training.graph; }
    /// The ops before which the model may be cut.
    std::vector<int> legal_cuts() const;
};

/// A plan for a model file with synthetic data: 3 microbatches of 2 samples, AdamW with decay, clipped.
/// `more` is appended; `set` are --set arguments.
std::string plan_text(const std::string& model_file, const std::string& fields, const std::string& more = "");
/// For the world that the plan names; sets LibTorch's threads.
Rig set_up(Plan plan);
/// Requires: input paths of the text are absolute.
Rig set_up(const std::string& text, const std::vector<std::string>& set = {});
/// --set arguments for so many replicas of 3 microbatches of 2 samples; buckets are small, so that there are several.
std::vector<std::string> with_replicas(int num_replicas, bool zero1 = false);
/// The set-up of a tiny model whose file is written to `folder`.
Rig set_up_tiny(const std::string& name, const std::string& folder, const std::vector<std::string>& set = {});

/// All forwards, then all backwards, stage by stage, on any placement.
Schedule plain_schedule(const std::vector<int>& rank_of_stage, int num_microbatches);
/// A random order that can run: forwards of a stage in microbatch order, backwards in any, some of them split into I
/// and W with anything between.
Schedule random_schedule(const std::vector<int>& rank_of_stage, int num_microbatches, uint64_t seed);

/// The program cut before these ops, with this order of computing actions and as many replicas as it had; lowered and
/// proven.
Program cut_program(const Program& program, const std::vector<int>& cuts, const Schedule& compute,
                    const std::vector<OpRange>& recomputed = {});
/// Random ranges of ops with legal borders, each inside one stage.
std::vector<OpRange> random_ranges(const Graph& graph, const std::vector<int>& cuts, uint64_t seed);

/// Runs `steps` steps on as many threads as the program has ranks; all share the set-up's sources.
RunRecord run_program(Rig& setup, const Program& program, int64_t steps, InProcessOptions options = {},
                      const AfterStep& after_step = {});
/// The same with a transport of one's own between engine and world.
using WrapTransport = std::function<std::unique_ptr<Transport>(Transport&)>;
RunRecord run_wrapped(Rig& setup, const Program& program, int64_t steps, const WrapTransport& wrap);
/// The one-stage run.
RunRecord run_reference(Rig& setup, int64_t steps);

/// Runs `body` on every rank of a world with an engine for the program.
void with_engines(Rig& setup, const Program& program, const std::function<void(Engine&)>& body,
                  InProcessOptions options = {});

}  // namespace vpp::test
