#pragma once
// Plans as text and the words that the registries of later modules hold; for the tests of plan.
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/keys.hpp"

namespace vpp::test {

inline Names built_names() {
    return {{"tokens", "text", "arrays", "idx", "cifar10", "synthetic"},
            {"cross_entropy", "mse", "nll", "bce_with_logits", "l1"},
            {"MANUAL", "UNIFORM", "PARAMETERS", "FLOPS", "AUTO"},
            {"GPIPE", "1F1B", "EAGER_1F1B", "INTERLEAVED_1F1B", "LOOPED_BFS", "ZERO_BUBBLE_H1", "ZERO_BUBBLE_H2",
             "ZERO_BUBBLE_GREEDY", "INTERLEAVED_ZERO_BUBBLE", "ZERO_BUBBLE_V", "V_HALF", "V_MIN", "V_ADAPTIVE",
             "DUALPIPE_V", "CUSTOM", "AUTO"},
            {"adamw", "adam", "sgd"},
            {"constant", "linear", "cosine", "inverse_sqrt", "wsd", "step"},
            {"auto", "cpu"},
            {"auto", "mpi"}};
}

/// The shortest plan that is whole.
inline const std::string kShortPlan = R"([model]
file = "model.pt"
[data]
kind = "tokens"
train = ["train.bin"]
sequence_length = 128
)";

/// A plan that writes most sections.
inline const std::string kLongPlan = R"([model]
file = "../models/out/gpt.pt"
inputs = ["tokens", "targets"]
[data]
kind = "tokens"
train = ["a.bin", "/data/b.bin"]
val = ["val.bin"]
sequence_length = 64
token_dtype = "uint32"
[mesh]
threads = 2
[pipeline]
split_method = "MANUAL"
num_stages = 4
virtual_chunks = 2
split_points = ["b0", "b1", "b2", "b3"]
smallest_unsplittable_units = ["Block"]
schedule_type = "INTERLEAVED_1F1B"
num_microbatches = 8
[optimizer]
kind = "adamw"
lr = 3e-4
weight_decay = 0.1
clip_norm = 1
betas = [0.9, 0.95]
[[optimizer.group]]
match = ["*.bias", "*ln*"]
weight_decay = 0.0
[[optimizer.group]]
match = ["head.*"]
lr = 1e-5
[lr_schedule]
kind = "cosine"
warmup_steps = 20
[train]
steps = 200
global_batch_size = 32
eval_every = 50
[run]
dir = "runs/gpt"
[checkpoint]
every = 50
[report]
every = 10
)";

/// The error that `action` throws; a Bug error with the text "no error" when it throws none.
inline Error error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error;
    }
    return Error(ErrorKind::Bug, "no error");
}

/// Whether a text holds another.
inline bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace vpp::test
