#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::raw;
using test::read_values;
using test::TemporaryFolder;
using Values = std::vector<int64_t>;

constexpr int32_t kGpt2Magic = 20240520, kLlama3Magic = 20240801;

std::string header(int32_t magic, int32_t version, int32_t num_tokens) {
    std::vector<int32_t> values(256);
    values[0] = magic;
    values[1] = version;
    values[2] = num_tokens;
    return raw(values);
}

/// With sequences of two tokens, of a file of these bytes.
Plan plan_of(const TemporaryFolder& folder, const std::string& bytes, const std::string& dtype = "auto") {
    Plan plan;
    plan.data.kind = "tokens";
    plan.data.train = {folder.write("tokens.bin", bytes)};
    plan.data.sequence_length = 2;
    plan.data.token_dtype = dtype;
    return plan;
}

std::unique_ptr<Dataset> open_bytes(const TemporaryFolder& folder, const std::string& bytes,
                                    const std::string& dtype = "auto") {
    return open_dataset(plan_of(folder, bytes, dtype), Subset::Train);
}

std::string tokens_refusal(const std::string& bytes, const std::string& dtype = "auto") {
    const TemporaryFolder folder;
    const std::string text = error_of(ErrorKind::BadData, [&] { open_bytes(folder, bytes, dtype); });
    EXPECT_HAS(text, folder.path("tokens.bin"));
    return text;
}

TEST(Tokens, RawFilesAreUint16UnlessThePlanSaysOtherwise) {
    const TemporaryFolder folder;
    const auto two = open_bytes(folder, raw<uint16_t>({5, 50000, 7, 8, 9}));
    EXPECT_EQ(two->fields().num_samples, 2);
    EXPECT_EQ(read_values<int64_t>(*two, 0, 1), (Values{50000, 7}));
    EXPECT_EQ(read_values<int64_t>(*two, 1, 1), (Values{8, 9}));
    const auto four = open_bytes(folder, raw<uint32_t>({5, 128000, 7}), "uint32");
    EXPECT_EQ(read_values<int64_t>(*four, 0, 0), (Values{5, 128000}));
    EXPECT_EQ(four->fields().fields[0].bound, 0);
}

TEST(Tokens, LlmcHeadersSayTheWidth) {
    const TemporaryFolder folder;
    const auto gpt2 = open_bytes(folder, header(kGpt2Magic, 1, 3) + raw<uint16_t>({1, 50256, 3}));
    EXPECT_EQ(gpt2->fields().num_samples, 1);
    EXPECT_EQ(read_values<int64_t>(*gpt2, 0, 1), (Values{50256, 3}));
    const auto llama3 = open_bytes(folder, header(kLlama3Magic, 7, 3) + raw<uint32_t>({1, 128000, 3}), "uint32");
    EXPECT_EQ(read_values<int64_t>(*llama3, 0, 0), (Values{1, 128000}));
}

/// A Megatron index of one sequence.
std::string index_of(char code, int32_t length) {
    std::string text("MMIDIDX\0\0", 9);
    text += raw<uint64_t>({1}) + code + raw<uint64_t>({1, 2}) + raw<int32_t>({length}) + raw<int64_t>({0, 0, 1});
    return text;
}

TEST(Tokens, AnIndexOfMegatronSaysTheWidth) {
    const TemporaryFolder folder;
    const auto values_of = [&](char code, const std::string& bytes) {
        folder.write("tokens.idx", index_of(code, 3));
        return read_values<int64_t>(*open_bytes(folder, bytes), 0, 1);
    };
    EXPECT_EQ(values_of(1, raw<uint8_t>({7, 200, 9})), (Values{200, 9}));
    EXPECT_EQ(values_of(8, raw<uint16_t>({7, 50000, 9})), (Values{50000, 9}));
    EXPECT_EQ(values_of(4, raw<int32_t>({7, 128000, 9})), (Values{128000, 9}));
    EXPECT_EQ(values_of(5, raw<int64_t>({7, 128000, 9})), (Values{128000, 9}));
}

