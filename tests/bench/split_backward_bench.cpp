// What a backward in two halves costs: I + W of the middle of three stages over its B, in pairs, the same microbatch.
//
//     vpp_split_backward_bench ROUNDS PLAN...
//
// Prints for each model the medians and (I + W) / B with its range.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "app/registries.hpp"
#include "base/error.hpp"
#include "bench/timing.hpp"
#include "engine/loader.hpp"
#include "graph/split.hpp"
#include "plan/reader.hpp"
#include "stage/segment.hpp"
#include "support/pipeline.hpp"

namespace vpp::test {
namespace {

using Clock = std::chrono::steady_clock;
using bench::median;

constexpr int kMiddle = 1;

double milliseconds(const std::function<void()>& call) {
    const Clock::time_point start = Clock::now();
    call();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Three stages in one process, microbatch 0 again and again.
class ThreeStages {
  public:
    explicit ThreeStages(Rig& rig)
        : rig_(rig),
          split_(make_stages(rig.graph(), find_split(rig.graph(), rig.plan, 3))),
          loader_(*rig.data.training, rig.graph()) {
        weights_.load(*rig.prepared.sources.training, split_, {0, 1, 2});
        for (int i = 0; i < 3; ++i) {
            stages_.push_back(std::make_unique<Segment>(rig.graph(), split_, i, *rig.prepared.sources.training,
                                                        weights_, SegmentOptions{}));
        }
    }

    /// Everything before the backward of the middle stage.
    void come_to_the_middle() {
        for (auto& stage : stages_) stage->begin_step();
        for (int i = 0; i < 3; ++i) forward(i);
        stages_[2]->backward(0);
        hand_back(2, /*tied=*/false);
        hand_back(2, /*tied=*/true);
    }

    double time_whole() {
        come_to_the_middle();
        const double time = milliseconds([&] { middle().backward(0); });
        finish();
        return time;
    }

    std::pair<double, double> time_halves() {
        come_to_the_middle();
        const double inputs = milliseconds([&] { middle().input_gradients(0); });
        const double weights = milliseconds([&] { middle().weight_gradients(0); });
        finish();
        return {inputs, weights};
    }

  private:
    Segment& middle() { return *stages_[kMiddle]; }

    void finish() {
        hand_back(kMiddle, false);
        hand_back(kMiddle, true);
        stages_[0]->backward(0);
    }

    void forward(int index) {
        Segment& now = *stages_[static_cast<size_t>(index)];
        std::vector<Draw> draws(static_cast<size_t>(rig_.prepared.program.microbatch_size));
        for (size_t i = 0; i < draws.size(); ++i) draws[i].sample = static_cast<int64_t>(i);
        for (int input : split_.segments[static_cast<size_t>(index)].inputs) {
            now.set_input(0, input, loader_.load(input, draws));
        }
        now.forward(0, 0);
        for (int id : now.io().exports) {
            const Edge& edge = split_.edges[static_cast<size_t>(id)];
            Segment& to = *stages_[static_cast<size_t>(edge.consumer)];
            if (edge.is_bundle()) {
                to.receive_values(0, edge, now.take_values(0, edge));
                continue;
            }
            const at::Tensor tensor = now.take_tensor(0, edge);
            to.receive_tensor(0, edge, tensor.detach(), tensor.requires_grad());
        }
    }

    void hand_back(int index, bool tied) {
        for (const Edge& edge : split_.edges) {
            if (edge.consumer != index || !edge.has_gradient || edge.is_tied() != tied) continue;
            at::Tensor gradient = stages_[static_cast<size_t>(index)]->take_gradient(0, edge);
            stages_[static_cast<size_t>(edge.gradient_to)]->add_gradient(0, edge, std::move(gradient));
        }
    }

    Rig& rig_;
    Split split_;
    Loader loader_;
    Weights weights_;
    std::vector<std::unique_ptr<Segment>> stages_;
};

void measure(const std::string& plan, int rounds) {
    Rig rig = set_up(load_plan(plan, {"mesh.pp=1", "pipeline.num_stages=1"}, registered_names()));
    ThreeStages stages(rig);
    stages.time_whole();  // caches, allocator
    std::vector<double> whole, inputs, weights, ratios;
    for (int i = 0; i < rounds; ++i) {
        whole.push_back(stages.time_whole());
        const auto [first, second] = stages.time_halves();
        inputs.push_back(first);
        weights.push_back(second);
        ratios.push_back((first + second) / whole.back());
    }
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    std::printf("%s: B %.2f ms, I %.2f ms, W %.2f ms, (I + W) / B %.3f (%.3f to %.3f, %d pairs)\n", plan.c_str(),
                median(whole), median(inputs), median(weights), median(ratios), *least, *most, rounds);
}

}  // namespace
}  // namespace vpp::test

int main(int argc, char** argv) {
    if (argc < 3) {
        std::cerr << "usage: vpp_split_backward_bench ROUNDS PLAN..." << std::endl;
        return 2;
    }
    try {
        for (int i = 2; i < argc; ++i) vpp::test::measure(argv[i], std::max(1, std::atoi(argv[1])));
        return 0;
    } catch (const vpp::Error& error) {
        std::cerr << error.what() << std::endl;
        return vpp::exit_code(error.kind());
    }
}
