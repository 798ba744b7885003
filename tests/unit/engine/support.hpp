#pragma once
// What the tests of the engine share: plans with validation data in a folder of their own, state as digests, a log as
// text.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <sstream>

#include "base/hash.hpp"
#include "base/log.hpp"
#include "data/synthetic.hpp"
#include "support/pipeline.hpp"
#include "support/tiny_models.hpp"
#include "unit/data/support.hpp"

namespace vpp::test {

/// Digests by name of what a checkpoint of this rank would hold.
inline std::map<std::string, std::string> digests(const std::vector<StateTensor>& tensors) {
    std::map<std::string, std::string> found;
    for (const StateTensor& entry : tensors) {
        const at::Tensor plain = entry.tensor.cpu().contiguous();
        found[entry.name] = to_hex(hash_bytes({static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()}));
    }
    return found;
}

/// Turns bits of an element of a float tensor, wherever that is.
inline void flip_bits(const at::Tensor& tensor, int64_t element, uint32_t bits) {
    const at::Tensor changed = tensor.detach().cpu().clone();
    static_cast<uint32_t*>(changed.mutable_data_ptr())[element] ^= bits;
    tensor.detach().copy_(changed);
}

/// A .npy file of `samples` bell-shaped vectors of 8; `first` is the number of the first sample.
inline std::string write_vectors(const TemporaryFolder& folder, const std::string& name, int64_t samples,
                                 int64_t first) {
    std::vector<float> values;
    for (int64_t i = 0; i < samples * 8; ++i) {
        values.push_back(static_cast<float>(synthetic_normal(synthetic_bits(first + i / 8, 7, i % 8))));
    }
    return folder.write(name, npy("<f4", "(" + std::to_string(samples) + ", 8)", raw(values)));
}

/// The plan of a tiny model that eats vectors, with 12 samples in files, in their order: step 1 has samples 0 to 5,
/// three microbatches of two. The values of sample `poisoned` are not numbers.
inline std::string plan_with_vectors(const TemporaryFolder& folder, const std::string& model, int64_t poisoned = -1) {
    save_tiny_model(model, folder.path(model + ".pt"));
    std::vector<float> values(size_t{12 * 8});
    for (size_t i = 0; i < values.size(); ++i) {
        const auto sample = static_cast<int64_t>(i / 8);
        values[i] = sample == poisoned ? std::numeric_limits<float>::quiet_NaN()
                                       : static_cast<float>(synthetic_normal(synthetic_bits(sample, 7, i % 8)));
    }
    return "[model]\nfile = \"" + folder.path(model + ".pt") +
           "\"\n[data]\nkind = \"arrays\"\nshuffle = false\n[data.train]\nx = \"" +
           folder.write("px.npy", npy("<f4", "(12, 8)", raw(values))) + "\"\ny = \"" +
           write_vectors(folder, "py.npy", 12, 100) +
           "\"\n[mesh]\npp = 1\n[pipeline]\nnum_microbatches = 3\n[optimizer]\nlr = 0.01\n[train]\nsteps = 4\n"
           "global_batch_size = 6\n[run]\ndir = \"" +
           folder.path("run") + "\"\n";
}

/// The plan of a tiny model that eats vectors, with 12 training and `num_validation` validation samples in files.
inline std::string plan_with_validation(const TemporaryFolder& folder, const std::string& model,
                                        int64_t num_validation) {
    save_tiny_model(model, folder.path(model + ".pt"));
    return "[model]\nfile = \"" + folder.path(model + ".pt") + "\"\n[data]\nkind = \"arrays\"\n[data.train]\nx = \"" +
           write_vectors(folder, "x.npy", 12, 0) + "\"\ny = \"" + write_vectors(folder, "y.npy", 12, 100) +
           "\"\n[data.val]\nx = \"" + write_vectors(folder, "vx.npy", num_validation, 200) + "\"\ny = \"" +
           write_vectors(folder, "vy.npy", num_validation, 300) +
           "\"\n[mesh]\npp = 1\n[pipeline]\nnum_microbatches = 3\n[optimizer]\nlr = 0.01\nweight_decay = 0.1\n"
           "[train]\nsteps = 4\nglobal_batch_size = 6\n[run]\ndir = \"" +
           folder.path("run") + "\"\n";
}

/// A log whose lines a test reads.
struct TextLog {
    std::ostringstream text;
    Logger log = make_stream_logger(text);
};

}  // namespace vpp::test
