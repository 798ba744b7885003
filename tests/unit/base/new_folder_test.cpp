#include "base/new_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

class NewFolderTest : public ::testing::Test {
  protected:
    void SetUp() override { fs::create_directories(around_); }
    void TearDown() override { fs::remove_all(around_); }
    size_t num_entries() const {
        return static_cast<size_t>(std::distance(fs::directory_iterator(around_), fs::directory_iterator()));
    }
    static std::string refusal(const fs::path& path) {
        try {
            const NewFolder folder(path);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Output);
            return error.what();
        }
        return "";
    }
    const fs::path around_ = fs::temp_directory_path() / ("vpp-new-folder-" + std::to_string(::getpid()));
    const fs::path path_ = around_ / "made";
};

TEST_F(NewFolderTest, AppearsWhenItIsPublishedAndNotBefore) {
    {
        NewFolder folder(path_ / "");
        std::ofstream(folder.temporary() / "file") << "whole";
        EXPECT_FALSE(fs::exists(path_));
        folder.publish();
    }
    EXPECT_EQ(read_text_file(path_ / "file", 100), "whole");
    EXPECT_EQ(num_entries(), 1u);
}

TEST_F(NewFolderTest, NothingStaysOfOneThatWasNotPublished) {
    {
        const NewFolder folder(path_);
        std::ofstream(folder.temporary() / "file") << "half";
        EXPECT_EQ(num_entries(), 1u);
    }
    EXPECT_EQ(num_entries(), 0u);
}

TEST_F(NewFolderTest, OnlyAnEmptyFolderIsReplaced) {
    fs::create_directory(path_);
    NewFolder folder(path_);
    std::ofstream(path_ / "foreign") << "mine";
    EXPECT_THROW(folder.publish(), Error) << "somebody was faster";
    EXPECT_NE(refusal(path_).find("is there already"), std::string::npos);
    fs::remove(path_ / "foreign");
    folder.publish();
    EXPECT_TRUE(fs::is_directory(path_));
}

TEST_F(NewFolderTest, WhatElseIsThereIsRefused) {
    std::ofstream(around_ / "file") << "mine";
    fs::create_symlink(around_ / "nowhere", around_ / "link");
    EXPECT_NE(refusal(around_ / "file").find("is there already"), std::string::npos);
    EXPECT_NE(refusal(around_ / "link").find("is there already"), std::string::npos);
    EXPECT_NE(refusal(around_ / "missing" / "made").find("make it first"), std::string::npos);
    EXPECT_NE(refusal(around_ / "file" / "made").find("make it first"), std::string::npos);
    EXPECT_NE(refusal("").find("empty"), std::string::npos);
    EXPECT_EQ(num_entries(), 2u);
}

TEST_F(NewFolderTest, TheCurrentFolderStays) {
    const fs::path before = fs::current_path();
    fs::create_directory(path_);
    fs::current_path(path_);
    EXPECT_NE(refusal(".").find("is the current folder"), std::string::npos);
    fs::current_path(before);
}

}  // namespace
}  // namespace vpp
