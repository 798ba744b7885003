#include "data/fields.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

const Fields kFields{{{"image", DType::F32, {3, 4}, 0}, {"label", DType::I64, {}, 10}}, 5};

TEST(Fields, FindsByName) {
    EXPECT_EQ(kFields.find("image"), 0);
    EXPECT_EQ(kFields.find("label"), 1);
    EXPECT_EQ(kFields.find("Label"), -1);
    EXPECT_EQ(Fields{}.find("label"), -1);
}

TEST(Fields, BytesOfASampleAreShapeTimesElement) {
    EXPECT_EQ(kFields.fields[0].bytes_per_sample(), 48);
    EXPECT_EQ(kFields.fields[1].bytes_per_sample(), 8);
}

TEST(Fields, SamplesStandInFrontOfTheShape) {
    EXPECT_EQ(kFields.fields[0].batch_shape(2), (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(kFields.fields[1].batch_shape(2), std::vector<int64_t>{2});
}

TEST(Fields, CheckReadAcceptsOnlyWhatExists) {
    EXPECT_NO_THROW(check_read(kFields, 4, 1, 8));
    const auto refused = [](int64_t sample, int field, size_t num_bytes) {
        test::error_of(ErrorKind::Bug, [&] { check_read(kFields, sample, field, num_bytes); });
    };
    refused(5, 1, 8);
    refused(-1, 1, 8);
    refused(0, 2, 8);
    refused(0, -1, 8);
    refused(0, 1, 7);
}

}  // namespace
}  // namespace vpp
