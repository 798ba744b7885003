#pragma once
// Before the first batch: rank 0's program reaches every rank, and the ranks compare what could differ.
#include <functional>
#include <string>

#include "comm/transport.hpp"
#include "plan/plan.hpp"
#include "program/prepare.hpp"

namespace vpp {

/// What decides bits besides the program: build and machine. Compared between ranks, kept in checkpoints.
struct NumericEnvironment {
    std::string torch_version;
    std::string cpu_capability;  ///< "AVX512"
    int threads = 1;             ///< intra-op
    std::string device;          ///< device_text of device/device.hpp; empty: the CPU
    std::string text() const;
};
NumericEnvironment numeric_environment(const Plan& plan, at::Device device = at::kCPU);

/// Sets LibTorch's thread counts for this process: intra-op as the plan says.
void set_threads(const Plan& plan);

/// Rules of the plan that need the model, the data and the optimizer: groups that match no parameter that is trained,
/// epochs that total_steps refuses. Throws Error{Plan}; and Error{BadData} where a step would train nothing though
/// parameters are to be trained.
void check_model_rules(const Plan& plan, const Program& program);

/// Rank 0 prepares, the others get its program and open the model themselves; plan, data and numeric environment are
/// compared. What is run will compute on `device`, this rank's. When rank 0 fails, every rank throws that error.
/// Calls:  collective.
/// Throws: what prepare throws; Error{RanksDisagree}.
Prepared agree_on_program(Transport& transport, const Plan& plan, const Datasets& data, at::Device device = at::kCPU);
/// The same for a program that `make` prepares; called on rank 0 only.
Prepared agree_on_program(Transport& transport, const Plan& plan, const Datasets& data,
                          const std::function<Prepared()>& make, at::Device device = at::kCPU);

}  // namespace vpp
