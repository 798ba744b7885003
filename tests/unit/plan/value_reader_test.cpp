#include "plan/value_reader.hpp"

#include <gtest/gtest.h>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::built_names;
using test::error_of;
using test::holds;

/// The value that `text` (as TOML) gives for a key, as TOML; else the first problem's message.
std::string read_error(const std::string& key, const std::string& text) {
    PlanSources sources;
    Problems problems;
    Node root = parse_document(sources, "p.toml", "x = " + text);
    const auto value = read_value(*find_key(key), key, *root.find("x"), built_names(), problems);
    if (value) return toml_text(*value);
    return problems.empty() ? "nothing" : error_of([&] { problems.raise(sources); }).problems()[0].message;
}

TEST(ValueReader, ReadsEveryType) {
    EXPECT_EQ(read_error("data.shuffle", "false"), "false");
    EXPECT_EQ(read_error("train.steps", "1_000"), "1000");
    EXPECT_EQ(read_error("optimizer.lr", "0.25"), "0.25");
    EXPECT_EQ(read_error("optimizer.lr", "1"), "1.0");
    EXPECT_EQ(read_error("model.file", "'a.pt'"), "\"a.pt\"");
    EXPECT_EQ(read_error("pipeline.schedule_file", "''"), "\"\"");
    EXPECT_EQ(read_error("model.file", "''"), "model.file is empty");
    EXPECT_EQ(read_error("model.inputs", "['a', 'b']"), "[\"a\", \"b\"]");
    EXPECT_EQ(read_error("optimizer.betas", "[0, 0.5]"), "[0.0, 0.5]");
    EXPECT_EQ(read_error("data.train", "['a']"), "[\"a\"]");
    EXPECT_EQ(read_error("data.train", "{ z = 'a', b = 'c' }"), "{ z = \"a\", b = \"c\" }");
    EXPECT_EQ(read_error("pipeline.schedule_type", "'SIMPLE_1F1B'"), "\"1F1B\"");
}

TEST(ValueReader, WrongTypesSayWhatToWrite) {
    EXPECT_EQ(read_error("train.steps", "'4'"),
              "train.steps has the wrong type (got text '4', expected integer); write it without quotes");
    EXPECT_EQ(read_error("train.steps", "4.0"),
              "train.steps has the wrong type (got number 4.0, expected integer); try 4");
    EXPECT_EQ(read_error("run.dir", "7"),
              "run.dir has the wrong type (got integer 7, expected text); try text in quotes, such as \"runs/gpt\"");
    EXPECT_EQ(read_error("checkpoint.resume", "12"),
              "checkpoint.resume has the wrong type (got integer 12, expected text); try text in quotes, such as "
              "\"runs/gpt/checkpoints/step-00000500\"");
    for (const char* value : {"2026-12-01", "1.5", "true"}) {
        EXPECT_TRUE(holds(read_error("run.dir", value), "expected text); try text in quotes, such as")) << value;
    }
    EXPECT_TRUE(holds(read_error("train.precision", "16"), "expected word); try text in quotes, such as \"bf16\""));
    EXPECT_EQ(read_error("train.steps", "'many'"),
              "train.steps has the wrong type (got text 'many', expected integer)");
    EXPECT_TRUE(holds(read_error("model.inputs", "'a'"), "expected list of texts); try [\"a\"]"));
    EXPECT_TRUE(read_error("model.inputs", "'" + std::string(60, 'a') + "'").ends_with("aa\"]"));
    EXPECT_TRUE(read_error("model.inputs", "'" + std::string(61, 'a') + "'").ends_with("expected list of texts)"));
    EXPECT_TRUE(read_error("model.inputs", "\"a\\u0007\"").ends_with("expected list of texts)"));
    EXPECT_EQ(read_error("optimizer.betas", "'0.9,0.95'"),
              "optimizer.betas has the wrong type (got text '0.9,0.95', expected list of numbers); write it as a list: "
              "[0.9,0.95]");
    EXPECT_TRUE(holds(read_error("model.inputs", "[1]"), "holds an entry of the wrong type (got integer 1"));
    EXPECT_TRUE(holds(read_error("optimizer.betas", "['a', 1]"), "expected number"));
    EXPECT_TRUE(holds(read_error("optimizer.betas", "[0.1]"),
                      "optimizer.betas has the wrong length (got 1 number, expected 2)"));
    EXPECT_TRUE(holds(read_error("data.fields", "{ a = 1 }"), "for 'a' (got integer 1, expected text)"));
    for (const char* value : {"true", "2020-01-01", "{}", "[1]", "1.5", "nan"}) {
        EXPECT_TRUE(holds(read_error("mesh.threads", value), "wrong type")) << value;
    }
}

// Only where what stands in the quotes is of the right kind.
TEST(ValueReader, QuotesAreNamedWhereTheyAreTheMistake) {
    using Texts = std::vector<std::pair<const char*, const char*>>;
    const auto is_named = [](const char* key, const char* text) {
        return read_error(key, text).ends_with("; write it without quotes");
    };
    for (const auto& [key, text] : Texts{{"data.shuffle", "'true'"},
                                         {"train.steps", "'4'"},
                                         {"optimizer.lr", "'1'"},
                                         {"optimizer.lr", "'0.5'"},
                                         {"optimizer.betas", "'[0.9, 0.95]'"},
                                         {"model.inputs", "\"['a', 'b']\""},
                                         {"data.train", "\"['a']\""},
                                         {"data.train", "\"{ x = 'a' }\""},
                                         {"data.fields", "\"{ x = 'a' }\""}}) {
        EXPECT_TRUE(is_named(key, text)) << key << ' ' << read_error(key, text);
    }
    for (const auto& [key, text] : Texts{{"data.shuffle", "'1'"},
                                         {"train.steps", "'true'"},
                                         {"train.steps", "'1.5'"},
                                         {"optimizer.lr", "'[1]'"},
                                         {"optimizer.betas", "'0.9'"},
                                         {"optimizer.betas", "'a,b'"},
                                         {"model.inputs", "'4'"},
                                         {"data.fields", "'4'"},
                                         {"pipeline.memory_limit", "'true'"}}) {
        EXPECT_FALSE(is_named(key, text)) << key << ' ' << read_error(key, text);
    }
}

