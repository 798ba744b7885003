// The talk with the child and all that a child can do wrong, played by shell scripts. What the program does with real
// models is in tests/cli/data_test.py.
#include "data/tokenizer.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using TokenList = std::vector<int32_t>;

class TokenizerTest : public testing::Test {
  protected:
    /// A program that takes the model "m" and then does this.
    std::string program(const std::string& commands) const {
        const std::string path = folder_.write("program", "#!/bin/sh\nhead -c 9 >/dev/null\n" + commands + "\n");
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        return path;
    }

    static std::string numbers(const std::string& octal) { return "printf '" + octal + "'"; }

    std::string refusal(const std::string& commands, const TokenizerLimits& limits = kPlain) const {
        const std::string path = program(commands);
        return error_of(ErrorKind::BadData, [&] { Tokenizer(model_, path, limits).encode(kText, "a.txt"); });
    }

    static constexpr TokenizerLimits kPlain{std::chrono::seconds(60), uint64_t{1} << 40};
    static constexpr std::byte kText[2] = {std::byte{'a'}, std::byte{'b'}};
    static constexpr const char* kReadText = "\nhead -c 10 >/dev/null\n";
    /// An answer of two numbers: a vocabulary of 300, and 2 for the end.
    const std::string facts_ = numbers(R"(\2\0\0\0\0\0\0\0\54\1\0\0\2\0\0\0)");
    test::TemporaryFolder folder_;
    std::string model_ = folder_.write("m.model", "m");
};

TEST_F(TokenizerTest, TheChildGetsTheModelAndDocuments) {
    // A confined child writes no file: what it was told comes back as tokens, a byte each.
    const std::string echo = R"(head -c 10 | od -An -v -tu1 | { read a b c d e f g h x y;
        [ "$a$b$c$d$e$f$g$h" = 20000000 ] && [ $x$y = 9798 ] && )" +
                             numbers(R"(\2\0\0\0\0\0\0\0\53\1\0\0\0\0\0\0)") + "; }";
    Tokenizer tokenizer(model_, program(facts_ + "\n" + echo + "\n" + echo), kPlain);
    EXPECT_EQ(tokenizer.vocabulary(), 300);
    EXPECT_EQ(tokenizer.end_token(), 2);
    EXPECT_EQ(tokenizer.encode(kText, "a.txt"), TokenList({299, 0}));
    EXPECT_EQ(tokenizer.encode(kText, "b.txt"), TokenList({299, 0}));
}

TEST_F(TokenizerTest, AModelWithoutAnEnd) {
    Tokenizer tokenizer(model_, program(numbers(R"(\2\0\0\0\0\0\0\0\54\1\0\0\377\377\377\377)")), kPlain);
    EXPECT_EQ(tokenizer.end_token(), std::nullopt);
}

TEST_F(TokenizerTest, WhatTheChildSaysOfTheModel) {
    const std::string reason = numbers(R"(\373\377\377\377\377\377\377\377oh\33no)");
    EXPECT_HAS(refusal(reason), "m.model: oh?no; it is broken, or no SentencePiece model: copy or train it anew");
    EXPECT_EQ(refusal(facts_ + kReadText + reason),
              "a.txt: oh?no; cut the file into smaller documents, or take each line as one with --lines; where short "
              "ones fail too, copy or train the model anew: " +
                  model_)
        << "once the model is loaded, the text may be what is too much";
}

TEST_F(TokenizerTest, AChildThatBreaks) {
    for (const auto& [before, blamed] : {std::pair<std::string, std::string>("", "m.model"),
                                         std::pair<std::string, std::string>(facts_ + "\n", "a.txt")}) {
        EXPECT_HAS(refusal(before + "kill -SEGV $$"),
                   blamed + ": SentencePiece crashes with it (signal 11, Segmentation fault)");
        EXPECT_HAS(refusal(before + "exit 7"), blamed + ": SentencePiece gives it up (code 7)");
        EXPECT_HAS(refusal(before + "exec sleep 100", {std::chrono::seconds(1), kPlain.memory_bytes}),
                   blamed + ": SentencePiece does not end with it (stopped after 1 s)");
    }
}

TEST_F(TokenizerTest, AnswersThatCannotBe) {
    EXPECT_HAS(refusal(numbers(R"(\2\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0)")), "m.model: its vocabulary is empty");
    EXPECT_HAS(refusal(facts_ + kReadText + numbers(R"(\1\0\0\0\0\0\0\0\54\1\0\0)")),
               "m.model: it makes token 300, outside of its vocabulary of 300");
    EXPECT_HAS(refusal(facts_ + kReadText + numbers(R"(\1\0\0\0\0\0\0\0\377\377\377\377)")),
               "it makes token -1, outside");
    EXPECT_HAS(refusal(facts_ + kReadText + numbers(R"(\301\0\0\0\0\0\0\0)")),
               "m.model: it makes 193 tokens of a document of 2 bytes");
    // The lowest number, whose opposite is none.
    EXPECT_HAS(refusal(numbers(R"(\0\0\0\0\0\0\0\200)")), "m.model: SentencePiece gives it up (code 0)");
}

TEST_F(TokenizerTest, FilesThatAreNotThere) {
    const std::string none = folder_.path("none"), empty = folder_.write("empty", "");
    EXPECT_HAS(error_of(ErrorKind::MissingInput, [&] { Tokenizer(none, program("")); }), "none");
    EXPECT_HAS(error_of(ErrorKind::MissingInput, [&] { Tokenizer(model_, none); }),
               "none: the program that works with SentencePiece models is not there; it is built with vpp and lies "
               "beside it: build again, or copy both");
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { Tokenizer(empty, none); }), "empty: the file is empty");
    std::filesystem::resize_file(empty, (uint64_t{256} << 20) + 1);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { Tokenizer(empty, none); }),
               "empty: no SentencePiece model: it has 268435457 bytes (at most 268435456)");
}

}  // namespace
}  // namespace vpp
