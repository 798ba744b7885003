// Counts what damage does:  vpp_corruption COUNT SEED
// A checkpoint, a model file and data files are damaged COUNT times at random (bits flipped, or cut off at the end; of
// data files only the headers, since values of data have no checksum), read as vpp reads them, and compared with what
// the whole files give. Found: vpp::Error before anything is used. Harmless: the same result. Wrong: another result,
// or an exception that nobody meant. Crashed: a signal, or ten seconds without an end. The same seed gives the same
// damage everywhere. The last two columns must be 0.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "checkpoint/checkpoint.hpp"
#include "data/dataset.hpp"
#include "data/npy_writer.hpp"
#include "graph/torchscript.hpp"
#include "support/tiny_models.hpp"

namespace {

namespace fs = std::filesystem;
using vpp::Digest;

constexpr unsigned kSecondsEach = 10;
enum class Outcome : uint8_t { None, Found, Harmless, Wrong, Crashed };
constexpr int kNumOutcomes = 5;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// A file that is damaged, and how much of its beginning may be.
struct Target {
    fs::path path;
    std::string good;
    size_t head_bytes;
};

/// What is damaged and how it is read.
struct Subject {
    std::string name;
    std::vector<Target> targets;
    std::function<Digest()> read;  ///< everything that comes out; throws vpp::Error for what is found

    void add(const fs::path& path, size_t head_bytes = ~size_t{0}) {
        std::string bytes = read_file(path);
        head_bytes = std::min(head_bytes, bytes.size());
        targets.push_back({path, std::move(bytes), head_bytes});
    }
};

/// Draws numbers below a bound; a pure function of the key.
class Dice {
  public:
    explicit Dice(uint64_t key) : key_(key) {}
    size_t draw(size_t bound) { return static_cast<size_t>(vpp::mix64(key_ + ++count_) % bound); }

