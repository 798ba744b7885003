#include "launch/progress.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace vpp {
namespace {

namespace fs = std::filesystem;

class Progress : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("vpp-progress-" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    void write(const std::string& text) { std::ofstream(folder_ / "metrics.jsonl") << text; }

    fs::path folder_;
};

TEST_F(Progress, OfNoRun) {
    const RunProgress none = look_at_progress(folder_ / "nowhere");
    EXPECT_EQ(none, RunProgress{});
    EXPECT_EQ(none.newest(), -1);
    EXPECT_TRUE(none.is_saved());
}

TEST_F(Progress, TheLastStepOfTheMetrics) {
    write(
        "{\"event\":\"step\",\"step\":4}\n{\"event\":\"step\",\"step\":5}\n{\"event\":\"save\",\"step\":9}\nno json\n");
    EXPECT_EQ(look_at_progress(folder_).step, 5);
    EXPECT_FALSE(look_at_progress(folder_).is_saved());
}

TEST_F(Progress, ATornLastLineDoesNotCount) {
    write("{\"event\":\"step\",\"step\":4}\n{\"event\":\"step\",\"step\":5}");
    EXPECT_EQ(look_at_progress(folder_).step, 4);
    write("{\"event\":\"step\",\"step\":");
    EXPECT_EQ(look_at_progress(folder_).step, std::nullopt);
    write("\n\n[1]\n{\"event\":\"step\",\"step\":\"x\"}\n{\"event\":7}\n");
    EXPECT_EQ(look_at_progress(folder_).step, std::nullopt);
}

TEST_F(Progress, LongFilesAreReadFromTheirEnd) {
    std::string text;
    for (int step = 1; step <= 60000; ++step) {
        text +=
            "{\"event\":\"step\",\"step\":" + std::to_string(step) + ",\"more\":\"" + std::string(60, 'x') + "\"}\n";
    }
    ASSERT_GT(text.size(), size_t{5} << 20);
    write(text);
    EXPECT_EQ(look_at_progress(folder_).step, 60000);
}

TEST_F(Progress, TheNewestCheckpoint) {
    for (const char* name : {"step-00000040", "step-00000100", ".tmp-step-00000200-a", "notes"}) {
        fs::create_directories(folder_ / "checkpoints" / name);
    }
    write("{\"event\":\"step\",\"step\":90}\n");
    EXPECT_EQ(look_at_progress(folder_).checkpoint, 100);
    EXPECT_EQ(look_at_progress(folder_).newest(), 100);
    EXPECT_TRUE(look_at_progress(folder_).is_saved());
}

}  // namespace
}  // namespace vpp
