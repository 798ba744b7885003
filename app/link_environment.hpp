#pragma once
// What CUDA and NCCL read from the environment when they start, in a job whose ranks may send from card to card.
#include <string>

namespace vpp {

/// Sets it. Gives what was set and is not followed, as ranks could wait for each other then:
/// "CUDA_MODULE_LOADING=LAZY"; empty: nothing. To be called before CUDA starts.
std::string prepare_links();

/// What NCCL follows in place of vpp (overriding_nccl_variables), from the environment or the files that it reads when
/// it starts: "NCCL_MAX_CTAS=32, NCCL_COMM_ID=host:1"; empty: nothing.
std::string nccl_overrides();

}  // namespace vpp
