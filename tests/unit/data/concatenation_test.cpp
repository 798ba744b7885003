#include "data/concatenation.hpp"

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

TEST(Concatenation, ASampleIsFoundInItsFile) {
    Concatenation files;
    EXPECT_EQ(files.num_samples(), 0);
    files.add(3);
    files.add(1);
    files.add(2);
    EXPECT_EQ(files.num_samples(), 6);
    EXPECT_EQ(files.file_samples(), (std::vector<int64_t>{3, 1, 2}));
    const std::pair<size_t, int64_t> places[] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {2, 1}};
    for (int64_t sample = 0; sample < 6; ++sample) {
        const Concatenation::Place place = files.locate(sample);
        EXPECT_EQ(std::make_pair(place.file, place.sample), places[sample]) << sample;
    }
}

TEST(Concatenation, WhatIsOutsideIsABug) {
    Concatenation files;
    files.add(2);
    test::error_of(ErrorKind::Bug, [&] { files.locate(2); });
    test::error_of(ErrorKind::Bug, [&] { files.locate(-1); });
}

}  // namespace
}  // namespace vpp::detail
