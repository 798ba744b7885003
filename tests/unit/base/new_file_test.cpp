#include "base/new_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public ::testing::Test {
  protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }
    void write(const NewFile& file, const std::string& text) const {
        OutputFile out(file.temporary());
        out.write_text(text);
        out.finish();
    }
    size_t num_entries() const {
        return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }
    ErrorKind refusal(const fs::path& path, bool overwrite = false) const {
        try {
            const NewFile file(path, overwrite);
        } catch (const Error& error) {
            return error.kind();
        }
        return ErrorKind::Bug;
    }
    const fs::path folder_ = fs::temp_directory_path() / ("vpp-new-file-" + std::to_string(::getpid()));
    const fs::path path_ = folder_ / "out.bin";
};

TEST_F(NewFileTest, AppearsWhenItIsPublishedAndNotBefore) {
    {
        NewFile file(path_, false);
        write(file, "whole");
        EXPECT_FALSE(fs::exists(path_));
        file.publish();
    }
    EXPECT_EQ(read_text_file(path_, 100), "whole");
    EXPECT_EQ(num_entries(), 1u);
}

TEST_F(NewFileTest, NothingStaysOfOneThatWasNotPublished) {
    {
        const NewFile file(path_, false);
        write(file, "half");
        EXPECT_EQ(num_entries(), 1u);
    }
    EXPECT_EQ(num_entries(), 0u);
}

TEST_F(NewFileTest, WhatIsThereStaysUnlessItMayBeReplaced) {
    std::ofstream(path_) << "old";
    EXPECT_EQ(refusal(path_), ErrorKind::Output);
    NewFile file(path_, true);
    write(file, "new");
    EXPECT_EQ(read_text_file(path_, 100), "old");
    file.publish();
    EXPECT_EQ(read_text_file(path_, 100), "new");
}

TEST_F(NewFileTest, ALinkIsThereAlsoWhenItLeadsNowhereAndIsNotFollowed) {
    fs::create_symlink(folder_ / "nowhere", path_);
    EXPECT_EQ(refusal(path_), ErrorKind::Output);
    NewFile file(path_, true);
    write(file, "new");
    file.publish();
    EXPECT_FALSE(fs::exists(folder_ / "nowhere"));
    EXPECT_EQ(read_text_file(path_, 100), "new");
}

TEST_F(NewFileTest, FoldersAreRefused) {
    EXPECT_EQ(refusal(folder_, true), ErrorKind::Output);
    EXPECT_EQ(refusal(folder_ / "missing" / "out.bin"), ErrorKind::Output);
    EXPECT_EQ(refusal(folder_ / "missing/"), ErrorKind::Output);
}

}  // namespace
}  // namespace vpp
