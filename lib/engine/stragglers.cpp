#include "engine/stragglers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/median.hpp"
#include "base/units.hpp"

namespace vpp {

Stragglers::Stragglers(size_t num_ranks) : ranks_(num_ranks) {}

std::vector<std::string> Stragglers::look(const std::vector<double>& busy_seconds) {
    check(busy_seconds.size() == ranks_.size(), "every rank has a time");
    std::vector<double> slowness;
    for (size_t i = 0; i < ranks_.size(); ++i) {
        const bool is_known = ranks_[i].usual.size() >= kLeastSteps;
        slowness.push_back(is_known ? busy_seconds[i] / median(ranks_[i].usual) : 1);
    }
    // One rank has only its past; of two the faster one is the measure. Where others became faster, a rank at its own
    // pace is no slower for it.
    const double common = ranks_.size() > 1 ? std::max(median(slowness), 1.0) : 1;
    std::vector<std::string> sentences;
    for (size_t i = 0; i < ranks_.size(); ++i) {
        Rank& rank = ranks_[i];
        const bool is_slow = slowness[i] * kSlowPace > common;
        rank.slow_steps = is_slow ? rank.slow_steps + 1 : 0;
        if (!is_slow) {
            rank.usual.push_back(busy_seconds[i]);
            if (rank.usual.size() > kMostSteps) rank.usual.pop_front();
        }
        const std::string name = "rank " + std::to_string(i);
        if (!rank.is_said && rank.slow_steps == rank.steps_to_say) {
            rank.is_said = true;
            sentences.push_back(name + " is slow: it computed " + fixed_text(1e3 * busy_seconds[i], 1) +
                                " ms in a step, " + fixed_text(slowness[i], 1) + " times its median, and so for " +
                                std::to_string(rank.slow_steps) + " steps; the whole job waits for it");
            rank.steps_to_say = std::min(2 * rank.steps_to_say, kMostSlowSteps);
        } else if (rank.is_said && !is_slow) {
            rank.is_said = false;
            sentences.push_back(name + " is back at its pace");
        }
    }
    return sentences;
}

}  // namespace vpp