  private:
    uint64_t key_;
    uint64_t count_ = 0;
};

/// One damage: which file, and its bytes.
struct Damage {
    const Target& target;
    std::string bytes;
};

Damage make_damage(const Subject& subject, uint64_t seed, size_t index) {
    Dice dice(vpp::combine_key(vpp::combine_key(seed, subject.name.size()), index));
    const Target& target = subject.targets[dice.draw(subject.targets.size())];
    Damage damage{target, target.good};
    if (dice.draw(5) == 0) {
        damage.bytes.resize(dice.draw(damage.bytes.size()));
        return damage;
    }
    for (size_t flips = dice.draw(4) == 0 ? 2 + dice.draw(7) : 1; flips > 0; --flips) {
        char& byte = damage.bytes[dice.draw(target.head_bytes)];
        byte = static_cast<char>(byte ^ (1 << dice.draw(8)));
    }
    return damage;
}

// ---- What is read

Digest read_checkpoint(const fs::path& folder) {
    vpp::CheckpointReader reader(folder);
    reader.verify();
    vpp::Hasher hasher;
    const vpp::CheckpointState& state = reader.manifest().state;
    hasher.add_text(std::to_string(state.step) + ' ' + std::to_string(state.samples) + ' ' +
                    std::to_string(state.seed));
    hasher.add_text(state.plan);
    for (const auto& [key, value] : state.facts) hasher.add_text(key + '=' + value);
    for (const std::string& name : reader.names()) {
        const vpp::TensorBytes tensor = reader.tensor(name);
        hasher.add_text(name + ' ' + std::string(vpp::name_of(tensor.dtype)) + vpp::shape_text(tensor.shape));
        hasher.add(tensor.bytes);
    }
    return hasher.digest();
}

Subject make_checkpoint(const fs::path& folder) {
    vpp::CheckpointStore store(folder);
    const std::vector<float> values{0.5F, -1.25F, 3e-8F, 7.0F, 11.0F, 13.0F};
    const auto bytes = std::as_bytes(std::span(values));
    store.begin(50, "corruption");
    std::vector<vpp::ShardRecord> shards;
    shards.push_back(store.write_shard(50, "corruption", 0,
                                       {{"model.a.weight", vpp::DType::F32, {2, 3}, bytes},
                                        {"optimizer.a.weight.exp_avg", vpp::DType::F32, {2, 3}, bytes}}));
    shards.push_back(store.write_shard(50, "corruption", 1, {{"model.b.bias", vpp::DType::F32, {6}, bytes}}));
    const vpp::CheckpointState state{50, 1600, 7, "[train]\nsteps = 100\n", {{"model", "abc"}, {"threads", "1"}}};
    const fs::path checkpoint = store.commit("corruption", state, std::move(shards));
    Subject subject{"checkpoint", {}, [checkpoint] { return read_checkpoint(checkpoint); }};
    for (const auto& entry : fs::directory_iterator(checkpoint)) subject.add(entry.path());
    std::ranges::sort(subject.targets, {}, &Target::path);
    return subject;
}

vpp::TorchScriptOptions model_options() {
    vpp::TorchScriptOptions options;
    options.fields = {{{"x", vpp::DType::F32, {8}}, {"y", vpp::DType::F32, {8}}}, 16};
    options.microbatch_size = 2;
    return options;
}

Subject make_model(const fs::path& folder) {
    const fs::path path = folder / "mlp.pt";
    vpp::test::save_tiny_model("mlp", path.string());
    const size_t num_parameters =
        vpp::load_torchscript(std::make_shared<const vpp::Archive>(path), model_options()).graph.parameters.size();
    Subject subject{"model", {}, [path, num_parameters] {
                        Digest digest;
                        const auto source =
                            vpp::open_torchscript(std::make_shared<const vpp::Archive>(path), model_options(), digest);
                        vpp::Hasher hasher;
                        hasher.add_text(vpp::to_hex(digest));
                        for (size_t i = 0; i < num_parameters; ++i) {
                            const at::Tensor tensor = source->weight(static_cast<int>(i));
                            hasher.add({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
                        }
                        return hasher.digest();
                    }};
    subject.add(path);
    return subject;
}

Digest read_data(const vpp::Plan& plan) {
    const auto dataset = vpp::open_dataset(plan, vpp::Subset::Train);
    vpp::Hasher hasher;
    const vpp::Fields& fields = dataset->fields();
    hasher.add_text(std::to_string(fields.num_samples));
    for (size_t i = 0; i < fields.fields.size(); ++i) {
        const vpp::Field& field = fields.fields[i];
        hasher.add_text(field.name + ' ' + std::string(vpp::name_of(field.dtype)) + vpp::shape_text(field.shape));
        std::vector<std::byte> sample(static_cast<size_t>(field.bytes_per_sample()));
        for (int64_t s = 0; s < fields.num_samples; ++s) {
            dataset->read(s, static_cast<int>(i), sample);
            hasher.add(sample);
        }
    }
    return hasher.digest();
}

/// Two .npy files and llm.c's two kinds of token files.
Subject make_data(const fs::path& folder) {
    vpp::Plan arrays, tokens;
    arrays.data.kind = "arrays";
    const std::vector<float> images(64, 0.25F);
    const std::vector<int64_t> labels{3, 1, 2, 0};
    const auto add_array = [&](const std::string& field, vpp::DType dtype, const std::vector<int64_t>& shape,
                               std::span<const std::byte> values) {
        const fs::path path = folder / (field + ".npy");
        write_file(path, vpp::npy_header(dtype, shape) +
                             std::string(reinterpret_cast<const char*>(values.data()), values.size()));
        arrays.data.train_fields.emplace_back(field, path);
    };
    add_array("image", vpp::DType::F32, {4, 16}, std::as_bytes(std::span(images)));
    add_array("label", vpp::DType::I64, {4}, std::as_bytes(std::span(labels)));
    tokens.data.kind = "tokens";
    tokens.data.sequence_length = 8;
    const auto add_tokens = [&](const std::string& name, std::array<int32_t, 3> head, size_t token_bytes) {
        std::array<int32_t, 256> header{};
        std::ranges::copy(head, header.begin());
        std::string bytes(reinterpret_cast<const char*>(header.data()), sizeof header);
        for (int32_t token = 0; token < head[2]; ++token) {
            bytes.append(reinterpret_cast<const char*>(&token), token_bytes);
        }
        write_file(folder / name, bytes);
        tokens.data.train.push_back(folder / name);
    };
    add_tokens("two.bin", {20240520, 1, 50}, 2);
    add_tokens("four.bin", {20240801, 7, 40}, 4);
    Subject subject{"data headers", {}, [arrays, tokens] {
                        vpp::Hasher hasher;
                        hasher.add_text(vpp::to_hex(read_data(arrays)) + vpp::to_hex(read_data(tokens)));
                        return hasher.digest();
                    }};
    constexpr size_t kNpyHeaderBytes = 128, kTokenHeaderBytes = 1024;
    for (const char* name : {"image.npy", "label.npy"}) subject.add(folder / name, kNpyHeaderBytes);
    // Most of an llm.c header is unused zeros: half of the damage hits what is read.
    for (const char* name : {"two.bin", "four.bin"}) {
        subject.add(folder / name, kTokenHeaderBytes);
        subject.add(folder / name, 3 * sizeof(int32_t));
    }
    return subject;
}

// ---- The guard

/// One outcome for every damage, shared with the children.
class Outcomes {
  public:
    explicit Outcomes(size_t count) : count_(count) {
        void* memory = ::mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
        data_ = static_cast<volatile Outcome*>(memory);
    }
    ~Outcomes() { ::munmap(const_cast<Outcome*>(data_), count_); }
    Outcomes(const Outcomes&) = delete;
    Outcomes& operator=(const Outcomes&) = delete;
    volatile Outcome& operator[](size_t i) const { return data_[i]; }
    size_t size() const { return count_; }

  private:
    volatile Outcome* data_ = nullptr;
    size_t count_;
};

Outcome outcome_of(const Subject& subject, const Digest& expected) {
    try {
        return subject.read() == expected ? Outcome::Harmless : Outcome::Wrong;
    } catch (const vpp::Error& error) {
        return error.kind() == vpp::ErrorKind::Bug ? Outcome::Wrong : Outcome::Found;
    } catch (const std::exception&) {
        return Outcome::Wrong;
    }
}

/// Runs damages from `first` on until the end or a crash, in a child.
void run_child(const Subject& subject, const Digest& expected, uint64_t seed, size_t first, const Outcomes& outcomes) {
    for (const Target& target : subject.targets) write_file(target.path, target.good);
    for (size_t i = first; i < outcomes.size(); ++i) {
        const Damage damage = make_damage(subject, seed, i);
        ::alarm(kSecondsEach);
        write_file(damage.target.path, damage.bytes);
        outcomes[i] = outcome_of(subject, expected);
        write_file(damage.target.path, damage.target.good);
    }
    std::fflush(nullptr);
    ::_exit(0);
}

/// Runs all damages; a child that dies costs the one that it was at.
void run(const Subject& subject, uint64_t seed, const Outcomes& outcomes) {
    const Digest expected = subject.read();
    size_t next = 0;
    while (next < outcomes.size()) {
        const pid_t pid = ::fork();
        if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
        if (pid == 0) run_child(subject, expected, seed, next, outcomes);
        int status = 0;
        ::waitpid(pid, &status, 0);
        while (next < outcomes.size() && outcomes[next] != Outcome::None) ++next;
        if (next == outcomes.size()) break;
        outcomes[next++] = Outcome::Crashed;
    }
}

/// Says where it went wrong, so that it can be repeated: the damaged file is kept.
void keep(const Subject& subject, uint64_t seed, size_t index, const char* what) {
    const Damage damage = make_damage(subject, seed, index);
    const std::string name = "corruption_" + subject.name + "_" + std::to_string(index) + ".bin";
    write_file(name, damage.bytes);
    std::printf("  %s: %s, damage %zu of %s; kept as %s\n", what, subject.name.c_str(), index,
                damage.target.path.filename().c_str(), name.c_str());
}

/// The counting must be able to see: 64 bytes without a checksum give other results, and a read that dies dies.
void check_counting(const fs::path& folder) {
    const fs::path path = folder / "control";
    write_file(path, std::string(64, 'x'));
    Subject control{"control", {}, [path] {
                        const std::string bytes = read_file(path);
                        if (bytes.size() == 64 && bytes.find('x') != 0) std::abort();
                        return vpp::hash_text(bytes);
                    }};
    control.add(path);
    const Outcomes outcomes(500);
    run(control, 1, outcomes);
    std::array<size_t, kNumOutcomes> counts{};
    for (size_t i = 0; i < outcomes.size(); ++i) ++counts[static_cast<size_t>(outcomes[i])];
    if (counts[1] > 0 || counts[3] < 400 || counts[4] == 0) throw std::runtime_error("it cannot count");
}

int count_all(size_t count, uint64_t seed, const fs::path& folder) {
    const std::array<Subject, 3> subjects{make_checkpoint(folder), make_model(folder), make_data(folder)};
    check_counting(folder);
    std::printf("%-14s %10s %10s %10s %10s %10s\n", "damaged", "times", "found", "harmless", "wrong", "crashed");
    std::array<size_t, kNumOutcomes> sums{};
    for (size_t s = 0; s < subjects.size(); ++s) {
        const Outcomes outcomes((count + subjects.size() - 1 - s) / subjects.size());
        std::fflush(nullptr);
        run(subjects[s], seed, outcomes);
        std::array<size_t, kNumOutcomes> counts{};
        for (size_t i = 0; i < outcomes.size(); ++i) {
            const Outcome outcome = outcomes[i];
            ++counts[static_cast<size_t>(outcome)];
            if (outcome == Outcome::Wrong) keep(subjects[s], seed, i, "wrong");
            if (outcome == Outcome::Crashed) keep(subjects[s], seed, i, "crashed");
        }
        std::printf("%-14s %10zu %10zu %10zu %10zu %10zu\n", subjects[s].name.c_str(), outcomes.size(), counts[1],
                    counts[2], counts[3], counts[4]);
        for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
    }
    std::printf("%-14s %10zu %10zu %10zu %10zu %10zu\n", "all", count, sums[1], sums[2], sums[3], sums[4]);
    return sums[3] + sums[4] == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: vpp_corruption COUNT SEED\n", stderr);
        return 2;
    }
    const fs::path folder = fs::temp_directory_path() / ("vpp_corruption_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    int code = 1;
    try {
        code = count_all(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10), folder);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "corruption: %s\n", error.what());
    }
    fs::remove_all(folder);
    return code;
}