TEST(ValueReader, AWordMayStandForANumber) {
    EXPECT_EQ(read_error("pipeline.virtual_chunks", "'auto'"), "\"auto\"");
    EXPECT_EQ(read_error("pipeline.virtual_chunks", "3"), "3");
    EXPECT_EQ(read_error("pipeline.virtual_chunks", "'many'"),
              "pipeline.virtual_chunks is no number (got 'many', expected an integer or \"auto\")");
    EXPECT_TRUE(holds(read_error("pipeline.virtual_chunks", "'2'"), "; write it without quotes"));
    EXPECT_TRUE(holds(read_error("pipeline.virtual_chunks", "0"), "expected 1 to 4096"));
    EXPECT_TRUE(holds(read_error("pipeline.virtual_chunks", "1.5"), "wrong type"));
}

TEST(ValueReader, ASizeIsANumberOrBytes) {
    EXPECT_EQ(read_error("pipeline.memory_limit", "4"), "4.0");
    EXPECT_EQ(read_error("pipeline.memory_limit", "2.5"), "2.5");
    EXPECT_EQ(read_error("pipeline.memory_limit", "'8GiB'"), "\"8GiB\"");
    EXPECT_TRUE(holds(read_error("pipeline.memory_limit", "0.5"), "expected 1 to 1000000"));
    EXPECT_TRUE(holds(
        read_error("pipeline.memory_limit", "'8 bananas'"),
        "pipeline.memory_limit is no number of bytes (got '8 bananas', expected such as \"8GiB\" or \"512 MiB\")"));
    EXPECT_TRUE(holds(read_error("pipeline.memory_limit", "'4'"), "; write it without quotes"));
    EXPECT_TRUE(holds(read_error("pipeline.memory_limit", "'0GiB'"), "is no number of bytes"));
    EXPECT_TRUE(holds(read_error("pipeline.memory_limit", "true"), "expected number or text with a unit"));
}

TEST(ValueReader, RangesAreKept) {
    EXPECT_TRUE(
        holds(read_error("mesh.threads", "0"), "mesh.threads is out of range (got integer 0, expected 1 to 1024)"));
    EXPECT_TRUE(holds(read_error("mesh.dp", "0"), "got integer 0, expected 1 to 65536"));
    EXPECT_TRUE(holds(read_error("mesh.tp", "2"), "tensor parallelism is not built yet"));
    EXPECT_TRUE(holds(read_error("optimizer.lr", "nan"), "got no finite number"));
    EXPECT_TRUE(holds(read_error("optimizer.lr", "inf"), "out of range"));
    EXPECT_TRUE(holds(read_error("optimizer.betas", "[0.9, 1.0]"), "at least 0 and below 1"));
    EXPECT_TRUE(holds(read_error("train.seed", "-1"), "at least 0"));
    EXPECT_EQ(read_error("train.seed", "9223372036854775807"), "9223372036854775807");
}

TEST(ValueReader, WordsAreKnownPlannedOrUnknown) {
    EXPECT_EQ(
        read_error("pipeline.split_method", "'FLOP'"),
        "pipeline.split_method does not know 'FLOP' (expected one of MANUAL, UNIFORM, PARAMETERS, FLOPS, AUTO); did "
        "you mean 'FLOPS'?");
    EXPECT_TRUE(holds(read_error("mesh.transport", "'nccl'"), "is not compiled in: VPP_CUDA"));
    EXPECT_TRUE(holds(read_error("mesh.device", "'cuda'"), "is not compiled in: VPP_CUDA"));
    EXPECT_EQ(read_error("train.precision", "'bf16'"), "\"bf16\"");
    EXPECT_EQ(read_error("train.precision", "'bfloat16'"),
              "train.precision does not know 'bfloat16' (expected one of fp32, bf16, fp16); did you mean 'bf16'?");
    EXPECT_FALSE(holds(read_error("pipeline.split_method", "'bfloat16'"), "did you mean")) << "is no precision";
}

// A word that a registry adds is usable without a change here.
TEST(ValueReader, RegisteredWordsGoBeforePlannedOnes) {
    Names names = built_names();
    names.devices.push_back("cuda");
    Node node;
    node.kind = Node::Kind::Text;
    node.text = "cuda";
    Problems problems;
    EXPECT_TRUE(read_value(*find_key("mesh.device"), "k", node, names, problems));
}

TEST(ValueReader, TextsHaveNoControlCharactersAndAreNotEmpty) {
    EXPECT_TRUE(holds(read_error("run.dir", "\"a\\u001bb\""), "control character (got 'a?b')"));
    EXPECT_TRUE(holds(read_error("model.inputs", "[\"a\\u0000b\"]"), "control character"));
    EXPECT_TRUE(
        holds(read_error("data.fields", "{ \"a\\nb\" = 'x' }"), "a name that is empty or has control characters"));
    EXPECT_TRUE(holds(read_error("data.fields", "{ \"\" = 'x' }"), "a name that is empty"));
    EXPECT_TRUE(holds(read_error("run.dir", "''"), "run.dir is empty"));
    EXPECT_LT(read_error("run.dir", "[\"" + std::string(10'000, 'x') + "\"]").size(), 200U);
}

}  // namespace
}  // namespace vpp
