#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

#include "unit/base/errors.hpp"

namespace vpp {
namespace {

using test::expect_error;

nlohmann::json parsed_json(const std::string& text, JsonLimits limits = {}) {
    return parse_json(text, limits, "a.json");
}

TEST(JsonText, ReadsWhatItIsGiven) {
    const auto value = parsed_json(" {\"a\": [1, 2], \"b\": {\"a\": \"x\"}} \n");
    EXPECT_EQ(value["a"].size(), 2u);
    EXPECT_EQ(value["b"]["a"], "x");
}

TEST(JsonText, SyntaxErrorsNameTheSource) {
    for (const char* text : {"", "{", "{\"a\"}", "[1,]", "{} x", "{\"a\": nul}", "\"\xff\""}) {
        expect_error(ErrorKind::BadData, "a.json: not the JSON expected", [&] { parsed_json(text); });
    }
}

TEST(JsonText, DuplicateKeysAreRefusedAtEveryLevel) {
    expect_error(ErrorKind::BadData, "the key 'a' is there twice", [] { parsed_json("{\"a\": 1, \"a\": 1}"); });
    expect_error(ErrorKind::BadData, "twice", [] { parsed_json("{\"b\": {\"a\": 1, \"\\u0061\": 2}}"); });
    EXPECT_NO_THROW(parsed_json("{\"a\": {\"a\": 1}, \"b\": {\"a\": 1}}"));
}

TEST(JsonText, DepthIsBounded) {
    EXPECT_NO_THROW(parsed_json("[[[1]]]", {.max_depth = 3}));
    expect_error(ErrorKind::BadData, "a.json: JSON nested deeper than 3 levels",
                 [] { parsed_json("[[[[1]]]]", {.max_depth = 3}); });
    expect_error(ErrorKind::BadData, "deeper than 4", [] { parsed_json(std::string(10'000'000, '[')); });
}

TEST(JsonText, NumberOfValuesIsBounded) {
    EXPECT_NO_THROW(parsed_json("[1,2,3]", {.max_values = 4}));
    expect_error(ErrorKind::BadData, "more than 3 JSON values", [] { parsed_json("[1,2,3]", {.max_values = 3}); });
    expect_error(ErrorKind::BadData, "a.json: more than 3 JSON values",
                 [] { parsed_json("{\"a\":1,\"b\":2}", {.max_values = 3}); });
}

TEST(JsonText, ANulByteDoesNotHideWhatFollows) {
    expect_error(ErrorKind::BadData, "a.json: a NUL byte in JSON text",
                 [] { parsed_json(std::string("{}\0{\"a\":1}", 10)); });
}

TEST(JsonText, MessagesCannotSteerATerminal) {
    const auto error = test::caught_error([] { parsed_json("{\"\x1b[2J\": 1}"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(std::string(error->what()).find('\x1b'), std::string::npos);
}

TEST(JsonText, AnErrorQuotesTheBeginningOfALongText) {
    for (const std::string start : {"", "a", "aa"}) {
        std::string text = "\"" + start;
        for (int i = 0; i < 100'000; ++i) text += "\xe2\x82\xac";  // each of three bytes
        const auto error = test::caught_error([&] { parsed_json(text); });
        ASSERT_TRUE(error);
        const std::string said = error->what();
        EXPECT_TRUE(said.starts_with("a.json: not the JSON expected: [json.exception.parse_error.101]")) << said;
        EXPECT_TRUE(said.ends_with("\xe2\x82\xac...")) << said;
        EXPECT_LT(said.size(), 400u);
    }
}

TEST(JsonText, BytesThatAreNoUtf8AreReplaced) {
    const nlohmann::ordered_json value{{"b", "f\xff"}, {"a", 1}};
    EXPECT_EQ(json_text(value), "{\"b\":\"f\xef\xbf\xbd\",\"a\":1}");
    EXPECT_EQ(json_text(nlohmann::json(value), 1), "{\n \"a\": 1,\n \"b\": \"f\xef\xbf\xbd\"\n}");
}

}  // namespace
}  // namespace vpp
