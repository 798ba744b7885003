#include "schedule/lower_bounds.hpp"

#include <algorithm>
#include <functional>

namespace vpp {

namespace {

class Bounds {
  public:
    explicit Bounds(const BoundedProblem& problem) : problem_(problem) {
        for (int s = 0; s < num_stages(); ++s) stages_.push_back(problem.costs.of_stage(s));
    }

    Ticks largest(SearchObjective objective) const {
        Ticks bound = forward_chain(num_stages()) + backward_chain(num_stages());
        for (int rank = 0; rank < problem_.num_ranks; ++rank) {
            const std::vector<int> own = stages_of(rank);
            if (own.empty()) continue;
            const Ticks idle = least_idle(own), work = work_of(own), held = held_time(own);
            const bool by_span = objective == SearchObjective::Span;
            bound = std::max(bound,
                             by_span ? std::max(work, held) : std::max(idle + work, forward_chain(own.front()) + held));
            if (own.front() > 0) bound = std::max(bound, idle + work - most_left(own) + backward_chain(own.front()));
        }
        return bound;
    }

  private:
    int num_stages() const { return static_cast<int>(problem_.rank_of_stage.size()); }
    const StageCosts& costs(int stage) const { return stages_[static_cast<size_t>(stage)]; }

    std::vector<int> stages_of(int rank) const {
        std::vector<int> own;
        for (int s = 0; s < num_stages(); ++s) {
            if (problem_.rank_of_stage[static_cast<size_t>(s)] == rank) own.push_back(s);
        }
        return own;
    }

    /// Between `stage` and the one above it.
    Ticks transfer(int stage) const {
        const auto s = static_cast<size_t>(stage);
        if (s + 1 >= problem_.rank_of_stage.size()) return 0;
        return problem_.rank_of_stage[s] == problem_.rank_of_stage[s + 1] ? 0 : problem_.costs.of_transfer(stage);
    }
    /// g
    Ticks gradient(int s) const {
        return problem_.splits_backward ? std::min(costs(s).input_gradient, costs(s).backward) : costs(s).backward;
    }
    /// b
    Ticks backward(int s) const {
        const Ticks both = costs(s).input_gradient + costs(s).weight_gradient;
        return problem_.splits_backward ? std::min(both, costs(s).backward) : costs(s).backward;
    }

    /// From time 0 until the F of the stages below `stage` are done and their value is there.
    Ticks forward_chain(int stage) const {
        Ticks chain = 0;
        for (int s = 0; s < stage; ++s) chain += costs(s).forward + transfer(s);
        return chain;
    }
    /// From the end of the backward of `stage` until those of all below it are done, weights of stage 0 included.
    Ticks backward_chain(int stage) const {
        Ticks chain = 0;
        for (int s = stage; s-- > 0;) chain += transfer(s) + (s == 0 ? backward(s) : gradient(s));
        return chain;
    }
    /// Until the gradient for the first backward of `stage` is there.
    Ticks first_gradient(int stage) const {
        Ticks chain = forward_chain(num_stages());
        for (int s = num_stages() - 1; s > stage; --s) chain += gradient(s) + transfer(s - 1);
        return chain;
    }

    Ticks work_of(const std::vector<int>& own) const {
        Ticks work = 0;
        for (int s : own) {
            const Ticks beside = costs(s).forward * problem_.costs.overlap_percent / 100;
            work += problem_.num_microbatches * (costs(s).forward - beside + backward(s));
        }
        return work;
    }

    Ticks least_idle(const std::vector<int>& own) const {
        const Ticks most_forwards = dearest(own, [&](int s) { return costs(s).forward; });
        return std::max(forward_chain(own.front()), first_gradient(own.back()) - most_forwards);
    }

    /// The least time in which the activations of a rank can be held one beside the other.
    Ticks held_time(const std::vector<int>& own) const {
        if (problem_.most_held <= 0) return 0;
        Ticks sum = 0;
        for (int s : own) sum += first_gradient(s) - forward_chain(s) + backward(s);
        const Ticks all = problem_.num_microbatches * sum;
        return all / problem_.most_held + (all % problem_.most_held > 0 ? 1 : 0);
    }

    Ticks most_left(const std::vector<int>& own) const {
        return problem_.splits_backward ? dearest(own, [&](int s) { return backward(s) - gradient(s); }) : 0;
    }

    /// The largest sum over `most_held` pairs of a stage and a microbatch.
    Ticks dearest(const std::vector<int>& own, const std::function<Ticks(int)>& cost_of) const {
        std::vector<Ticks> costs_of_stages;
        for (int s : own) costs_of_stages.push_back(cost_of(s));
        std::sort(costs_of_stages.rbegin(), costs_of_stages.rend());
        Ticks sum = 0;
        int left = problem_.most_held;
        for (Ticks cost : costs_of_stages) {
            const int count = std::min(left, problem_.num_microbatches);
            sum += count * cost;
            left -= count;
        }
        return sum;
    }

    const BoundedProblem& problem_;
    std::vector<StageCosts> stages_;
};

}  // namespace

Ticks lower_bound_of(const BoundedProblem& problem, SearchObjective objective) {
    return Bounds(problem).largest(objective);
}

}  // namespace vpp
