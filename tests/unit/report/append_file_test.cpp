#include "report/append_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "unit/report/scratch.hpp"
#include "unit/report/size_limit.hpp"

namespace vpp {
namespace {

std::optional<uint64_t> leading_number(std::string_view line) {
    uint64_t step = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    return error == std::errc() ? std::optional(step) : std::nullopt;
}

class AppendFileTest : public test::Scratch {
  protected:
    std::filesystem::path path_ = folder_ / "file";
};

TEST_F(AppendFileTest, PiecesFollowWhatIsThere) {
    put(path_, "a");
    AppendFile file(path_, logger_);
    EXPECT_FALSE(file.ends_a_line());
    EXPECT_TRUE(file.append("b\n"));
    EXPECT_TRUE(file.ends_a_line());
    EXPECT_EQ(content(path_), "ab\n");
}

TEST_F(AppendFileTest, WhatHasNoRoomIsTakenOffAndSaidOnce) {
    AppendFile file(path_, logger_);
    file.append("1234");
    {
        const test::SizeLimit limit(6);
        EXPECT_FALSE(file.append("5678"));
        EXPECT_FALSE(
            file.append("9"
                        "0ab"));
    }
    EXPECT_FALSE(file.is_torn());
    EXPECT_EQ(content(path_), "1234");
    EXPECT_EQ(file.num_lost(), 2);
    EXPECT_TRUE(file.append("5678"));
    EXPECT_EQ(content(path_), "12345678");
    const std::string log = log_.str();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_NE(log.find("cannot write to " + path_.string() +
                       ": no room for the whole of it; training goes on, and what happens is missing there until "
                       "there is room"),
              std::string::npos)
        << log;
}

TEST_F(AppendFileTest, WhatIsNoFileIsRefused) {
    const auto refusal = [&](const std::filesystem::path& path) {
        try {
            const AppendFile file(path, logger_);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Output);
            return std::string(error.what());
        }
        return std::string();
    };
    const std::string here = folder_.string();
    EXPECT_EQ(refusal(folder_), "cannot open " + here + ": Is a directory");
    EXPECT_EQ(refusal(folder_ / "none" / "file"), "cannot open " + here + "/none/file: No such file or directory");
    EXPECT_EQ(refusal("/dev/null"), "/dev/null is not a regular file; move it away");
}

/// A file whose copy cannot be written, as on a full disk.
class NoRoomForACopy : public AppendFileTest {
  protected:
    NoRoomForACopy() { std::filesystem::create_directory(path_.string() + ".tmp"); }
};

TEST_F(NoRoomForACopy, WhatIsLaterIsCutOffAllTheSame) {
    put(path_, "1 a\n9 b\n");
    EXPECT_EQ(cut_lines_after(path_, 2, leading_number, logger_).num_later, 1);
    EXPECT_EQ(content(path_), "1 a\n");
}

TEST_F(NoRoomForACopy, LinesMoveUpOverThoseThatAreDropped) {
    std::string before = "1 a\n9\n2 b\n", after = "1 a\n2 b\n";
    for (int line = 0; line < 300'000; ++line) {
        const std::string text = "2 " + std::to_string(line) + "\n";
        before += line % 100'000 == 7 ? "9 later\n" + text : text;
        after += text;
    }
    put(path_, before + "9 last\n");
    const CutResult cut = cut_lines_after(path_, 2, leading_number, logger_);
    EXPECT_EQ(cut.num_kept, 300'002);
    EXPECT_EQ(cut.num_later, 5);
    EXPECT_TRUE(content(path_) == after);
}

TEST_F(AppendFileTest, OnlyLinesThatMoveOverEachOtherTakeACopy) {
    const auto is_same_file_behind = [&](const std::string& before, const std::string& after) {
        struct stat old {
        }, now{};
        put(path_, before);
        ::stat(path_.c_str(), &old);
        cut_lines_after(path_, 2, leading_number, logger_);
        ::stat(path_.c_str(), &now);
        EXPECT_EQ(content(path_), after);
        return old.st_ino == now.st_ino;
    };
    const std::string later = "3 a step that is later\n";
    EXPECT_TRUE(is_same_file_behind("1 a\n" + later + later, "1 a\n"));
    EXPECT_TRUE(is_same_file_behind("1 a\n" + later + "2 saved late\n" + later, "1 a\n2 saved late\n"));
    EXPECT_FALSE(is_same_file_behind("1 a\n9\n2 longer\n", "1 a\n2 longer\n"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(AppendFileTest, ALinkIsNotFollowedToBeCut) {
    put(folder_ / "target", "1 a\n9 b\n");
    std::filesystem::create_symlink("target", path_);
    try {
        cut_lines_after(path_, 2, leading_number, logger_);
        ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Output);
        EXPECT_EQ(error.what(), "cannot cut " + path_.string() + ": Too many levels of symbolic links");
    }
    EXPECT_EQ(content(folder_ / "target"), "1 a\n9 b\n");
}

TEST_F(AppendFileTest, LinesBeginAtTheStartOfALine) {
    put(path_, "1 torn");
    LineFile file(path_, logger_);
    file.append("2");
    file.append("3");
    EXPECT_EQ(content(path_), "1 torn\n2\n3\n");
}

TEST_F(AppendFileTest, LinesOfLaterStepsAreCutOff) {
    put(path_, "1 a\n9 b\nno number\n2 c\n3 d\n2 torn");
    const CutResult cut = cut_lines_after(path_, 2, leading_number, logger_);
    EXPECT_EQ(content(path_), "1 a\n2 c\n");
    EXPECT_EQ(cut.num_kept, 2);
    EXPECT_EQ(cut.num_later, 2);
    EXPECT_EQ(cut.num_damaged, 2);
    EXPECT_EQ(cut_lines_after(folder_ / "none", 2, leading_number, logger_).num_kept, 0);
    put(path_, "0 first\n1 one\n");
    EXPECT_EQ(cut_lines_after(path_, -1, leading_number, logger_).num_later, 2);
    EXPECT_EQ(content(path_), "");
}

}  // namespace
}  // namespace vpp
