// Optimal contiguous partition: least maximum first, then fewest bytes, then earliest.
#include <algorithm>
#include <deque>
#include <limits>

#include "graph/split.hpp"

namespace vpp {

namespace {

constexpr int64_t kNoWay = std::numeric_limits<int64_t>::max();

/// Borders are 0, the positions, and the end; border b stands for an op index.
class Partition {
  public:
    explicit Partition(const PartitionProblem& problem) {
        borders_.push_back(0);
        bytes_.push_back(0);
        borders_.insert(borders_.end(), problem.positions.begin(), problem.positions.end());
        bytes_.insert(bytes_.end(), problem.cut_bytes.begin(), problem.cut_bytes.end());
        borders_.push_back(static_cast<int>(problem.costs.size()));
        bytes_.push_back(0);
        prefix_.assign(1, 0);
        for (double cost : problem.costs) prefix_.push_back(prefix_.back() + cost);
    }

    std::vector<int> solve(int num_parts) const {
        if (num_parts > num_borders() - 1) return {};
        return cheapest_cuts(num_parts, least_maximum(num_parts));
    }

  private:
    int num_borders() const { return static_cast<int>(borders_.size()); }
    double cost(int from, int to) const {
        return prefix_[static_cast<size_t>(borders_[static_cast<size_t>(to)])] -
               prefix_[static_cast<size_t>(borders_[static_cast<size_t>(from)])];
    }

    /// least[b]: the least maximum over `parts` parts of what lies before border b. As b's last part begins later, that
    /// part gets cheaper and the rest dearer, so the best beginning is where they cross.
    double least_maximum(int num_parts) const {
        const double none = std::numeric_limits<double>::infinity();
        std::vector<double> least(borders_.size(), none);
        for (int b = 1; b < num_borders(); ++b) least[static_cast<size_t>(b)] = cost(0, b);
        for (int parts = 2; parts <= num_parts; ++parts) {
            std::vector<double> next(borders_.size(), none);
            for (int b = parts; b < num_borders(); ++b) {
                int low = parts - 1, high = b - 1;  // the first beginning where the rest is at least as dear
                while (low < high) {
                    const int middle = (low + high) / 2;
                    if (least[static_cast<size_t>(middle)] >= cost(middle, b))
                        high = middle;
                    else
                        low = middle + 1;
                }
                double best = std::max(least[static_cast<size_t>(low)], cost(low, b));
                if (low > parts - 1)
                    best = std::min(best, std::max(least[static_cast<size_t>(low - 1)], cost(low - 1, b)));
                next[static_cast<size_t>(b)] = best;
            }
            least = std::move(next);
        }
        return least.back();
    }

    /// Walks back from the end: rest[b] is the fewest bytes to cut what lies behind border b into so many parts, each
    /// within the limit. Then the earliest cuts are read off from the front.
    std::vector<int> cheapest_cuts(int num_parts, double limit) const {
        std::vector<std::vector<int64_t>> rest(static_cast<size_t>(num_parts) + 1,
                                               std::vector<int64_t>(borders_.size(), kNoWay));
        rest[0].back() = 0;
        std::vector<std::vector<int>> next(1);
        for (size_t parts = 1; parts <= static_cast<size_t>(num_parts); ++parts) {
            next.push_back(best_ends(rest[parts - 1], limit, rest[parts]));
        }
        std::vector<int> cuts;
        int border = 0;
        for (int parts = num_parts; parts > 1; --parts) {
            border = next[static_cast<size_t>(parts)][static_cast<size_t>(border)];
            cuts.push_back(borders_[static_cast<size_t>(border)]);
        }
        return cuts;
    }

    /// For every border the earliest end of a part that begins there with the fewest bytes over it and behind it, and
    /// these bytes in `total`. What a part may reach moves forward with its beginning, so one walk is enough: `waiting`
    /// holds the ends in reach that no later one beats, the best in front.
    std::vector<int> best_ends(const std::vector<int64_t>& rest, double limit, std::vector<int64_t>& total) const {
        const auto bytes_at = [&](int to) { return rest[static_cast<size_t>(to)] + bytes_[static_cast<size_t>(to)]; };
        std::vector<int> ends(borders_.size(), -1);
        std::deque<int> waiting;
        for (int from = 0, to = 1; from < num_borders() - 1; ++from) {
            for (to = std::max(to, from + 1); to < num_borders() && cost(from, to) <= limit; ++to) {
                if (rest[static_cast<size_t>(to)] == kNoWay) continue;
                while (!waiting.empty() && bytes_at(waiting.back()) > bytes_at(to)) waiting.pop_back();
                waiting.push_back(to);
            }
            while (!waiting.empty() && waiting.front() <= from) waiting.pop_front();
            if (waiting.empty()) continue;
            ends[static_cast<size_t>(from)] = waiting.front();
            total[static_cast<size_t>(from)] = bytes_at(waiting.front());
        }
        return ends;
    }

    std::vector<int> borders_;
    std::vector<int64_t> bytes_;
    std::vector<double> prefix_;
};

}  // namespace

std::vector<int> min_max_partition(const PartitionProblem& problem, int num_parts) {
    return Partition(problem).solve(num_parts);
}

}  // namespace vpp
