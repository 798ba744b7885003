#include "graph/balance.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace vpp {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Borders are 0, the positions, and the end.
class Balancer {
  public:
    Balancer(const BalanceProblem& problem, int num_stages)
        : problem_(problem), num_stages_(static_cast<size_t>(num_stages)) {
        borders_.push_back(0);
        borders_.insert(borders_.end(), problem.positions.begin(), problem.positions.end());
        borders_.push_back(static_cast<int>(problem.times.size()));
        over_.push_back(0);
        over_.insert(over_.end(), problem.cut_times.begin(), problem.cut_times.end());
        over_.push_back(0);
        sums_.push_back(0);
        for (double time : problem.times) sums_.push_back(sums_.back() + time);
    }

    std::optional<Balance> solve() const {
        const size_t last = borders_.size() - 1;
        if (num_stages_ > last) return std::nullopt;
        const Table front = from_front(), back = from_back();
        Balance balance;
        balance.bottleneck = front[num_stages_][last];
        if (balance.bottleneck == kNever) return std::nullopt;
        const std::vector<size_t> chosen = evenest(balance.bottleneck);
        for (size_t border : chosen) balance.cuts.push_back(borders_[border]);
        balance.lower_bound = lower_bound();
        double next = kNever;
        for (size_t k = 1; k < num_stages_; ++k) {
            for (size_t border = 1; border < last; ++border) {
                if (border == chosen[k - 1]) continue;
                next = std::min(next, std::max(front[k][border], back[num_stages_ - k][border]));
            }
        }
        if (next < kNever) balance.next_best = next;
        return balance;
    }

  private:
    /// By number of stages, then by border.
    using Table = std::vector<std::vector<double>>;

    double ops_between(size_t from, size_t to) const {
        return sums_[static_cast<size_t>(borders_[to])] - sums_[static_cast<size_t>(borders_[from])];
    }

    double time_of(size_t stage, size_t from, size_t to) const {
        if (problem_.fits && !problem_.fits(static_cast<int>(stage), borders_[from], borders_[to])) return kNever;
        return ops_between(from, to) + over_[from] + over_[to];
    }

    Table no_table() const { return Table(num_stages_ + 1, std::vector<double>(borders_.size(), kNever)); }

    /// Entry [k][b]: the least bottleneck of k stages that end at border b.
    Table from_front() const {
        Table least = no_table();
        least[0][0] = 0;
        for (size_t k = 1; k <= num_stages_; ++k) {
            for (size_t to = k; to < borders_.size(); ++to) {
                for (size_t from = k - 1; from < to; ++from) {
                    if (least[k - 1][from] >= least[k][to]) continue;
                    least[k][to] = std::min(least[k][to], std::max(least[k - 1][from], time_of(k - 1, from, to)));
                }
            }
        }
        return least;
    }

    /// Entry [k][b]: the least bottleneck of the last k stages, which begin at border b.
    Table from_back() const {
        Table least = no_table();
        const size_t last = borders_.size() - 1;
        least[0][last] = 0;
        for (size_t k = 1; k <= num_stages_; ++k) {
            for (size_t from = 0; from + k <= last; ++from) {
                for (size_t to = from + 1; to + k - 1 <= last; ++to) {
                    if (least[k - 1][to] >= least[k][from]) continue;
                    least[k][from] =
                        std::min(least[k][from], std::max(least[k - 1][to], time_of(num_stages_ - k, from, to)));
                }
            }
        }
        return least;
    }

    /// The borders of the choice with the least sum of squares within the bottleneck. Sums are formed from the end, so
    /// that the earliest of equals is read off from the front.
    std::vector<size_t> evenest(double bottleneck) const {
        const size_t last = borders_.size() - 1;
        Table squares = no_table();
        std::vector<std::vector<size_t>> next(num_stages_ + 1, std::vector<size_t>(borders_.size(), 0));
        squares[0][last] = 0;
        for (size_t k = 1; k <= num_stages_; ++k) {
            for (size_t from = 0; from + k <= last; ++from) {
                for (size_t to = from + 1; to + k - 1 <= last; ++to) {
                    const double time = time_of(num_stages_ - k, from, to);
                    if (time > bottleneck) continue;
                    const double sum = squares[k - 1][to] + time * time;
                    if (sum >= squares[k][from]) continue;
                    squares[k][from] = sum;
                    next[k][from] = to;
                }
            }
        }
        std::vector<size_t> chosen;
        size_t border = 0;
        for (size_t k = num_stages_; k > 1; --k) chosen.push_back(border = next[k][border]);
        return chosen;
    }

    double lower_bound() const {
        double bound = sums_.back() / static_cast<double>(num_stages_);
        for (size_t border = 1; border < borders_.size(); ++border) {
            bound = std::max(bound, ops_between(border - 1, border));
        }
        return bound;
    }

    const BalanceProblem& problem_;
    size_t num_stages_;
    std::vector<int> borders_;
    std::vector<double> over_;  ///< of a message over each border
    std::vector<double> sums_;  ///< of the ops before each
};

}  // namespace

std::optional<Balance> balance_stages(const BalanceProblem& problem, int num_stages) {
    return Balancer(problem, num_stages).solve();
}

}  // namespace vpp
