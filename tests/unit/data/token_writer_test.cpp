#include "data/token_writer.hpp"

#include "data/token_file.hpp"
#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using Numbers = std::vector<int64_t>;

class TokenWriter : public testing::Test {
  protected:
    /// The tokens that are read back, and where documents begin.
    std::pair<Numbers, Numbers> made(const TokenOrder& order) const {
        const TokensMade made = make_token_file(order);
        const detail::DocumentFile file = detail::open_documents(detail::open_token_file(order.out, "auto"));
        Numbers tokens(static_cast<size_t>(file.tokens.num_tokens));
        detail::read_tokens(file.tokens, 0, std::as_writable_bytes(std::span(tokens)));
        EXPECT_EQ(made.num_tokens, file.tokens.num_tokens);
        EXPECT_EQ(made.token_bytes, file.tokens.token_bytes);
        EXPECT_EQ(made.num_documents + 1, static_cast<int64_t>(file.begins.size()));
        return {tokens, file.begins};
    }

    std::string out() const { return folder_.path("x.bin"); }
    size_t num_files() const {
        const std::filesystem::directory_iterator files(folder_.path("."));
        return static_cast<size_t>(std::distance(begin(files), end(files)));
    }

    test::TemporaryFolder folder_;
    std::string a_ = folder_.write("a", "ab\n\nc"), b_ = folder_.write("b", "\xff");
};

TEST_F(TokenWriter, EachTextIsADocument) {
    EXPECT_EQ(made({out(), {a_, b_}}), std::pair(Numbers({'a', 'b', '\n', '\n', 'c', 255}), Numbers({0, 5, 6})));
    EXPECT_EQ(made({out(), {a_, b_}, false, 256, true}),
              std::pair(Numbers({'a', 'b', '\n', '\n', 'c', 256, 255, 256}), Numbers({0, 6, 8})));
}

TEST_F(TokenWriter, OrEachLineThatIsNotEmpty) {
    EXPECT_EQ(made({out(), {a_, b_}, true, 0}),
              std::pair(Numbers({'a', 'b', 0, 'c', 0, 255, 0}), Numbers({0, 3, 5, 7})));
}

TEST_F(TokenWriter, WhatFailsLeavesNoFileBehind) {
    const size_t before = num_files();
    const std::string empty = folder_.write("empty", ""), blank = folder_.write("blank", "\n\n");
    EXPECT_HAS(error_of(ErrorKind::BadData,
                        [&] {
                            make_token_file({out(), {a_, empty}});
                        }),
               "empty: the file is empty");
    EXPECT_HAS(error_of(ErrorKind::BadData,
                        [&] {
                            make_token_file({out(), {blank}, true});
                        }),
               "the texts have no line that is not empty");
    error_of(ErrorKind::MissingInput, [&] { make_token_file({out(), {folder_.path("none")}}); });
    EXPECT_HAS(error_of(ErrorKind::CommandLine,
                        [&] {
                            make_token_file({folder_.path("x"), {a_}});
                        }),
               "tokens are written to FILE.bin and FILE.idx (got ");
    EXPECT_HAS(error_of(ErrorKind::CommandLine,
                        [&] {
                            make_token_file({out(), {a_}, false, 65536});
                        }),
               "an end token is a number from 0 to 65535 (got 65536)");
    EXPECT_EQ(num_files(), before + 2);
    folder_.write("x.idx", "there");
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { make_token_file({out(), {a_}}); }), "x.idx is there already");
    EXPECT_FALSE(std::filesystem::exists(out()));
}

}  // namespace
}  // namespace vpp
