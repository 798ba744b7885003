#pragma once
// What a user asks of an evaluation; plain values.
#include <cstdint>
#include <string>

namespace vpp {

struct EvaluationRequest {
    std::string checkpoint;        ///< a checkpoint's folder; empty = the newest of run.dir
    bool initial_weights = false;  ///< those of the model file instead
    int64_t batches = 0;           ///< 0 = train.eval_batches; when that is 0 too, all
    bool drop_last = false;        ///< leave out samples at the end that fill no microbatch
    std::string outputs;           ///< folder for the model's outputs; empty = none are written
    bool overwrite = false;        ///< outputs that are there already
};

}  // namespace vpp
