// Drives a fuzz target without libFuzzer: FUZZ_TARGET SEED_FOLDER MUTATIONS runs every file of the folder, then that
// many inputs made from them by seeded edits: the same inputs on every machine. An exception or a crash is the finding.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/random.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr uint64_t kSeedLimitBytes = 4 << 20;

/// Makes inputs out of seeds: a few edits each, drawn from one keyed stream.
class Mutator {
  public:
    explicit Mutator(const std::vector<std::string>& seeds) : seeds_(seeds) {}

    std::string next() {
        std::string input = seeds_[draw(seeds_.size())];
        for (size_t edits = 1 + draw(8); edits > 0; --edits) edit(input);
        return input;
    }

  private:
    size_t draw(size_t bound) { return static_cast<size_t>(vpp::mix64(++count_) % std::max<size_t>(bound, 1)); }

    void edit(std::string& input) {
        const size_t at = draw(input.size() + 1);
        const size_t length = std::min(draw(16), input.size() - at);
        const std::string& other = seeds_[draw(seeds_.size())];
        const size_t from = draw(other.size() + 1);
        switch (draw(6)) {
            case 0:
                input.erase(at, length);
                break;
            case 1:
                input.insert(at, 1, static_cast<char>(draw(256)));
                break;
            case 2:
                input.insert(at, input.substr(at, length));
                break;
            case 3:
                input.insert(at, other.substr(from, draw(64)));
                break;
            case 4:
                if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << draw(8)));
                break;
            default:
                input.insert(at, 1, "[]{}\"'=.,#\n\\-0"[draw(14)]);
                break;
        }
    }

    const std::vector<std::string>& seeds_;
    uint64_t count_ = 0;
};

std::string current;  // the input that runs; written to a file when it is a finding

void run(const std::string& input) {
    current = input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::vector<std::string> read_seeds(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
    std::ranges::sort(paths);
    std::vector<std::string> seeds;
    for (const auto& path : paths) seeds.push_back(vpp::read_text_file(path, kSeedLimitBytes));
    return seeds;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: FUZZ_TARGET SEED_FOLDER MUTATIONS\n", stderr);
        return 2;
    }
    try {
        const std::vector<std::string> seeds = read_seeds(argv[1]);
        if (seeds.empty()) throw std::runtime_error("the seed folder is empty");
        for (const std::string& seed : seeds) run(seed);
        Mutator mutator(seeds);
        const long mutations = std::atol(argv[2]);
        for (long i = 0; i < mutations; ++i) run(mutator.next());
        std::printf("%zu seeds and %ld mutations passed\n", seeds.size(), mutations);
        return 0;
    } catch (const std::exception& error) {
        vpp::write_file_durably("fuzz_finding.bin", current);
        std::fprintf(stderr, "finding (input in fuzz_finding.bin): %s\n", error.what());
        return 1;
    }
}
