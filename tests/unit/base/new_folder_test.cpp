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

// In containers processes have the same few numbers.
TEST_F(NewFolderTest, WhatAProcessOfTheSameNumberHasLeftIsNotPublished) {
    const std::string name = ".made.tmp-" + std::to_string(::getpid());
    fs::create_directory(around_ / name);
    std::ofstream(around_ / name / "file") << "half";
    std::ofstream(around_ / (name + "-2")) << "a file";
    NewFolder folder(path_);
    EXPECT_EQ(folder.temporary(), around_ / (name + "-3"));
    folder.publish();
    EXPECT_TRUE(fs::is_empty(path_));
    EXPECT_EQ(read_text_file(around_ / name / "file", 100), "half") << "it may be of one that runs, on another host";
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
    const std::string here = around_.string();
    EXPECT_EQ(refusal(around_ / "file"), here + "/file is there already; name another folder");
    EXPECT_EQ(refusal(around_ / "link"), here + "/link is there already; name another folder");
    EXPECT_EQ(refusal(around_ / "missing" / "made"), "the folder " + here + "/missing is not there; make it first");
    EXPECT_EQ(refusal(around_ / "file" / "made"), "the folder " + here + "/file is not there; make it first");
    EXPECT_EQ(refusal(around_ / std::string(250, 'a')), "cannot make a folder in " + here + ": File name too long");
    EXPECT_EQ(refusal(""), "a folder's name is empty; name one");
    EXPECT_EQ(num_entries(), 2u);
}

TEST_F(NewFolderTest, WhatCannotTakeItsNameIsGone) {
    {
        NewFolder folder(path_);
        fs::remove(folder.temporary());
        std::ofstream(folder.temporary()) << "a file now";
        try {
            folder.publish();
            ADD_FAILURE() << "a file was published as a folder";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Io);
            EXPECT_EQ(error.what(), "cannot open the folder " + folder.temporary().string() + ": Not a directory");
        }
    }
    EXPECT_EQ(num_entries(), 0u);
}

TEST_F(NewFolderTest, TheCurrentFolderStays) {
    const fs::path before = fs::current_path();
    fs::create_directory(path_);
    fs::current_path(path_);
    const std::string refused = refusal(".");
    fs::current_path(before);
    EXPECT_EQ(refused, path_.string() + " is the current folder; name one that is made in it");
}

}  // namespace
}  // namespace vpp
