#include "data/held_out.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "data/order.hpp"
#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using test::error_of;
using Numbers = std::vector<int64_t>;

Numbers samples_of(const HeldOut& held_out, Subset part, int64_t count) {
    Numbers samples;
    for (int64_t i = 0; i < count; ++i) samples.push_back(held_out.sample(part, i));
    return samples;
}

TEST(HeldOut, TheTwoPartsAreTheWholeInTheOrderOfTheFiles) {
    for (int64_t size = 2; size < 40; ++size) {
        for (int64_t count = 1; count <= size / 2; ++count) {
            const HeldOut held_out(size, count, 1234);
            Numbers both = samples_of(held_out, Subset::Validation, count);
            const Numbers training = samples_of(held_out, Subset::Train, size - count);
            EXPECT_TRUE(std::ranges::is_sorted(both));
            EXPECT_TRUE(std::ranges::is_sorted(training));
            for (int64_t end = 0; end <= size; ++end) {
                const auto before = [&](const Numbers& part) {
                    return std::ranges::count_if(part, [&](int64_t sample) { return sample < end; });
                };
                EXPECT_EQ(held_out.num_before(Subset::Validation, end), before(both));
                EXPECT_EQ(held_out.num_before(Subset::Train, end), before(training));
            }
            both.insert(both.end(), training.begin(), training.end());
            std::ranges::sort(both);
            Numbers all(static_cast<size_t>(size));
            std::iota(all.begin(), all.end(), 0);
            EXPECT_EQ(both, all) << count << " of " << size;
        }
    }
}

TEST(HeldOut, IsDrawnByTheSeedFromAllPartsAlike) {
    const HeldOut one(1000, 100, 1), other(1000, 100, 2);
    const Numbers samples = samples_of(one, Subset::Validation, 100);
    for (int64_t run = 0; run < 100; ++run) EXPECT_EQ(samples[static_cast<size_t>(run)] / 10, run);
    EXPECT_EQ(samples, samples_of(HeldOut(1000, 100, 1), Subset::Validation, 100));
    EXPECT_NE(samples, samples_of(other, Subset::Validation, 100));
    std::set<int64_t> places;
    for (const int64_t sample : samples) places.insert(sample % 10);
    EXPECT_EQ(places.size(), 10U);
}

TEST(HeldOut, ManySamplesAreNoTrouble) {
    constexpr int64_t kMany = int64_t{1} << 60;
    const HeldOut held_out(kMany, kMany / 3, 1);
    const int64_t last = held_out.sample(Subset::Train, kMany - kMany / 3 - 1);
    EXPECT_GE(last, kMany - 4);
    EXPECT_EQ(held_out.num_before(Subset::Train, last), kMany - kMany / 3 - 1);
    for (int64_t i = 0; i < 100; ++i) {
        const int64_t run = kMany / 3 / 100 * i, training = (kMany - kMany / 3) / 100 * i;
        const int64_t sample = held_out.sample(Subset::Validation, run);
        EXPECT_TRUE(sample >= 3 * run && sample < 3 * run + 4) << run;  // runs of three, the last ones a bit later
        EXPECT_EQ(held_out.num_before(Subset::Validation, sample), run);
        EXPECT_EQ(held_out.num_before(Subset::Train, held_out.sample(Subset::Train, training)), training);
    }
}

class Split : public testing::Test {
  protected:
    Plan plan(double share, int64_t first = 90, int64_t second = 10) const {
        Plan plan;
        plan.data.kind = "text";
        plan.data.sequence_length = 1;
        plan.data.val_split = share;
        std::string text;
        for (int64_t i = 0; i <= first; ++i) text += static_cast<char>(i);
        plan.data.train = {folder_.write("a", text), folder_.write("b", std::string(second + 1, 'b'))};
        return plan;
    }

    static Numbers values(const Dataset& data) {
        Numbers all;
        for (int64_t i = 0; i < data.fields().num_samples; ++i) {
            all.push_back(test::read_values<int64_t>(data, i, 0)[0]);
        }
        return all;
    }

    test::TemporaryFolder folder_;
};

TEST_F(Split, BothPartsAreOfTheTrainingData) {
    const Plan split = plan(0.1);
    const auto training = open_dataset(split, Subset::Train), validation = open_dataset(split, Subset::Validation);
    EXPECT_EQ(training->fields().num_samples, 90);
    EXPECT_EQ(validation->fields().num_samples, 10);
    EXPECT_EQ(training->file_samples(), (Numbers{81, 9}));
    EXPECT_EQ(validation->file_samples(), (Numbers{9, 1}));
    Numbers both = values(*training), held_out = values(*validation);
    both.insert(both.end(), held_out.begin(), held_out.end());
    std::ranges::sort(both);
    const auto whole = open_dataset(plan(0), Subset::Train);
    Numbers all = values(*whole);
    std::ranges::sort(all);
    EXPECT_EQ(both, all);
    EXPECT_EQ(training->digest(), whole->digest());
    EXPECT_EQ(open_dataset(plan(0), Subset::Validation), nullptr);
    EXPECT_EQ(validation->where(0, 0), whole->where(held_out[0], 0));
    for (const auto& part : {training.get(), validation.get()}) {
        for (int64_t i = 0; i < part->fields().num_samples; ++i) {
            EXPECT_EQ(part->where(i, 0), whole->where(part->stored_sample(i), 0));
        }
    }
    EXPECT_EQ(whole->stored_sample(89), 89);
}

TEST_F(Split, TooFewSamplesAreRefused) {
    EXPECT_EQ(open_dataset(plan(0.5, 1, 1), Subset::Validation)->fields().num_samples, 1);
    EXPECT_EQ(open_dataset(plan(0.5, 2, 1), Subset::Validation)->fields().num_samples, 1);  // not the nearest, 2 of 3
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { open_dataset(plan(0.001), Subset::Train); }),
               "data.val_split holds out none of the samples (got 0.001 of 100); try a larger share, or more data");
    Plan weighted = plan(0.5, 9, 1);
    weighted.data.weights = {1, 1};
    bool refused = false;
    for (uint64_t seed = 0; seed < 20 && !refused; ++seed) {
        weighted.train.seed = seed;
        const auto training = open_dataset(weighted, Subset::Train);
        if (training->file_samples()[1] > 0) {
            EXPECT_NO_THROW(training_order(*training, weighted));
            continue;
        }
        refused = true;
        EXPECT_HAS(error_of(ErrorKind::BadData, [&] { training_order(*training, weighted); }),
                   "data.val_split leaves no sample of file 1 of data.train for the training, and data.weights draws "
                   "from it; try a smaller share");
    }
    EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace vpp::detail
