#include "examples/array_file.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::TemporaryFolder;

TEST(ArrayFile, ComesBackAsItWas) {
    const TemporaryFolder folder;
    const NpyFile floats(folder.write("a.npy", array_file({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})));
    EXPECT_EQ(floats.dtype(), DType::F32);
    EXPECT_EQ(floats.shape(), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(test::float_at(floats, 5), 6);
    const NpyFile integers(folder.write("b.npy", array_file({2}, std::vector<int64_t>{7, 8})));
    EXPECT_EQ(integers.dtype(), DType::I64);
    EXPECT_EQ(integers.shape(), (std::vector<int64_t>{2}));
}

TEST(ArrayFile, AnotherNumberOfValuesIsABug) {
    error_of(ErrorKind::Bug, [] { array_file({3}, std::vector<float>{1, 2}); });
}

}  // namespace
}  // namespace vpp
