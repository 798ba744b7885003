// Runs every legal cut of a model and compares with the uncut run, bit by bit: losses, norms, gradients, parameters,
// buffers and optimizer state after each of three steps of three microbatches.
//
//     vpp_cuts tiny:NAME | PLAN  [--every K] [--three N] [--max-refused SHARE] [--seed S] [KEY=VALUE ...]
//
// Each cut runs on two ranks with messages and on one rank with hand-overs, in a random order of actions that follows
// from the seed and the cut; in two of three runs random ranges are recomputed; messages are late in every second run.
// --three adds a sample of cuts into three stages. Exit code: 0 all equal, 1 something differs or too much is refused,
// else the code of the error.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>

#include "app/registries.hpp"
#include "base/error.hpp"
#include "plan/reader.hpp"
#include "support/pipeline.hpp"
#include "support/tiny_models.hpp"

namespace vpp::test {
namespace {

constexpr int64_t kSteps = 3;
constexpr int kMicrobatches = 3;

struct Options {
    std::string model;
    int every = 1;
    int three = 0;
    double max_refused = 1;
    uint64_t seed = 1;
    std::vector<std::string> set{"pipeline.num_microbatches=" + std::to_string(kMicrobatches)};
};

Options read_options(const std::vector<std::string>& arguments) {
    Options options;
    options.model = arguments.at(0);
    for (size_t i = 1; i < arguments.size(); ++i) {
        const std::string& word = arguments[i];
        if (word == "--every")
            options.every = std::stoi(arguments.at(++i));
        else if (word == "--three")
            options.three = std::stoi(arguments.at(++i));
        else if (word == "--max-refused")
            options.max_refused = std::stod(arguments.at(++i));
        else if (word == "--seed")
            options.seed = std::stoull(arguments.at(++i));
        else
            options.set.push_back(word);
    }
    return options;
}

Rig open_rig(const Options& options) {
    if (!options.model.starts_with("tiny:")) return set_up(load_plan(options.model, options.set, registered_names()));
    std::string folder = (std::filesystem::temp_directory_path() / "vpp_cuts_XXXXXX").string();
    if (!::mkdtemp(folder.data())) throw Error(ErrorKind::Output, "no temporary folder");
    Rig setup = set_up_tiny(options.model.substr(5), folder, options.set);
    std::filesystem::remove_all(folder);  // the archive is mapped and stays
    return setup;
}

class CutTest {
  public:
    CutTest(const Options& options, Rig& setup)
        : options_(options), setup_(setup), legal_(setup.legal_cuts()), reference_(run_reference(setup, kSteps)) {}

    bool run() {
        for (size_t i = 0; i < legal_.size(); i += static_cast<size_t>(options_.every)) {
            compare({legal_[i]}, {0, 1});
            compare({legal_[i]}, {0, 0});
        }
        const std::vector<std::vector<int>> placements{{0, 1, 2}, {0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1}};
        std::mt19937_64 random(options_.seed);
        for (int i = 0; i < options_.three && legal_.size() > 1; ++i) {
            const size_t a = random() % legal_.size(), b = random() % legal_.size();
            if (a == b) continue;
            compare({legal_[std::min(a, b)], legal_[std::max(a, b)]},
                    placements[static_cast<size_t>(i) % placements.size()]);
        }
        return report();
    }

  private:
    void compare(const std::vector<int>& cuts, const std::vector<int>& rank_of_stage) {
        const uint64_t seed = options_.seed * 1000003 + static_cast<uint64_t>(num_runs_);
        InProcessOptions world;
        world.seed = seed;
        world.delay_probability = seed % 2 ? 0.5 : 0;
        world.overlap = seed % 8 < 6;
        ++num_runs_;
        std::vector<OpRange> recomputed;
        try {
            const Schedule compute = random_schedule(rank_of_stage, kMicrobatches, seed);
            if (seed % 3 != 0) recomputed = random_ranges(setup_.graph(), cuts, seed);
            const Program program = cut_program(setup_.prepared.program, cuts, compute, recomputed);
            const VerifyResult result = compare_runs(reference_, run_program(setup_, program, kSteps, world));
            num_values_ += result.num_compared;
            if (!result.is_equal)
                say(cuts, rank_of_stage, recomputed,
                    "step " + std::to_string(result.different_step) + ": " + result.difference);
        } catch (const Error& error) {
            say(cuts, rank_of_stage, recomputed, error.what());
        }
    }

    void say(const std::vector<int>& cuts, const std::vector<int>& rank_of_stage,
             const std::vector<OpRange>& recomputed, const std::string& what) {
        if (++num_different_ > 20) return;
        std::cout << "  DIFFERENT";
        for (int cut : cuts) {
            const GraphOp& op = setup_.graph().ops[static_cast<size_t>(cut)];
            std::cout << " | cut before op " << cut << ", " << op.kind << " in '" << op.module << "'";
        }
        std::cout << " | ranks";
        for (int rank : rank_of_stage) std::cout << ' ' << rank;
        if (!recomputed.empty()) std::cout << " | recomputed";
        for (const OpRange& range : recomputed) std::cout << ' ' << range.begin << '-' << range.end;
        std::cout << " | " << what << std::endl;
    }

    bool report() const {
        const int num_cuts = setup_.graph().num_ops() - 1, num_refused = num_cuts - static_cast<int>(legal_.size());
        const double share = static_cast<double>(num_refused) / num_cuts;
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        std::printf("%s: %d ops, %zu cuts legal, %d refused (%.1f %%), %d runs, %lld values, %d different, %.1f s\n",
                    options_.model.c_str(), setup_.graph().num_ops(), legal_.size(), num_refused, 100 * share,
                    num_runs_, static_cast<long long>(num_values_), num_different_, seconds);
        for (const auto& [reason, count] : reasons_of_refusal()) std::printf("  %d: %s\n", count, reason.c_str());
        if (share > options_.max_refused)
            std::printf("  more cuts are refused than the %.1f %% allowed\n", 100 * options_.max_refused);
        return num_different_ == 0 && num_runs_ > 0 && share <= options_.max_refused;
    }

    std::map<std::string, int> reasons_of_refusal() const {
        std::map<std::string, int> counts;
        for (int op = 1; op < setup_.graph().num_ops(); ++op) {
            const GraphCut& cut = setup_.graph().cuts[static_cast<size_t>(op)];
            if (!cut.legal) ++counts[cut.reason];
        }
        return counts;
    }

    const Options& options_;
    Rig& setup_;
    std::vector<int> legal_;
    RunRecord reference_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    int num_runs_ = 0;
    int num_different_ = 0;
    int64_t num_values_ = 0;
};

}  // namespace
}  // namespace vpp::test

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: vpp_cuts tiny:NAME | PLAN [--every K] [--three N] [--max-refused SHARE] [--seed S] "
                     "[KEY=VALUE ...]"
                  << std::endl;
        return 2;
    }
    try {
        const vpp::test::Options options = vpp::test::read_options({argv + 1, argv + argc});
        vpp::test::Rig setup = vpp::test::open_rig(options);
        return vpp::test::CutTest(options, setup).run() ? 0 : 1;
    } catch (const vpp::Error& error) {
        std::cerr << error.what() << std::endl;
        return vpp::exit_code(error.kind());
    }
}