TEST(Tokens, TheirTypesAreThoseOfTheFilesThatAreRead) {
    const TemporaryFolder folder;
    Plan plan = plan_of(folder, raw<int32_t>({7, 8, 9}));
    EXPECT_EQ(token_types(plan), "uint16") << "what auto takes where nothing says it";
    plan.data.token_dtype = "uint32";
    EXPECT_EQ(token_types(plan), "uint32");
    plan.data.token_dtype = "auto";
    folder.write("tokens.idx", index_of(4, 3));
    EXPECT_EQ(token_types(plan), "uint32");
    plan.data.train.push_back(folder.write("more.bin", header(kGpt2Magic, 1, 3) + raw<uint16_t>({1, 2, 3})));
    EXPECT_EQ(token_types(plan), "uint32, uint16");
    plan.data.kind = "text";
    EXPECT_EQ(token_types(plan), "");
}

TEST(Tokens, AnIndexThatDoesNotFitIsRefused) {
    const TemporaryFolder folder;
    const std::string three = raw<uint16_t>({1, 2, 3}), path = folder.path("tokens.bin");
    const auto refusal = [&](const std::string& index, const std::string& dtype = "auto") {
        folder.write("tokens.idx", index);
        return error_of(ErrorKind::BadData, [&] { open_bytes(folder, three, dtype); });
    };
    EXPECT_EQ(refusal(index_of(8, 4)), path +
                                           ": its index does not fit it (got a last sequence of 4 tokens at byte 0, "
                                           "and the file has 6 bytes); copy both again");
    EXPECT_EQ(refusal(index_of(8, 3), "uint32"), path +
                                                     ": its index says 2 bytes a token and data.token_dtype says "
                                                     "uint32; try data.token_dtype = \"auto\"");
    EXPECT_EQ(refusal("something else"),
              folder.path("tokens.idx") +
                  ": no index of Megatron-LM, but it lies beside a token file of that name; "
                  "rename it, or name the type of the tokens: data.token_dtype = \"uint16\"");
    EXPECT_EQ(read_values<int64_t>(*open_bytes(folder, three, "uint16"), 0, 1), (Values{2, 3})) << "as it says";
}

TEST(Tokens, HeadersThatLieAreRefused) {
    const std::string tokens = raw<uint16_t>({1, 2, 3});
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic, 1, 4) + tokens), "got a count of 4 tokens, expected 3");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic, 1, 2) + tokens), "got a count of 2 tokens");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic, 1, -1) + tokens), "got a count of -1 tokens");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic, 1, INT32_MAX) + tokens), "cut short or damaged");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic, 2, 3) + tokens), "got 2, expected 1 with magic 20240520");
    EXPECT_HAS(tokens_refusal(header(kLlama3Magic, 1, 3) + tokens), "expected 7 with magic 20240801");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic, 1, 3) + tokens, "uint32"), "header says uint16");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic, 1, 0)), "too short for one sample");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic ^ 64, 1, 3) + tokens),
               "header is damaged: its first number (got 20240");
    EXPECT_HAS(tokens_refusal(header(kLlama3Magic ^ 1, 7, 3) + raw<uint32_t>({1, 2, 3})), "20240520 or 20240801");
    EXPECT_HAS(tokens_refusal(header(kGpt2Magic ^ 70, 3, 9) + tokens), "header is damaged");
}

TEST(Tokens, EveryTruncationOfAHeaderedFileIsRefused) {
    const TemporaryFolder folder;
    const std::string whole = header(kGpt2Magic, 1, 5) + raw<uint16_t>({1, 2, 3, 4, 5});
    EXPECT_NO_THROW(open_bytes(folder, whole));
    for (size_t size = 4; size < whole.size(); ++size) {
        EXPECT_THROW(open_bytes(folder, whole.substr(0, size)), Error) << size;
    }
}

TEST(Tokens, RawFilesOfABrokenSizeAreRefused) {
    EXPECT_HAS(tokens_refusal(""), "the file is empty");
    EXPECT_HAS(tokens_refusal("abc"), "got 3 bytes, expected a multiple of 2");
    EXPECT_HAS(tokens_refusal(raw<uint16_t>({1, 2, 3}), "uint32"), "expected a multiple of 4");
    EXPECT_HAS(tokens_refusal(raw<uint16_t>({1, 2})), "too short for one sample");
}

}  // namespace
}  // namespace vpp
