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

TEST_F(TokenWriter, WhatBeginsAsNoTextIsRefused) {
    for (const std::string& text : {folder_.write("p", "\x89PNG\r\n\x1a\n"), folder_.path(".")}) {
        const std::string said = error_of(ErrorKind::BadData, [&] { make_token_file({out(), {a_, text}}); });
        EXPECT_HAS(said,
                   text == folder_.path("p") ? "p: it begins as a PNG picture does" : "a folder, where a file is read");
    }
    EXPECT_EQ(num_files(), 3U) << "neither tokens nor an index";
}

TEST_F(TokenWriter, OrEachLineThatIsNotEmpty) {
    EXPECT_EQ(made({out(), {a_, b_}, true, 0}),
              std::pair(Numbers({'a', 'b', 0, 'c', 0, 255, 0}), Numbers({0, 3, 5, 7})));
}

TEST_F(TokenWriter, LinesMayEndAsInWindows) {
    const std::string lines = folder_.write("lines", "ab\r\n\r\nc\rd\n\r\r\ne\r");
    EXPECT_EQ(made({out(), {lines, b_}, true}),
              std::pair(Numbers({'a', 'b', 'c', '\r', 'd', '\r', 'e', '\r', 255}), Numbers({0, 2, 5, 6, 8, 9})));
    EXPECT_EQ(made({out(), {folder_.write("one", "a\r\n")}, false, {}, true}).first, Numbers({'a', '\r', '\n'}));
    // The two bytes of an end in two pieces of the file.
    const std::string text = std::string((size_t{1} << 20) - 1, 'x') + "\r\n";
    EXPECT_EQ(made({out(), {folder_.write("long", text)}, true, {}, true}).second, Numbers({0, (1 << 20) - 1}));
}

TEST_F(TokenWriter, TheVocabularyAndTheEndDecideTheWidth) {
    for (const auto& [end, bytes] : {std::pair<int64_t, size_t>{255, 1}, {256, 2}, {65535, 2}, {65536, 4}}) {
        EXPECT_EQ(made({out(), {b_}, false, end, true}), std::pair(Numbers({255, end}), Numbers({0, 2})));
        EXPECT_EQ(make_token_file({out(), {b_}, false, end, true}).token_bytes, bytes);
    }
    // A tokenizer of 70000 tokens that makes token 69999 of every document.
    const std::string program = folder_.write(
        "program",
        "#!/bin/sh\nhead -c 9 >/dev/null\nprintf '\\2\\0\\0\\0\\0\\0\\0\\0\\160\\21\\1\\0\\2\\0\\0\\0'\n"
        "for each in 1 2; do head -c 9 >/dev/null; printf '\\1\\0\\0\\0\\0\\0\\0\\0\\157\\21\\1\\0'; done\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    TokenOrder order{out(), {folder_.write("c", "x\ny")}, true, 2, true, folder_.write("m.model", "m"), program};
    EXPECT_EQ(made(order), std::pair(Numbers({69999, 2, 69999, 2}), Numbers({0, 2, 4})));
    const TokensMade again = make_token_file(order);
    EXPECT_EQ(again.token_bytes, 4U);
    EXPECT_EQ(again.vocabulary, 70000);
}

TEST_F(TokenWriter, ATokenizerTakesDocumentsUpToALength) {
    const std::string program = folder_.write("program",
                                              "#!/bin/sh\nhead -c 9 >/dev/null\nprintf "
                                              "'\\2\\0\\0\\0\\0\\0\\0\\0\\54\\1\\0\\0\\2\\0\\0\\0'\ncat >/dev/null\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const std::string large = folder_.write("large", "x");
    std::filesystem::resize_file(large, (uint64_t{16} << 20) + 1);
    const TokenOrder order{out(), {large}, false, {}, true, folder_.write("m.model", "m"), program};
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { make_token_file(order); }),
               "large: a tokenizer takes documents of up to 16 MiB, and one here is longer; cut the file, or take each "
               "line as a document with --lines");
    EXPECT_FALSE(std::filesystem::exists(out()));
    // A line that grows too long in the piece of the file in which it ends.
    const std::string lines = folder_.write("lines", std::string(uint64_t{16} << 20, 'x') + "x\ny");
    const TokenOrder by_lines{out(), {lines}, true, {}, true, order.tokenizer, program};
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { make_token_file(by_lines); }),
               "lines: a tokenizer takes documents of up to 16 MiB, and one here is longer");
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
    EXPECT_HAS(error_of(ErrorKind::CommandLine, [&] { make_token_file({folder_.path(".bin"), {a_}}); }), "/.bin)");
    EXPECT_HAS(error_of(ErrorKind::CommandLine,
                        [&] {
                            make_token_file({out(), {a_}, false, int64_t{1} << 31});
                        }),
               "an end token is a number from 0 to 2147483647 (got 2147483648)");
    EXPECT_EQ(num_files(), before + 2);
    folder_.write("x.idx", "there");
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { make_token_file({out(), {a_}}); }), "x.idx is there already");
    EXPECT_FALSE(std::filesystem::exists(out()));
}

}  // namespace
}  // namespace vpp
