#include "report/append_file.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <charconv>

#include "base/error.hpp"
#include "unit/report/scratch.hpp"

namespace vpp {
namespace {

/// Files may have so many bytes while it lives: stands for a full disk.
class SizeLimit {
  public:
    explicit SizeLimit(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        handler_ = ::signal(SIGXFSZ, SIG_IGN);
        rlimit limit = before_;
        limit.rlim_cur = bytes;
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~SizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        ::signal(SIGXFSZ, handler_);
    }

  private:
    rlimit before_{};
    void (*handler_)(int) = nullptr;
};

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
        const SizeLimit limit(6);
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

TEST_F(AppendFileTest, WhatCannotBeCutStaysAsItIs) {
    const std::filesystem::path target = folder_ / "run" / "lines";
    std::filesystem::create_directories(target.parent_path());
    put(target, "1 a\n9 b\n");
    std::filesystem::create_directory(target.string() + ".tmp");
    try {
        cut_lines_after(target, 2, leading_number, logger_);
        ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
        EXPECT_EQ(error.what(), "cannot create " + target.string() + ".tmp: Is a directory");
    }
    EXPECT_EQ(content(target), "1 a\n9 b\n");
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
