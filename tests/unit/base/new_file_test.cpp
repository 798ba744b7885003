#include "base/new_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "support/disk_calls.hpp"

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
    std::string refusal(const fs::path& path, bool overwrite = false) const {
        try {
            const NewFile file(path, overwrite);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Output);
            return error.what();
        }
        return "";
    }
    std::string is_taken() const {
        return path_.string() + " is there already; name another file, or replace it with --overwrite";
    }
    const fs::path folder_ = fs::temp_directory_path() / ("vpp-new-file-" + std::to_string(::getpid()));
    const fs::path path_ = folder_ / "out.bin";
};

// A loss of power leaves the old file or the new one, and never an empty one.
TEST_F(NewFileTest, IsOnTheDiskBeforeItHasItsName) {
    test::DiskCalls calls(folder_);
    const std::string temporary = "out.bin.tmp-" + std::to_string(::getpid());
    const std::vector<std::string> expected{"fsync " + temporary, "rename " + temporary + " to out.bin", "fsync ."};
    for (const bool overwrite : {false, true}) {
        NewFile file(path_, overwrite);
        write(file, "whole");
        file.publish();
        EXPECT_EQ(calls.take(), expected) << overwrite;
    }
    write_file_durably(path_, "whole again");
    EXPECT_EQ(calls.take(), expected);
}

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

TEST_F(NewFileTest, TheOldOneCanGoAheadOfTheNew) {
    {
        NewFile file(path_, true);
        write(file, "old");
        file.remove_old();
        file.publish();
    }
    NewFile file(path_, true);
    write(file, "new");
    file.remove_old();
    EXPECT_FALSE(fs::exists(path_));
    fs::create_directory(path_);
    try {
        file.remove_old();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Io);
        EXPECT_EQ(error.what(), "cannot remove " + path_.string() + ": Is a directory");
    }
    const NewFile careful(folder_ / "other", false);
    std::ofstream(folder_ / "other") << "of somebody else";
    careful.remove_old();
    EXPECT_TRUE(fs::exists(folder_ / "other"));
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
    EXPECT_EQ(refusal(path_), is_taken());
    NewFile file(path_, true);
    write(file, "new");
    EXPECT_EQ(read_text_file(path_, 100), "old");
    file.publish();
    EXPECT_EQ(read_text_file(path_, 100), "new");
}

TEST_F(NewFileTest, ALinkIsThereAlsoWhenItLeadsNowhereAndStays) {
    fs::create_symlink("nowhere", path_);
    EXPECT_EQ(refusal(path_), is_taken());
    for (const char* text : {"new", "newer"}) {
        NewFile file(path_, true);
        write(file, text);
        file.publish();
        EXPECT_TRUE(fs::is_symlink(path_));
        EXPECT_EQ(read_text_file(folder_ / "nowhere", 100), text);
    }
}

TEST_F(NewFileTest, WhatAppearsMeanwhileStaysUnlessItMayBeReplaced) {
    NewFile file(path_, false);
    write(file, "new");
    std::ofstream(path_) << "another's";
    try {
        file.publish();
        ADD_FAILURE() << "a file was replaced";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Output);
        EXPECT_EQ(error.what(), is_taken());
    }
    EXPECT_EQ(read_text_file(path_, 100), "another's");
}

TEST_F(NewFileTest, TheTemporaryFileIsOfThisObjectAlone) {
    const NewFile one(path_, false), other(path_, false);
    EXPECT_NE(one.temporary(), other.temporary());
    EXPECT_EQ(num_entries(), 2u);
}

TEST_F(NewFileTest, FoldersAndDevicesAreRefused) {
    EXPECT_EQ(refusal("/dev/null", true), "/dev/null is a device or a pipe; name a file");
    EXPECT_EQ(refusal(folder_ / std::string(250, 'x')).substr(0, 14), "cannot create ");
    EXPECT_EQ(refusal(folder_, true), folder_.string() + " is a folder; name a file");
    EXPECT_EQ(refusal(folder_ / "missing/"), folder_.string() + "/missing/ is a folder; name a file");
    EXPECT_EQ(refusal(folder_ / "missing" / "out.bin"),
              "the folder " + folder_.string() + "/missing is not there; make it first");
}

TEST_F(NewFileTest, WhatCannotTakeItsNameIsGone) {
    {
        NewFile file(path_, true);
        write(file, "late");
        fs::create_directory(path_);
        try {
            file.publish();
            ADD_FAILURE() << "a folder was replaced";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Io);
            EXPECT_EQ(error.what(), "cannot rename to " + path_.string() + ": Is a directory");
        }
    }
    EXPECT_EQ(num_entries(), 1u);
}

}  // namespace
}  // namespace vpp
