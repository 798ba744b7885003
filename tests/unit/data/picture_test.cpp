#include "data/picture.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace vpp::detail {
namespace {

template <typename T>
std::vector<T> window_of(const std::vector<T>& planes, PlaneSize from, Window window, PlaneSize to) {
    const size_t num_planes = planes.size() / static_cast<size_t>(from.num_values());
    std::vector<T> out(num_planes * static_cast<size_t>(to.num_values()), T{99});
    copy_window(std::as_bytes(std::span(planes)), from, window, to, sizeof(T), std::as_writable_bytes(std::span(out)));
    return out;
}

std::vector<float> resized(const std::vector<float>& planes, PlaneSize from, PlaneSize to) {
    std::vector<float> out(planes.size() / static_cast<size_t>(from.num_values()) *
                           static_cast<size_t>(to.num_values()));
    resize_planes(planes, from, to, out);
    return out;
}

TEST(Picture, AWindowIsCutFromEachPlane) {
    const std::vector<int16_t> two{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // 2 planes of 2 x 3
    EXPECT_EQ(window_of(two, {2, 3}, {0, 0}, {2, 3}), two);
    EXPECT_EQ(window_of(two, {2, 3}, {0, 1}, {2, 2}), (std::vector<int16_t>{2, 3, 5, 6, 8, 9, 11, 12}));
    EXPECT_EQ(window_of(two, {2, 3}, {1, 0, true}, {1, 3}), (std::vector<int16_t>{6, 5, 4, 12, 11, 10}));
    EXPECT_EQ(window_of(std::vector<double>{1, 2, 3}, {1, 3}, {0, 0, true}, {1, 3}), (std::vector<double>{3, 2, 1}));
}

TEST(Picture, OutsideIsZero) {
    const std::vector<uint8_t> one{1, 2, 3, 4};
    EXPECT_EQ(window_of(one, {2, 2}, {-1, -1}, {4, 4}),
              (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0}));
    EXPECT_EQ(window_of(one, {2, 2}, {1, -1, true}, {2, 2}), (std::vector<uint8_t>{3, 0, 0, 0}));
    EXPECT_EQ(window_of(one, {2, 2}, {5, 5}, {1, 1}), std::vector<uint8_t>{0});
}

TEST(Picture, ResizeLiesBetweenTheCentresOfValues) {
    EXPECT_EQ(resized({0, 4}, {1, 2}, {1, 4}), (std::vector<float>{0, 1, 3, 4}));
    EXPECT_EQ(resized({0, 4, 8, 12}, {1, 4}, {1, 2}), (std::vector<float>{2, 10}));
    EXPECT_EQ(resized({1, 2, 3, 4}, {2, 2}, {1, 1}), std::vector<float>{2.5});
    EXPECT_EQ(resized({1, 2, 3, 4, 5, 6}, {1, 3}, {1, 3}), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(resized({7}, {1, 1}, {2, 2}), (std::vector<float>{7, 7, 7, 7}));
}

}  // namespace
}  // namespace vpp::detail
