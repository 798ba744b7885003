#include "engine/pairwise.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/error.hpp"

namespace vpp {

namespace {

/// Which pairs of values of two axes were seen.
class Pairs {
  public:
    explicit Pairs(const std::vector<std::vector<int>>& rows) {
        std::vector<size_t> sizes(rows.empty() ? 0 : rows.front().size(), 0);
        for (const std::vector<int>& row : rows) {
            check(row.size() == sizes.size(), "every row has all axes");
            for (size_t axis = 0; axis < row.size(); ++axis) {
                check(row[axis] >= 0, "values of an axis count from 0");
                sizes[axis] = std::max(sizes[axis], static_cast<size_t>(row[axis]) + 1);
            }
        }
        for (size_t size : sizes) {
            first_value_.push_back(num_values_);
            num_values_ += size;
        }
    }

    size_t count_new(const std::vector<int>& row) const {
        size_t count = 0;
        for_each(row, [&](size_t pair) { count += !covered_.contains(pair); });
        return count;
    }

    void cover(const std::vector<int>& row) {
        for_each(row, [&](size_t pair) { covered_.insert(pair); });
    }

    size_t num_covered() const { return covered_.size(); }

  private:
    /// The number of a value among those of all axes.
    size_t value(const std::vector<int>& row, size_t axis) const {
        return first_value_[axis] + static_cast<size_t>(row[axis]);
    }

    template <class Visit>
    void for_each(const std::vector<int>& row, Visit visit) const {
        for (size_t i = 0; i < row.size(); ++i) {
            for (size_t j = i + 1; j < row.size(); ++j) visit(value(row, i) * num_values_ + value(row, j));
        }
    }

    std::vector<size_t> first_value_;  ///< of each axis
    size_t num_values_ = 0;            ///< of all axes together
    std::unordered_set<size_t> covered_;
};

/// The row with most new pairs.
size_t find_best(const std::vector<std::vector<int>>& rows, const std::vector<size_t>& left, const Pairs& pairs) {
    size_t best = left.front(), most = 0;
    for (size_t i : left) {
        const size_t count = pairs.count_new(rows[i]);
        if (count <= most) continue;
        best = i;
        most = count;
    }
    return best;
}

}  // namespace

PairwiseCover cover_pairs(const std::vector<std::vector<int>>& rows, const std::function<bool(size_t)>& usable) {
    PairwiseCover cover;
    Pairs pairs(rows), wanted(rows);
    std::vector<size_t> left(rows.size());
    std::iota(left.begin(), left.end(), size_t{0});
    const auto drop_done = [&] { std::erase_if(left, [&](size_t i) { return pairs.count_new(rows[i]) == 0; }); };
    for (drop_done(); !left.empty(); drop_done()) {
        const size_t best = find_best(rows, left, pairs);
        std::erase(left, best);
        wanted.cover(rows[best]);
        if (usable(best)) {
            pairs.cover(rows[best]);
            cover.rows.push_back(best);
        } else {
            cover.refused.push_back(best);
        }
    }
    cover.num_pairs = pairs.num_covered();
    cover.num_impossible = wanted.num_covered() - cover.num_pairs;
    return cover;
}

}  // namespace vpp
