#include "data/transforms.hpp"

#include <set>

#include "data/ranges.hpp"
#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::npy;
using test::raw;
using Floats = std::vector<float>;

class Transforms : public testing::Test {
  protected:
    /// Two pictures of one row, 1 to 8 and 11 to 18, the same as `mask`, and labels.
    Plan plan(std::vector<TransformPlan> transforms) const {
        Floats values;
        for (int sample = 0; sample < 2; ++sample) {
            for (int i = 1; i <= 8; ++i) values.push_back(static_cast<float>(10 * sample + i));
        }
        const std::string pictures = npy("<f4", "(2, 1, 8)", raw(values));
        Plan plan =
            test::table_plan("arrays", {{"x", folder_.write("x.npy", pictures)},
                                        {"mask", folder_.write("m.npy", pictures)},
                                        {"y", folder_.write("y.npy", npy("<i8", "(2,)", raw<int64_t>({1, 0})))}});
        plan.data.transforms = std::move(transforms);
        return plan;
    }

    static Floats drawn(const Dataset& data, const Draw& draw, int field = 0) {
        Floats values(static_cast<size_t>(data.fields().fields[static_cast<size_t>(field)].bytes_per_sample()) / 4);
        data.read_draw(draw, field, std::as_writable_bytes(std::span(values)));
        return values;
    }

    test::TemporaryFolder folder_;
};

TEST_F(Transforms, FieldsChangeAndOthersStay) {
    const auto data = open_dataset(plan({{.field = "x", .crop = {1, 2}, .scale = 2}}), Subset::Train);
    EXPECT_EQ(data->fields().fields[0].shape, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(data->fields().fields[1].shape, (std::vector<int64_t>{1, 8}));
    EXPECT_EQ(test::read_values<float>(*data, 1, 0), (Floats{28, 30}));
    EXPECT_EQ(test::read_values<int64_t>(*data, 0, 2), std::vector<int64_t>{1});
    EXPECT_EQ(data->where(1, 0), folder_.path("x.npy") + ", sample 1");
    EXPECT_EQ(data->digest(), open_dataset(plan({}), Subset::Train)->digest());
    error_of(ErrorKind::Bug, [&] { drawn(*data, {2, 0}); });
}

TEST_F(Transforms, RandomOnesAreFunctionsOfSeedEpochAndSample) {
    const TransformPlan crop{.field = "x", .crop = {1, 2}, .flip = 0.5};
    const auto data = open_dataset(plan({crop}), Subset::Train);
    Plan other_seed = plan({crop});
    other_seed.train.seed = 5;
    const auto other = open_dataset(other_seed, Subset::Train);
    std::set<Floats> seen;
    int same_in_other = 0, same_offset = 0;
    for (int64_t epoch = 0; epoch < 200; ++epoch) {
        const Floats values = drawn(*data, {0, epoch});
        EXPECT_EQ(values, drawn(*data, {0, epoch}));
        seen.insert(values);
        same_in_other += values == drawn(*other, {0, epoch});
        same_offset += drawn(*data, {1, epoch}) == Floats{values[0] + 10, values[1] + 10};
    }
    EXPECT_EQ(seen.size(), 14U) << "seven places, both ways round";
    EXPECT_LT(same_in_other, 40);
    EXPECT_LT(same_offset, 40);
    EXPECT_EQ(drawn(*data, {0}), (Floats{4, 5}));
    EXPECT_EQ(test::read_values<float>(*data, 0, 0), (Floats{4, 5}));
}

// What is held out takes nothing of the training's randomness from it.
TEST_F(Transforms, ASplitPassesTheEpochOn) {
    Plan half = plan({{.field = "x", .crop = {1, 2}, .flip = 0.5}});
    const auto whole = open_dataset(half, Subset::Train);
    half.data.val_split = 0.5;
    const auto training = open_dataset(half, Subset::Train);
    ASSERT_EQ(training->fields().num_samples, 1);
    std::set<Floats> seen;
    for (int64_t epoch = 0; epoch < 30; ++epoch) {
        seen.insert(drawn(*training, {0, epoch}));
        EXPECT_EQ(drawn(*training, {0, epoch}), drawn(*whole, {training->stored_sample(0), epoch})) << epoch;
    }
    EXPECT_GT(seen.size(), 5U);
}

TEST_F(Transforms, FieldsOfASampleAreCutAlike) {
    const TransformPlan x{.field = "x", .crop = {1, 2}, .flip = 0.5};
    TransformPlan mask = x;
    mask.field = "mask";
    const auto both = open_dataset(plan({x, mask}), Subset::Train);
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
        EXPECT_EQ(drawn(*both, {1, epoch}, 0), drawn(*both, {1, epoch}, 1));
    }
}

TEST_F(Transforms, RangesStandBehindThem) {
    const auto open = [&](std::vector<TransformPlan> transforms) {
        return with_ranges(open_dataset(plan(std::move(transforms)), Subset::Train), {{"y", 1, "classes", {}}});
    };
    int64_t label = 0;
    const auto out = std::as_writable_bytes(std::span(&label, 1));
    const auto data = open({{.field = "x", .crop = {1, 2}}});
    EXPECT_NO_THROW(data->read_draw({1, 3}, 2, out));
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { data->read_draw({0, 3}, 2, out); }), "y.npy, sample 0: field y must");
    EXPECT_EQ(drawn(*data, {0, 3}),
              drawn(*open_dataset(plan({{.field = "x", .crop = {1, 2}}}), Subset::Train), {0, 3}));
}

TEST_F(Transforms, AFieldThatIsNotThereIsRefused) {
    EXPECT_EQ(error_of(ErrorKind::Plan, [&] { open_dataset(plan({{.field = "maks", .flip = 1}}), Subset::Train); }),
              "data.transform[0].field is no field of the data (got 'maks', expected one of x, mask, y); did you mean "
              "'mask'?");
}

}  // namespace
}  // namespace vpp
