#include "engine/pairwise.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

namespace {

/// Numbers all pairs of values of two axes, and knows which ones were seen.
class Pairs {
  public:
    explicit Pairs(const std::vector<std::vector<int>>& rows) {
        for (const std::vector<int>& row : rows) {
            check(row.size() == rows.front().size(), "every row has all axes");
            sizes_.resize(row.size(), 0);
            for (size_t axis = 0; axis < row.size(); ++axis) {
                check(row[axis] >= 0, "values of an axis count from 0");
                sizes_[axis] = std::max(sizes_[axis], static_cast<size_t>(row[axis]) + 1);
            }
        }
        size_t all = 0;
        for (size_t size : sizes_) all += size;
        num_values_ = all;
        is_covered_.resize(all * all, false);
    }

    size_t count_new(const std::vector<int>& row) const {
        size_t count = 0;
        for_each(row, [&](size_t pair) { count += !is_covered_[pair]; });
        return count;
    }

    void cover(const std::vector<int>& row) {
        for_each(row, [&](size_t pair) { is_covered_[pair] = true; });
    }

    size_t num_covered() const { return static_cast<size_t>(std::count(is_covered_.begin(), is_covered_.end(), true)); }

  private:
    template <class Visit>
    void for_each(const std::vector<int>& row, Visit visit) const {
        size_t first = 0;
        for (size_t i = 0; i < row.size(); first += sizes_[i++]) {
            size_t second = first + sizes_[i];
            for (size_t j = i + 1; j < row.size(); second += sizes_[j++]) {
                visit((first + static_cast<size_t>(row[i])) * num_values_ + second + static_cast<size_t>(row[j]));
            }
        }
    }

    std::vector<size_t> sizes_;  ///< values of each axis
    size_t num_values_ = 0;      ///< of all axes together
    std::vector<bool> is_covered_;
};

}  // namespace

PairwiseCover cover_pairs(const std::vector<std::vector<int>>& rows, const std::function<bool(size_t)>& usable) {
    PairwiseCover cover;
    Pairs pairs(rows), wanted(rows);
    std::vector<size_t> left(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) left[i] = i;
    while (!left.empty()) {
        size_t best = 0, most = 0;
        std::erase_if(left, [&](size_t i) { return pairs.count_new(rows[i]) == 0; });
        for (size_t i : left) {
            const size_t count = pairs.count_new(rows[i]);
            if (count > most) best = i, most = count;
        }
        if (most == 0) break;
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
