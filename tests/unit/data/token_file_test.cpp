// Forms of token files are seen in tokens_test, documents in documents_test.
#include "data/token_file.hpp"

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

TEST(TokenFile, AnIndexIsFoundBesideItsTokensAlone) {
    const test::TemporaryFolder folder;
    const std::string tokens = folder.write("x.bin", "abcd");
    EXPECT_EQ(index_beside(tokens), std::nullopt);
    EXPECT_EQ(open_token_file(tokens, "auto").num_tokens, 2);
    const std::string index = folder.write("x.idx", "no index");
    EXPECT_EQ(index_beside(tokens), index);
    EXPECT_EQ(index_beside(index), std::nullopt);
    EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { open_token_file(tokens, "auto"); }), "x.idx: no index of");
}

TEST(TokenFile, AnIndexOfTheFileBesideIsNotCalledDamaged) {
    const test::TemporaryFolder folder;
    const std::string text = folder.write("x.txt", "some text");
    folder.write("x.bin", test::raw<uint16_t>({1, 2, 3}));
    folder.write("x.idx", std::string("MMIDIDX\0\0", 9) + test::raw<uint64_t>({1}) + '\x08' +
                              test::raw<uint64_t>({1, 2}) + test::raw<int32_t>({3}) + test::raw<int64_t>({0, 0, 1}));
    EXPECT_EQ(open_token_file(folder.path("x.bin"), "auto").num_tokens, 3);
    EXPECT_EQ(test::error_of(ErrorKind::BadData, [&] { open_token_file(text, "auto"); }),
              text +
                  ": its index does not fit it (got a last sequence of 3 tokens at byte 0, and the file has 9 "
                  "bytes); x.idx belongs to x.bin: name that file, or for a text data.kind = \"text\"");
}

}  // namespace
}  // namespace vpp::detail
