#include "data/windows.hpp"

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using test::error_of;
using test::raw;
using test::read_values;
using test::TemporaryFolder;
using Values = std::vector<int64_t>;

TokenFile token_file(const std::string& path, size_t offset_bytes, size_t token_bytes) {
    TokenFile file{InputFile(path), offset_bytes, token_bytes, 0};
    file.num_tokens = static_cast<int64_t>((file.file.size_bytes() - offset_bytes) / token_bytes);
    return file;
}

std::unique_ptr<Dataset> open_parts(const TemporaryFolder& folder, const std::vector<std::string>& parts, int64_t t,
                                    const std::string& kind = "text") {
    std::vector<TokenFile> files;
    for (size_t i = 0; i < parts.size(); ++i) {
        files.push_back(token_file(folder.write(std::to_string(i) + ".bin", parts[i]), 0, 1));
    }
    return make_windows(kind, std::move(files), t, 256);
}

TEST(Windows, SampleIIsTheWindowFromITimesT) {
    const TemporaryFolder folder;
    // Ten tokens, T = 3: windows [0,3], [3,6], [6,9]; the last token is a target only.
    const auto data = open_parts(folder, {"0123456789"}, 3);
    ASSERT_EQ(data->fields().num_samples, 3);
    EXPECT_EQ(data->fields().find("tokens"), 0);
    EXPECT_EQ(data->fields().find("targets"), 1);
    EXPECT_EQ(data->fields().fields[0].shape, Values{3});
    EXPECT_EQ(data->fields().fields[1].bound, 256);
    EXPECT_EQ(read_values<int64_t>(*data, 0, 0), (Values{'0', '1', '2'}));
    EXPECT_EQ(read_values<int64_t>(*data, 0, 1), (Values{'1', '2', '3'}));
    EXPECT_EQ(read_values<int64_t>(*data, 2, 0), (Values{'6', '7', '8'}));
    EXPECT_EQ(read_values<int64_t>(*data, 2, 1), (Values{'7', '8', '9'}));
}

TEST(Windows, ALastTokenThatWouldBeItsOwnTargetIsNoSample) {
    const TemporaryFolder folder;
    EXPECT_EQ(open_parts(folder, {"012345678"}, 3)->fields().num_samples, 2);
    EXPECT_EQ(open_parts(folder, {"0123456789"}, 3)->fields().num_samples, 3);
}

TEST(Windows, FilesFollowEachOtherAndNoWindowCrosses) {
    const TemporaryFolder folder;
    const auto data = open_parts(folder, {"abcde", "ABC", "0123456"}, 2);
    ASSERT_EQ(data->fields().num_samples, 2 + 1 + 3);
    EXPECT_EQ(read_values<int64_t>(*data, 1, 1), (Values{'d', 'e'}));
    EXPECT_EQ(read_values<int64_t>(*data, 2, 0), (Values{'A', 'B'}));
    EXPECT_EQ(read_values<int64_t>(*data, 3, 0), (Values{'0', '1'}));
    EXPECT_EQ(read_values<int64_t>(*data, 5, 1), (Values{'5', '6'}));
    EXPECT_EQ(data->where(4, 0), folder.path("2.bin") + ", sample 4 (tokens from 2 on)");
}

TEST(Windows, WidensTokensOfEveryWidthBehindAnOffset) {
    const TemporaryFolder folder;
    const std::string wide = raw<uint32_t>({7, 4'000'000'000, 1, 2});
    const auto four = make_windows(
        "tokens",
        [&] {
            std::vector<TokenFile> files;
            files.push_back(token_file(folder.write("wide.bin", "head" + wide), 4, 4));
            return files;
        }(),
        3, 0);
    EXPECT_EQ(read_values<int64_t>(*four, 0, 0), (Values{7, 4'000'000'000, 1}));
    const auto two = make_windows(
        "tokens",
        [&] {
            std::vector<TokenFile> files;
            files.push_back(token_file(folder.write("two.bin", raw<uint16_t>({65535, 1, 2})), 0, 2));
            return files;
        }(),
        2, 0);
    EXPECT_EQ(read_values<int64_t>(*two, 0, 0), (Values{65535, 1}));
}

TEST(Windows, AFileWithoutOneWindowIsRefused) {
    const TemporaryFolder folder;
    EXPECT_NO_THROW(open_parts(folder, {"abcd"}, 3));
    const std::string text = error_of(ErrorKind::BadData, [&] { open_parts(folder, {"abcdef", "abc"}, 3); });
    EXPECT_HAS(text, "1.bin: too short for one sample (got 3 tokens");
    EXPECT_HAS(text, "data.sequence_length is 3");
}

TEST(Windows, AHugeLengthDoesNotWrapAround) {
    const TemporaryFolder folder;
    error_of(ErrorKind::BadData, [&] { open_parts(folder, {"abcdef"}, INT64_MAX); });
}

TEST(Windows, SamplesOutsideAreBugs) {
    const TemporaryFolder folder;
    const auto data = open_parts(folder, {"abcd"}, 3);
    error_of(ErrorKind::Bug, [&] { read_values<int64_t>(*data, 1, 0); });
    error_of(ErrorKind::Bug, [&] { read_values<int64_t>(*data, -1, 0); });
    error_of(ErrorKind::Bug, [&] { data->where(1, 0); });
}

TEST(Windows, TheDigestFollowsBytesOrderAndKind) {
    const TemporaryFolder folder;
    const std::string digest = open_parts(folder, {"abcde", "ABCDE"}, 3)->digest();
    EXPECT_EQ(open_parts(folder, {"abcde", "ABCDE"}, 3)->digest(), digest);
    EXPECT_NE(open_parts(folder, {"ABCDE", "abcde"}, 3)->digest(), digest);
    EXPECT_NE(open_parts(folder, {"abcde", "ABCDF"}, 3)->digest(), digest);
    EXPECT_NE(open_parts(folder, {"abcdeABCDE"}, 3)->digest(), digest);
    EXPECT_NE(open_parts(folder, {"abcde", "ABCDE"}, 3, "tokens")->digest(), digest);
}

TEST(TokenKeys, FilesAndLengthAreDemandedWithTheirPlace) {
    Plan plan;
    plan.data.kind = "text";
    EXPECT_EQ(error_of(ErrorKind::Plan, [&] { check_token_keys(plan); }),
              "data.kind text needs files; try data.train = [\"tokens.bin\"]");
    plan.data.train = {"a.txt"};
    plan.positions["data.sequence_length"] = {"plan.toml", 3, 1, "sequence_length = 0"};
    const std::string text = error_of(ErrorKind::Plan, [&] { check_token_keys(plan); });
    EXPECT_HAS(text,
               "plan.toml:3:1: data.kind text needs data.sequence_length (got 0, expected at least 1); try 128\n");
    plan.data.sequence_length = 1;
    EXPECT_NO_THROW(check_token_keys(plan));
}

}  // namespace
}  // namespace vpp::detail
