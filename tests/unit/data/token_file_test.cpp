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

}  // namespace
}  // namespace vpp::detail
