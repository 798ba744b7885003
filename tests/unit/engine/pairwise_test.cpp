#include "engine/pairwise.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"

namespace vpp {
namespace {

using Row = std::vector<int>;
using Pair = std::vector<size_t>;  // axis, value, axis, value

std::set<Pair> pairs_of(const Row& row) {
    std::set<Pair> pairs;
    for (size_t i = 0; i < row.size(); ++i) {
        for (size_t j = i + 1; j < row.size(); ++j)
            pairs.insert({i, static_cast<size_t>(row[i]), j, static_cast<size_t>(row[j])});
    }
    return pairs;
}

std::set<Pair> pairs_of(const std::vector<Row>& rows, const std::function<bool(size_t)>& wanted) {
    std::set<Pair> pairs;
    for (size_t i = 0; i < rows.size(); ++i) {
        if (wanted(i)) pairs.merge(pairs_of(rows[i]));
    }
    return pairs;
}

std::vector<Row> all_rows(const Row& sizes) {
    std::vector<Row> rows{{}};
    for (int size : sizes) {
        std::vector<Row> longer;
        for (const Row& row : rows) {
            for (int value = 0; value < size; ++value) {
                longer.push_back(row);
                longer.back().push_back(value);
            }
        }
        rows = longer;
    }
    return rows;
}

/// The pairs of the rows that were taken are those of all usable rows.
void expect_covered(const std::vector<Row>& rows, const std::function<bool(size_t)>& usable, size_t at_most) {
    const PairwiseCover cover = cover_pairs(rows, usable);
    const std::set<size_t> taken(cover.rows.begin(), cover.rows.end());
    EXPECT_EQ(taken.size(), cover.rows.size());
    for (size_t i : taken) EXPECT_TRUE(usable(i));
    for (size_t i : cover.refused) EXPECT_FALSE(usable(i));
    const std::set<Pair> possible = pairs_of(rows, usable);
    EXPECT_EQ(pairs_of(rows, [&](size_t i) { return taken.contains(i); }), possible);
    EXPECT_EQ(cover.num_pairs, possible.size());
    EXPECT_EQ(cover.num_impossible, pairs_of(rows, [](size_t) { return true; }).size() - possible.size());
    EXPECT_LE(cover.rows.size(), at_most);
}

TEST(Pairwise, FewRowsHaveEveryPair) {
    const auto any = [](size_t) { return true; };
    expect_covered(all_rows({3, 3, 3, 3}), any, 13);  // 9 are the least, of 81
    expect_covered(all_rows({10, 4, 4, 3, 2}), any, 50);
    expect_covered(all_rows({2, 5}), any, 10);
    expect_covered(all_rows({7}), any, 0);  // no pairs at all
}

TEST(Pairwise, PairsThatOnlyRefusedRowsHaveAreCounted) {
    const std::vector<Row> rows = all_rows({4, 4, 3, 2});
    expect_covered(
        rows, [&](size_t i) { return rows[i][0] != 2 || rows[i][1] == 1; }, 30);
    expect_covered(
        rows, [&](size_t i) { return (rows[i][0] + rows[i][1] + rows[i][2]) % 3 != 0; }, 35);
    expect_covered(
        rows, [](size_t) { return false; }, 0);
}

TEST(Pairwise, TheRowsNeedNotBeAProduct) {
    const auto any = [](size_t) { return true; };
    expect_covered({{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1}}, any, 5);
    EXPECT_TRUE(cover_pairs({}, any).rows.empty());
    EXPECT_THROW(cover_pairs({{0, 0}, {1}}, any), Error);
    EXPECT_THROW(cover_pairs({{0, -1}}, any), Error);
}

TEST(Pairwise, ManyValuesTakeNoMoreRoomThanTheirRows) {
    const int many = 100'000'000;
    EXPECT_EQ(cover_pairs({{0, many}, {many, 0}, {0, many}}, [](size_t) { return true; }).num_pairs, 2U);
}

TEST(Pairwise, ARowIsAskedOnce) {
    const std::vector<Row> rows = all_rows({3, 3, 3});
    std::set<size_t> asked;
    cover_pairs(rows, [&](size_t i) {
        EXPECT_TRUE(asked.insert(i).second) << i;
        return i % 2 == 0;
    });
    EXPECT_GT(asked.size(), 9U);
}

}  // namespace
}  // namespace vpp
