#include "launch/disk_trial.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace vpp {
namespace {

namespace fs = std::filesystem;

class DiskTrial : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("vpp-disk-" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    fs::path folder_;
};

TEST_F(DiskTrial, TriesTheNearestFolderThatIsThereAndLeavesNothing) {
    const DiskFacts facts = try_disk(folder_ / "runs" / "gpt", 1 << 20);
    EXPECT_EQ(facts.problem, "");
    EXPECT_EQ(facts.folder, folder_);
    EXPECT_GT(facts.bytes_per_second.value_or(0), 0);
    EXPECT_GT(facts.free_bytes, 0);
    EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(DiskTrial, AFileInTheWayIsNoFolder) {
    std::ofstream(folder_ / "runs") << "x";
    const DiskFacts facts = try_disk(folder_ / "runs" / "gpt", 1 << 20);
    EXPECT_EQ(facts.problem, (folder_ / "runs").string() + " is no folder");
    EXPECT_FALSE(facts.bytes_per_second.has_value());
}

TEST_F(DiskTrial, ALinkToNothingIsNoFolder) {
    fs::create_symlink("nowhere/x", folder_ / "link");
    EXPECT_EQ(try_disk(folder_ / "link", 1 << 20).problem, (folder_ / "link").string() + " is no folder");
    EXPECT_EQ(try_disk(folder_ / "link" / "run", 1 << 20).problem, (folder_ / "link").string() + " is no folder");
    fs::create_directory_symlink(folder_, folder_ / "good");
    EXPECT_EQ(try_disk(folder_ / "good" / "run", 1 << 20).problem, "");
}

TEST_F(DiskTrial, AFolderThatCannotBeWrittenIsSaid) {
    const DiskFacts facts = try_disk("/proc/runs", 1 << 20);
    EXPECT_TRUE(facts.problem.starts_with("/proc: ")) << facts.problem;
    EXPECT_FALSE(facts.is_full);
}

}  // namespace
}  // namespace vpp
