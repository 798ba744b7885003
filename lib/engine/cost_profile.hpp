#pragma once
// Measured costs (program/cost_file.hpp): the model runs on this process's device with the plan's data and
// microbatches, once cut wherever it may be cut, so that every part is timed by itself, and once whole, which says what
// cutting adds; then as one stage behind the first cut that a gradient crosses, with B and with I and W, which says
// what dividing a backward adds.
#include <functional>
#include <span>
#include <vector>

#include "base/log.hpp"
#include "comm/transport.hpp"
#include "program/cost_file.hpp"
#include "program/prepare.hpp"

namespace vpp {

/// Microbatches of a pass; the first is not timed, since its gradients are made and not added up.
inline constexpr int kProfiledMicrobatches = 3;
/// Passes: the first ones are not timed; of the others at least so many, more while they are short.
inline constexpr int kWarmingPasses = 2, kFewestPasses = 5, kMostPasses = 40;
inline constexpr double kSecondsOfPasses = 2;
/// A model that may be cut more often is cut where its FLOPs are most even.
inline constexpr int kMostParts = 400;

/// What is assumed of a message where none was timed: a hop, and 5 GB/s.
inline constexpr double kUsualTransferMs = 0.02, kUsualTransferMsPerMebibyte = 0.2;

/// A message between two ranks, one way.
struct TransferTimes {
    double ms = kUsualTransferMs;
    double ms_per_mebibyte = kUsualTransferMsPerMebibyte;
    bool is_measured = false;
};

/// What was measured, and how.
struct CostProfile {
    CostFile file;        ///< without name and digest
    int num_passes = 0;   ///< timed, the fewest of all runs
    OpCosts whole;        ///< of the model in one piece, ms; the file's F and B add up to its
    double overhead = 0;  ///< ms that a cut adds to F and B of a microbatch, which the file's times are without
    TransferTimes transfers;
};

/// Every part's F, B, I and W, by the lower quartile of all passes. Weights are those of the model file; nothing is
/// updated or written. Takes the memory of the whole model with its gradients and one microbatch. Requires: a resolved
/// plan; LibTorch's threads are set.
/// Throws: what prepare and the engine throw; Error{OutOfMemory} where the model does not fit.
CostProfile profile_costs(const Plan& plan, const Datasets& data, at::Device device, const TransferTimes& transfers);

/// For the name of a part: the innermost submodule that all of its ops lie in, but for those of the model itself; the
/// first one's where nothing holds all.
std::string module_of(const Graph& graph, const OpRange& ops);

/// What a part takes without what timing it by itself adds: `whole` is what all took as one. The same is taken off
/// every part, but no more than it has; where parts took less than the whole they are scaled up. Gives: what was taken
/// off a part.
double settle_times(std::span<double> parts, double whole);

/// I and W of parts that take `backward` for their B: as much more as one stage takes for its halves, which starts the
/// pass twice and every op with weights in it. Never less than B: halves run each of its ops once, so where they were
/// quicker, the machine was. `stage`: of all of these parts, timed at one time.
void settle_halves(std::span<double> input_gradient, std::span<double> weight_gradient, double backward,
                   const OpCosts& stage);

/// Messages there and back between the first two ranks, by the lower quartile.
/// Calls: collective over the first two ranks of the transport, which has two at least.
TransferTimes time_transfers(Transport& transport);

/// The first two ranks time their messages, rank 0 profiles, the others wait. `keep`: what rank 0 does with the
/// profile. Calls: collective. Throws: on every rank what rank 0 met.
void profile_together(Transport& transport, const Plan& plan, const Datasets& data, at::Device device,
                      const std::function<void(const CostProfile&)>& keep);

/// Before the program of a training is agreed on: a plan that goes by costs and has no cost file gets one. Rank 0
/// profiles and writes it into the run folder, unless one is there that is of this model and microbatch. `claim`:
/// called on rank 0 before it measures; makes the run folder its own, or throws. Calls:  collective. Throws: on every
/// rank what rank 0 met.
void provide_costs(Transport& transport, const Plan& plan, const Datasets& data, at::Device device, const Logger& log,
                   const std::function<void()>& claim);

}  // namespace vpp
