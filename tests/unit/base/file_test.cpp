#include "base/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test, removed at the end.
class FileTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "vpp_file_XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { fs::remove_all(folder_); }

    static void expect_error(ErrorKind kind, const fs::path& named, const std::function<void()>& call) {
        try {
            call();
            ADD_FAILURE() << "no error about " << named;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), kind) << error.what();
            EXPECT_NE(std::string(error.what()).find(named.string()), std::string::npos) << error.what();
        }
    }

    fs::path folder_;
};

TEST_F(FileTest, DurableTextIsReadBackAndMapped) {
    const fs::path path = folder_ / "a.txt";
    write_file_durably(path, "first");
    write_file_durably(path, "second");
    EXPECT_EQ(read_text_file(path, 100), "second");
    const MappedFile map(path);
    EXPECT_EQ(to_string(map.bytes()), "second");
    EXPECT_EQ(map.path(), path);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // no temporary file stays
}

TEST_F(FileTest, DurableTextGoesWhereLinksLeadAndLeavesTheNamesOfOthers) {
    write_file_durably(folder_ / "a.tmp", "foreign");
    fs::create_symlink("a", folder_ / "link");
    fs::create_symlink(folder_ / "link", folder_ / "link2");
    write_file_durably(folder_ / "link2", "first");
    write_file_durably(folder_ / "link2", "second");
    EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
    EXPECT_TRUE(fs::is_symlink(folder_ / "link2"));
    EXPECT_EQ(read_text_file(folder_ / "a", 100), "second");
    EXPECT_EQ(read_text_file(folder_ / "a.tmp", 100), "foreign");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 4);
}

