#include "checkpoint/file_status.hpp"

#include "samples.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

TEST(FileStatus, TellsWhatIsThereAndWhatIsNot) {
    const test::ScratchFolder scratch;
    const fs::path file = scratch.path() / "file", link = scratch.path() / "link";
    test::write_file(file, "");
    fs::create_symlink(scratch.path(), link);
    EXPECT_TRUE(is_folder(scratch.path()));
    EXPECT_TRUE(is_there(file));
    EXPECT_FALSE(is_folder(file));
    EXPECT_FALSE(is_folder(link));
    EXPECT_TRUE(is_there(link));
    EXPECT_TRUE(is_other_than_folder(link));
    EXPECT_TRUE(is_other_than_folder(file));
    EXPECT_FALSE(is_other_than_folder(scratch.path()));
    EXPECT_FALSE(is_other_than_folder(scratch.path() / "nothing"));
    EXPECT_FALSE(is_there(file / "below a file"));
    EXPECT_EQ(status_of(scratch.path() / "nothing").type(), fs::file_type::not_found);
}

TEST(FileStatus, WhatCannotBeToldIsAnError) {
    const test::ScratchFolder scratch;
    const fs::path path = scratch.path() / std::string(300, 'x');  // longer than a name may be
    test::expect_error(ErrorKind::Io, "cannot look at " + path.string() + ": File name too long",
                       [&] { is_there(path); });
}

}  // namespace
}  // namespace vpp
