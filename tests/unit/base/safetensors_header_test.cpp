#include "base/safetensors_header.hpp"

#include "base/random.hpp"
#include "unit/base/errors.hpp"

namespace vpp {
namespace {

using test::expect_error;

/// A file of that header and that many bytes of data.
std::string file_of(const std::string& header, size_t data_bytes = 0) {
    std::string text;
    for (size_t i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xff);
    return text + header + std::string(data_bytes, 'd');
}

SafetensorsHeader parse_header(const std::string& file) {
    return parse_safetensors(std::as_bytes(std::span(file)), "a.st");
}

/// One tensor as JSON.
std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

void expect_refused(const std::string& part, const std::string& file) {
    SCOPED_TRACE(file.substr(0, 200));
    expect_error(ErrorKind::BadData, part, [&] { parse_header(file); });
    expect_error(ErrorKind::BadData, "a.st: ", [&] { parse_header(file); });
}

TEST(SafetensorsHeader, ReadsFilesOfOtherWriters) {
    // As Python's safetensors writes it: padded to 8 bytes, free order of members.
    const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + tensor("b", "BF16", "[2,2]", "[4,12]") +
                               ",\"a\":{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"I32\"}," +
                               tensor("none", "F64", "[0,3]", "[4,4]") + "}  ";
    const SafetensorsHeader got = parse_header(file_of(header, 12));
    ASSERT_EQ(got.entries.size(), 3u);
    EXPECT_EQ(got.metadata.at("format"), "pt");
    EXPECT_EQ(got.entries[0].name, "a");
    EXPECT_EQ(got.entries[0].dtype, DType::I32);
    EXPECT_TRUE(got.entries[0].shape.empty());
    EXPECT_EQ(got.entries[1].begin_bytes, 8 + header.size() + 4);
    EXPECT_EQ(got.entries[1].end_bytes, 8 + header.size() + 12);
    EXPECT_EQ(got.entries[2].shape, (std::vector<int64_t>{0, 3}));
}

TEST(SafetensorsHeader, AnEmptyFileOfTensorsIsFine) {
    EXPECT_TRUE(parse_header(file_of("{}")).entries.empty());
}

TEST(SafetensorsHeader, TheBeginningOfAFileIsEnough) {
    const std::string file = file_of("{" + tensor("a", "U8", "[4]", "[0,4]") + "}", 4);
    const auto bytes = std::as_bytes(std::span(file));
    const uint64_t end = safetensors_header_end(bytes.first(8), file.size(), "a.st");
    EXPECT_EQ(end, file.size() - 4);
    EXPECT_EQ(parse_safetensors_begin(bytes.first(end), file.size(), "a.st").entries.at(0).begin_bytes, end);
    expect_error(ErrorKind::BadData, "the tensors end at byte",
                 [&] { parse_safetensors_begin(bytes.first(end), file.size() + 1, "a.st"); });
}

TEST(SafetensorsHeader, LengthsAreChecked) {
    expect_refused("a.st: only 0 bytes, too short for a safetensors file", "");
    expect_refused("a.st: only 7 bytes, too short for a safetensors file", "1234567");
    expect_refused("a.st: the header does not begin with '{'", std::string(8, '\0'));
    expect_refused("a header of 18446744073709551615 bytes, at most 100000000", std::string(8, '\xff'));
    for (const char* begin : {"PK\x03\x04", "\x80\x02\x8a\x0a"}) {
        expect_refused(
            "a.st: no safetensors file but one of PyTorch (a zip or a pickle, as torch.save writes them); save its "
            "state_dict with safetensors.torch.save_file",
            begin + std::string(8, '\x08'));
    }
    std::string over = file_of("{}");
    over[0] = 3;
    expect_refused("a header of 3 bytes in a file of 10", over);
    expect_refused("does not begin", file_of(" {}"));
    expect_refused("does not begin", file_of("\xef\xbb\xbf{}"));
    expect_refused("NUL", file_of(std::string("{}\0 ", 4)));
}

TEST(SafetensorsHeader, TheHeaderIsStrictJson) {
    expect_refused("not the JSON expected", file_of("{"));
    expect_refused("not the JSON expected", file_of("{} {}"));
    expect_refused("deeper than 3", file_of("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"));
    expect_refused("'a' is there twice",
                   file_of("{" + tensor("a", "U8", "[1]", "[0,1]") + "," + tensor("a", "U8", "[1]", "[0,1]") + "}", 1));
    expect_refused("a.st: tensor 'a': not an object of dtype, shape and data_offsets", file_of("{\"a\":1}"));
    expect_refused("not an object of", file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}"));
    expect_refused("'data_offsets' is missing",
                   file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"offsets\":[0,1]}}", 1));
    expect_refused("__metadata__ is not an object", file_of("{\"__metadata__\":[]}"));
    expect_refused("__metadata__ 'k' is not a text", file_of("{\"__metadata__\":{\"k\":1}}"));
}

TEST(SafetensorsHeader, RangesTouchAndDoNotOverlap) {
    const auto two = [](const char* first, const char* second) {
        return "{" + tensor("a", "U8", "[4]", first) + "," + tensor("b", "U8", "[4]", second) + "}";
    };
    EXPECT_EQ(parse_header(file_of(two("[4,8]", "[0,4]"), 8)).entries.size(), 2u);
    expect_refused("but data goes on to byte", file_of(two("[0,4]", "[3,7]"), 7));
    expect_refused("but data goes on to byte", file_of(two("[0,4]", "[0,4]"), 4));
    expect_refused("a hole after byte", file_of(two("[0,4]", "[5,9]"), 9));
    expect_refused("a hole after byte", file_of(two("[1,5]", "[5,9]"), 9));
    expect_refused("the tensors end at byte", file_of(two("[0,4]", "[4,8]"), 9));
    expect_refused("ends at byte 8 of the data, which has 7", file_of(two("[0,4]", "[4,8]"), 7));
    expect_refused("the tensors end at byte", file_of("{}", 1));
}

TEST(SafetensorsHeader, DtypeShapeAndOffsetsAgree) {
    const auto one = [](const char* dtype, const char* shape, const char* offsets) {
        return file_of("{" + tensor("a", dtype, shape, offsets) + "}", 8);
    };
    EXPECT_NO_THROW(parse_header(one("F32", "[2]", "[0,8]")));
    expect_refused("float32[3] does not fill its 8 bytes", one("F32", "[3]", "[0,8]"));
    expect_refused("does not fill", one("F64", "[2]", "[0,8]"));
    expect_refused("a.st: tensor 'a': dtype is not a text",
                   file_of("{\"a\":{\"dtype\":1,\"shape\":[2],\"data_offsets\":[0,8]}}", 8));
    expect_refused("a.st: tensor 'a': the dtype 'float' is not one that vpp knows", one("float", "[2]", "[0,8]"));
    expect_refused("the dtype 'F8_E4M3' is not one", one("F8_E4M3", "[8]", "[0,8]"));
    expect_refused("shape holds -2", one("F32", "[-2]", "[0,8]"));
    expect_refused("expected whole numbers", one("F32", "[-0]", "[0,8]"));
    expect_refused("shape holds 2.0", one("F32", "[2.0]", "[0,8]"));
    expect_refused("shape holds \"2\"", one("F32", "[\"2\"]", "[0,8]"));
    expect_refused("shape is not a list", one("F32", "2", "[0,8]"));
    expect_refused("shape holds 18446744073709551615", one("F32", "[18446744073709551615]", "[0,8]"));
    expect_refused("shape holds", one("F32", "[99999999999999999999999]", "[0,8]"));
    expect_refused("a.st: tensor 'a': data_offsets is not a [begin, end]", one("F32", "[2]", "[8,0]"));
    expect_refused("data_offsets is not", one("F32", "[2]", "[0]"));
    expect_refused("data_offsets is not", one("F32", "[2]", "[0,4,8]"));
    expect_refused("data_offsets holds -8", one("F32", "[2]", "[-8,8]"));
    expect_refused("ends at byte 9223372036854775807", one("F32", "[2]", "[0,9223372036854775807]"));
}

TEST(SafetensorsHeader, ProductsDoNotOverflow) {
    const auto one = [](const std::string& dtype, const std::string& shape) {
        return file_of("{" + tensor("a", dtype, shape, "[0,0]") + "}");
    };
    // 2^61 elements of 8 bytes are 2^64 bytes: 0 when multiplied carelessly.
    expect_refused("does not fill", one("F64", "[2305843009213693952]"));
    expect_refused("not a possible one", one("U8", "[4294967296,4294967296]"));
    expect_refused("not a possible one", one("U8", "[9223372036854775807,9223372036854775807]"));
    std::string dims = "1";
    for (int i = 0; i < 64; ++i) dims += ",1";
    expect_refused("shape is not a list of at most 64", one("U8", "[" + dims + "]"));
}

TEST(SafetensorsHeader, NamesArePlainTextOfBoundedLength) {
    const auto named = [](const std::string& name) { return file_of("{" + tensor(name, "U8", "[0]", "[0,0]") + "}"); };
    EXPECT_NO_THROW(parse_header(named("model.l\xc3\xa9.weight")));
    EXPECT_NO_THROW(parse_header(named(std::string(1024, 'n'))));
    expect_refused("has 1025 bytes", named(std::string(1025, 'n')));
    expect_refused("is empty", named(""));
    expect_refused("control bytes", named("a\\u001b[2J"));
    expect_refused("control bytes", named("a\\u0000"));
    expect_refused("not the JSON expected", named("\xc3"));
    expect_refused("not the JSON expected", named("\xed\xa0\x80"));
}

TEST(SafetensorsHeader, WriterRefusesWhatTheFormatCannotHold) {
    const auto header_of = [](const std::string& name, const std::string& value) {
        const TensorBytes tensor{name, DType::U8, {0}, {}};
        return make_safetensors_header({&tensor}, {{"key", value}});
    };
    EXPECT_EQ(header_of("a", "v").size() % 64, 0u);
    expect_error(ErrorKind::BadData, "is reserved", [&] { header_of("__metadata__", "v"); });
    expect_error(ErrorKind::BadData, "is empty", [&] { header_of("", "v"); });
    expect_error(ErrorKind::BadData, "the text 'a\xff' is not UTF-8", [&] { header_of("a\xff", "v"); });
    expect_error(ErrorKind::BadData, "the text '\xff' is not UTF-8", [&] { header_of("a", "\xff"); });
}

TEST(SafetensorsHeader, RandomDamageEndsInAnErrorOrAWholeHeader) {
    const std::string good =
        file_of("{" + tensor("a", "F32", "[2,1]", "[0,8]") + "," + tensor("b", "U8", "[4]", "[8,12]") + "}", 12);
    int refused = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
        std::string bad = good;
        for (uint64_t hit = 0; hit <= i % 3; ++hit) {
            const uint64_t random = combine_key(i, hit);
            bad[random % (bad.size() - 12)] = static_cast<char>(random >> 32);
        }
        const auto error = test::caught_error([&] {
            for (const SafetensorsEntry& entry : parse_header(bad).entries) {
                ASSERT_LE(entry.begin_bytes, entry.end_bytes);
                ASSERT_LE(entry.end_bytes, bad.size());
            }
        });
        refused += error.has_value();
        if (error) {
            EXPECT_EQ(exit_code(error->kind()), 65) << error->what();
        }
    }
    EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace vpp
