// On a card: memory that graphs share.
#include "stage/shared_recorder.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <set>

#include "device/device.hpp"
#include "support/far_device.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

class SharedRecorderOnCards : public testing::Test {
  protected:
    void SetUp() override {
        if (!test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
        start_device(test_device());
    }

    SharedRecorder shared_{test_device()};
};

TEST_F(SharedRecorderOnCards, GraphsWorkInTheSameMemory) {
    const at::Tensor x = at::ones({1000}, test_device());
    std::set<const void*> places;
    std::vector<std::unique_ptr<CardGraph>> graphs;
    for (int i = 0; i < 3; ++i)
        graphs.push_back(shared_.get()->record([&] { places.insert((x * 2).const_data_ptr()); }));
    EXPECT_EQ(places.size(), 3U) << "nobody has the recorder between, so each has memory of its own";
    places.clear();
    const std::shared_ptr<CardRecorder> kept = shared_.get();
    for (int i = 0; i < 3; ++i)
        graphs.push_back(shared_.get()->record([&] { places.insert((x * 2).const_data_ptr()); }));
    EXPECT_EQ(places.size(), 1U);
}

TEST_F(SharedRecorderOnCards, TheLargestWorkCountsWhileSomebodyHasIt) {
    EXPECT_EQ(shared_.work_bytes(), 0);
    {
        const std::shared_ptr<CardRecorder> recorder = shared_.get();
        EXPECT_EQ(shared_.get(), recorder);
        for (const int64_t bytes : {300, 700, 500}) shared_.note_work(bytes);
        EXPECT_EQ(shared_.work_bytes(), 700);
    }
    EXPECT_EQ(shared_.work_bytes(), 0);
    const std::shared_ptr<CardRecorder> anew = shared_.get();
    EXPECT_EQ(shared_.work_bytes(), 0);
}

}  // namespace
}  // namespace vpp::test