TEST_F(FileTest, ADeviceOrAPipeTakesTheTextAsItIs) {
    const fs::path link = folder_ / "null";
    fs::create_symlink("/dev/null", link);
    write_file_durably(link, "x");
    EXPECT_TRUE(fs::is_character_file(link));
    const fs::path pipe = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    write_file_durably(pipe, "text");
    char text[8] = "";
    EXPECT_EQ(::read(reader, text, sizeof text), 4);
    EXPECT_STREQ(text, "text");
    ::close(reader);
    EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(FileTest, ADiskThatIsFullLeavesWhatWasThere) {
    write_file_durably(folder_ / "a", "old");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    expect_error(ErrorKind::Io, folder_ / "a", [&] { write_file_durably(folder_ / "a", "longer than four bytes"); });
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(read_text_file(folder_ / "a", 100), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, AnEmptyFileIsAnEmptySpan) {
    const fs::path path = folder_ / "empty";
    write_file_durably(path, "");
    EXPECT_TRUE(MappedFile(path).bytes().empty());
    EXPECT_EQ(read_text_file(path, 0), "");
}

TEST_F(FileTest, AMapCanBeMoved) {
    write_file_durably(folder_ / "a", "aa");
    write_file_durably(folder_ / "b", "bbb");
    MappedFile map(folder_ / "a");
    MappedFile moved(std::move(map));
    EXPECT_EQ(to_string(moved.bytes()), "aa");
    moved = MappedFile(folder_ / "b");
    EXPECT_EQ(to_string(moved.bytes()), "bbb");
    EXPECT_EQ(moved.path(), folder_ / "b");
}

TEST_F(FileTest, PiecesAreReadFromAnywhereAndMissingOnesNamed) {
    write_file_durably(folder_ / "a", "0123456789");
    InputFile opened(folder_ / "a");
    InputFile file(std::move(opened));
    EXPECT_EQ(file.size_bytes(), 10U);
    Bytes piece(4);
    file.read(3, piece);
    EXPECT_EQ(to_string(piece), "3456");
    file.read(10, std::span<std::byte>());
    expect_error(ErrorKind::BadData, folder_ / "a", [&] { file.read(7, piece); });
    fs::resize_file(folder_ / "a", 5);
    expect_error(ErrorKind::BadData, "ends at byte 5", [&] { file.read(3, piece); });
    file.read(1, piece);
    EXPECT_EQ(to_string(piece), "1234");
    write_file_durably(folder_ / "b", "b");
    file = InputFile(folder_ / "b");
    EXPECT_EQ(file.path(), folder_ / "b");
}

TEST_F(FileTest, AMissingFileIsMissingInput) {
    const fs::path path = folder_ / "none";
    expect_error(ErrorKind::MissingInput, path, [&] { MappedFile map(path); });
    expect_error(ErrorKind::MissingInput, path, [&] { InputFile file(path); });
    expect_error(ErrorKind::MissingInput, path, [&] { read_text_file(path, 10); });
    write_file_durably(folder_ / "file", "x");
    expect_error(ErrorKind::MissingInput, folder_ / "file/none", [&] { read_text_file(folder_ / "file/none", 10); });
}

TEST_F(FileTest, OnlyRegularFilesAreRead) {
    expect_error(ErrorKind::BadData, folder_, [&] { MappedFile map(folder_); });
    expect_error(ErrorKind::BadData, "/dev/zero", [] { read_text_file("/dev/zero", 10); });
    const fs::path pipe = folder_ / "pipe";  // nobody writes: opening it must not wait
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    expect_error(ErrorKind::BadData, pipe, [&] { read_text_file(pipe, 10); });
}

TEST_F(FileTest, TheSizeLimitIsExact) {
    const fs::path path = folder_ / "a.txt";
    write_file_durably(path, "12345");
    EXPECT_EQ(read_text_file(path, 5), "12345");
    expect_error(ErrorKind::BadData, path, [&] { read_text_file(path, 4); });
}

TEST_F(FileTest, EveryErrorSaysWhatCouldNotBeDoneWithWhichPath) {
    write_file_durably(folder_ / "a", "12345");
    OutputFile finished(folder_ / "out");
    finished.finish();
    const fs::path missing = folder_ / "none" / "a";
    const std::string here = folder_.string(), none = missing.string() + ": No such file or directory";
    Bytes piece(4);
    ASSERT_EQ(::mknod((folder_ / "socket").c_str(), S_IFSOCK | 0600, 0), 0);
    const std::vector<std::pair<std::string, std::function<void()>>> cases{
        {"cannot open " + none, [&] { MappedFile map(missing); }},
        {here + " is not a regular file", [&] { InputFile file(folder_); }},
        {here + "/a ends at byte 5, but 2 bytes at 5 are wanted; it had 5 bytes when it was opened",
         [&] { InputFile(folder_ / "a").read(3, piece); }},
        {"cannot read /proc/self/mem: Input/output error", [&] { InputFile("/proc/self/mem").read(0, piece); }},
        {"cannot read /proc/self/mem: Input/output error", [] { read_text_file("/proc/self/mem", 10); }},
        {here + "/a is larger than 4 bytes", [&] { read_text_file(folder_ / "a", 4); }},
        {"cannot create " + none, [&] { OutputFile file(missing); }},
        {"the folder " + here + "/none is not there; make it first", [&] { write_file_durably(missing, ""); }},
        {"cannot write " + here + "/out: Bad file descriptor", [&] { finished.write_text("x"); }},
        {"cannot fsync " + here + "/out: Bad file descriptor", [&] { finished.finish(); }},
        {here + " is a folder; name a file", [&] { write_file_durably(folder_, "x"); }},
        {"cannot open " + here + "/socket: No such device or address",
         [&] { write_file_durably(folder_ / "socket", "x"); }},
        {"cannot open the folder " + none, [&] { sync_folder(missing); }},
        {"cannot fsync the folder /proc: Invalid argument", [] { sync_folder("/proc"); }},
    };
    for (const auto& [message, call] : cases) {
        try {
            call();
            ADD_FAILURE() << "no error: " << message;
        } catch (const Error& error) {
            EXPECT_EQ(error.what(), message);
        }
    }
}

TEST_F(FileTest, OutputIsWrittenInPieces) {
    const fs::path path = folder_ / "out";
    OutputFile file(path);
    file.write_text("one ");
    file.write(to_bytes("two"));
    file.write({});
    file.finish();
    EXPECT_EQ(read_text_file(path, 100), "one two");
}

TEST_F(FileTest, WhatCannotBeCreatedIsOutput) {
    const fs::path path = folder_ / "none" / "out";
    expect_error(ErrorKind::Output, path, [&] { OutputFile file(path); });
    const fs::path link = folder_ / "link";
    fs::create_symlink(folder_ / "target", link);
    expect_error(ErrorKind::Output, link, [&] { OutputFile file(link); });
    EXPECT_FALSE(fs::exists(folder_ / "target"));
}

TEST_F(FileTest, WhatTheSystemFailsToCreateIsIo) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_error(ErrorKind::Io, folder_ / "out", [&] { OutputFile file(folder_ / "out"); });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(FailedCreation, IsOfThePlaceOrOfTheSystem) {
    for (int place : {EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM}) {
        EXPECT_EQ(kind_of_failed_creation(place), ErrorKind::Output) << place;
    }
    for (int system : {EDQUOT, EIO, EMFILE, ENOMEM, ENOSPC, EROFS, ESTALE}) {
        EXPECT_EQ(kind_of_failed_creation(system), ErrorKind::Io) << system;
    }
}

TEST_F(FileTest, AFullDiskIsAnIoError) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
    OutputFile file("/dev/full");
    expect_error(ErrorKind::Io, "/dev/full", [&] { file.write_text("x"); });
}

TEST_F(FileTest, FinishingTwiceIsAnError) {
    OutputFile file(folder_ / "out");
    file.finish();
    expect_error(ErrorKind::Io, folder_ / "out", [&] { file.finish(); });
}

TEST_F(FileTest, SyncNeedsAFolder) {
    EXPECT_NO_THROW(sync_folder(folder_));
    expect_error(ErrorKind::Io, folder_ / "none", [&] { sync_folder(folder_ / "none"); });
}

TEST_F(FileTest, NamesInAFolder) {
    fs::create_directory(folder_ / "held");
    for (const char* name : {"b", ".a", "c"}) write_file_durably(folder_ / "held" / name, "");
    EXPECT_EQ(names_in_folder(folder_ / "held"), (std::vector<std::string>{".a", "b", "c"}));
    EXPECT_TRUE(names_in_folder(folder_ / "none").empty());
    expect_error(ErrorKind::Io, folder_ / "held/b", [&] { names_in_folder(folder_ / "held/b"); });
}

TEST(PlainName, NamesThatStayInTheirFolder) {
    for (const char* name : {"a", "model-00001.safetensors", "...", "a b", "gr\xc3\xbc\xc3\x9f"}) {
        EXPECT_TRUE(is_plain_name(name)) << name;
    }
    for (const char* name : {"", ".", "..", "a/b", "/a", "..\\a", "a\nb", "\x7f"}) {
        EXPECT_FALSE(is_plain_name(name)) << name;
    }
    EXPECT_FALSE(is_plain_name(std::string_view("a\0b", 3)));
    EXPECT_TRUE(is_plain_name(std::string(255, 'a')));
    EXPECT_FALSE(is_plain_name(std::string(256, 'a')));
}

}  // namespace
}  // namespace vpp
