#pragma once
// What the tests of checkpoints share: a scratch folder, a small model state, damage.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "checkpoint/checkpoint.hpp"
#include "unit/base/errors.hpp"

namespace vpp::test {

namespace fs = std::filesystem;

/// A folder that is gone with the test.
class ScratchFolder {
  public:
    ScratchFolder() {
        std::string pattern = (fs::temp_directory_path() / "vpp-checkpoint-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) throw std::runtime_error("no scratch folder");
        path_ = pattern;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

/// Tensors that own their bytes; every byte is a function of (salt, tensor, position).
class SampleState {
  public:
    explicit SampleState(int salt) {
        add("model.h.0.weight", DType::F32, {3, 5}, salt);
        add("optimizer.h.0.weight.step", DType::I64, {}, salt + 1);
        add("model.mask", DType::Bool, {7}, salt + 2);
        add("model.empty", DType::F64, {0, 4}, salt + 3);
    }
    std::vector<TensorBytes> tensors(const std::string& suffix = "") const {
        std::vector<TensorBytes> views = views_;
        for (size_t i = 0; i < views.size(); ++i) {
            views[i].name += suffix;
            views[i].bytes = bytes_[i];
        }
        return views;
    }

  private:
    void add(const std::string& name, DType dtype, std::vector<int64_t> shape, int salt) {
        Bytes bytes(static_cast<size_t>(num_elements(shape)) * size_of(dtype));
        for (size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(salt * 31 + static_cast<int>(i) * 7);
        views_.push_back({name, dtype, std::move(shape), {}});
        bytes_.push_back(std::move(bytes));
    }
    std::vector<TensorBytes> views_;
    std::vector<Bytes> bytes_;
};

/// The state beside the tensors of a checkpoint of that step.
inline CheckpointState sample_state(int64_t step) {
    CheckpointState state;
    state.step = step;
    state.samples = step * 32;
    state.seed = 0xffffffffffffffffULL;
    state.plan = "[train]\nsteps = 200\nname = \"\xc3\xa9\"\n";
    state.facts = {{"model", "00ff"}, {"threads", "1"}};
    return state;
}

/// Saves a checkpoint of two shards.
inline fs::path save(CheckpointStore& store, int64_t step, const std::string& save_id, int salt) {
    store.begin(step, save_id);
    const SampleState state(salt);
    std::vector<ShardRecord> shards;
    for (int writer = 1; writer >= 0; --writer) {
        shards.push_back(store.write_shard(step, save_id, writer, state.tensors("." + std::to_string(writer))));
    }
    return store.commit(save_id, sample_state(step), shards);
}

/// Whether a checkpoint verifies and holds exactly the tensors that save wrote with that salt.
inline bool holds(const fs::path& checkpoint, int salt) {
    const CheckpointReader reader(checkpoint);
    reader.verify();
    const SampleState state(salt);
    for (const std::string suffix : {".0", ".1"}) {
        for (const TensorBytes& expected : state.tensors(suffix)) {
            const TensorBytes got = reader.tensor(expected.name, expected.dtype, expected.shape);
            if (!std::equal(got.bytes.begin(), got.bytes.end(), expected.bytes.begin(), expected.bytes.end())) {
                return false;
            }
        }
    }
    return reader.names().size() == 8;
}

inline std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// Runs a call in a child process without rights over other users' files; gives the exit code of its error, 0 for none.
inline int code_in_child(const std::function<void()>& call) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(1);
        const auto error = caught_error(call);
        ::_exit(error ? exit_code(error->kind()) : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The manifest of a checkpoint as a vpp of another version of the format would have written it.
inline void set_format_version(const fs::path& checkpoint, int version) {
    const fs::path path = checkpoint / "manifest.json";
    std::string text = read_file(path);
    const std::string key = "\"format_version\": ";
    text.replace(text.find(key) + key.size(), 1, std::to_string(version));
    const size_t digits = text.size() - 36;  // FORMAT.md
    text.replace(digits, 32, std::string(32, '0'));
    text.replace(digits, 32, to_hex(hash_text(text)));
    write_file(path, text);
}

}  // namespace vpp::test
