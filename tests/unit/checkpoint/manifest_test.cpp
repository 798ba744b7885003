#include "checkpoint/manifest.hpp"

#include "base/random.hpp"
#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;

Manifest sample() {
    Manifest manifest;
    manifest.save_id = "save-1";
    manifest.state = test::sample_state(50);
    manifest.shards = {{"shard-00000.safetensors", 72, {1, 2}}, {"shard-00001.safetensors", 0, {3, 4}}};
    return manifest;
}

/// The manifest with a piece of its text replaced and the checksum made to fit again: what a forger would write.
std::string forged(const std::string& from, const std::string& to) {
    std::string text = manifest_to_text(sample());
    const size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    text.replace(text.size() - 36, 32, std::string(32, '0'));
    return text.replace(text.size() - 36, 32, to_hex(hash_text(text)));
}

Manifest parse_manifest(const std::string& text) {
    return manifest_from_text(text, "m.json");
}

TEST(Manifest, RoundTrip) {
    const Manifest manifest = sample();
    const std::string text = manifest_to_text(manifest);
    EXPECT_EQ(text, manifest_to_text(manifest));
    const Manifest got = parse_manifest(text);
    EXPECT_EQ(got.format_version, 1);
    EXPECT_EQ(got.save_id, manifest.save_id);
    EXPECT_EQ(got.state.step, manifest.state.step);
    EXPECT_EQ(got.state.samples, manifest.state.samples);
    EXPECT_EQ(got.state.seed, manifest.state.seed);
    EXPECT_EQ(got.state.plan, manifest.state.plan);
    EXPECT_EQ(got.state.facts, manifest.state.facts);
    ASSERT_EQ(got.shards.size(), 2u);
    EXPECT_EQ(got.shards[0].file, manifest.shards[0].file);
    EXPECT_EQ(got.shards[0].size_bytes, 72u);
    EXPECT_EQ(got.shards[1].digest, manifest.shards[1].digest);
}

TEST(Manifest, TheChecksumIsTheOneOfTheFormatPage) {
    std::string text = manifest_to_text(sample());
    EXPECT_TRUE(text.ends_with("\"\n}\n"));
    const std::string digits = text.substr(text.size() - 36, 32);
    text.replace(text.size() - 36, 32, std::string(32, '0'));
    EXPECT_EQ(digits, to_hex(hash_text(text)));
    EXPECT_NO_THROW(parse_manifest(forged("save-1", "save-2")));
}

TEST(Manifest, EveryBitFlipIsFound) {
    const std::string good = manifest_to_text(sample());
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        const auto error = test::caught_error([&] { parse_manifest(bad); });
        ASSERT_TRUE(error) << "bit " << bit;
        ASSERT_EQ(exit_code(error->kind()), 65) << error->what();
    }
}

TEST(Manifest, EveryTruncationIsFound) {
    const std::string good = manifest_to_text(sample());
    for (size_t size = 0; size < good.size(); ++size) {
        ASSERT_TRUE(test::caught_error([&] { parse_manifest(good.substr(0, size)); })) << size;
    }
    EXPECT_TRUE(test::caught_error([&] { parse_manifest(good + "\n"); }));
}

TEST(Manifest, OtherVersionsAreRefusedWithBothNumbers) {
    expect_error(
        ErrorKind::BadData,
        "m.json: format version 2, this vpp reads version 1; use the vpp that wrote it, or start a new run folder",
        [] { parse_manifest(forged("\"format_version\": 1", "\"format_version\": 2")); });
    expect_error(ErrorKind::BadData, "format version 0, this vpp reads version 1",
                 [] { parse_manifest(forged("\"format_version\": 1", "\"format_version\": 0")); });
    // A later version may have other members: the version is told, not the members.
    expect_error(ErrorKind::BadData, "format version 2", [] {
        parse_manifest(forged("\"format_version\": 1", "\"format_version\": 2,\n  \"later\": {\"a\": 1}"));
    });
    expect_error(ErrorKind::BadData, "m.json: not the manifest of a vpp checkpoint",
                 [] { parse_manifest(forged("vpp checkpoint", "other")); });
}

TEST(Manifest, NamesThatLeaveTheFolderAreRefused) {
    for (const char* name :
         {"../shard", "/etc/passwd", "..", ".", "a/b", "a\\\\b", "", "a\\u0000b", "a\\u001b", "manifest.json"}) {
        SCOPED_TRACE(name);
        expect_error(ErrorKind::Refused, "is not a plain file name",
                     [&] { parse_manifest(forged("shard-00000.safetensors", name)); });
    }
}

TEST(Manifest, WrongFormsAreToldByKey) {
    const auto refused = [](const char* part, const char* from, const char* to) {
        expect_error(ErrorKind::BadData, part, [&] { parse_manifest(forged(from, to)); });
    };
    refused("m.json: 'step' is not a whole number", "\"step\": 50", "\"step\": -1");
    refused("'step' is not a whole number", "\"step\": 50", "\"step\": 5.5");
    refused("m.json: 'step' does not fit in 63 bits", "\"step\": 50", "\"step\": 18446744073709551615");
    refused("'samples' is missing", "\"samples\"", "\"sample\"");
    refused("11 members, expected 10", "\"step\": 50", "\"more\": 1, \"step\": 50");
    refused("'step' is there twice", "\"step\": 50", "\"step\": 50, \"step\": 51");
    refused("'save_id' is not 1 to 64", "save-1", "../save");
    refused("fact 'threads' is not a text", "\"threads\": \"1\"", "\"threads\": 1");
    refused("lists 'shard-00001.safetensors' twice", "shard-00000", "shard-00001");
    refused("'size_bytes' does not fit", "\"size_bytes\": 72", "\"size_bytes\": 9223372036854775808");
    refused("32 hexadecimal digits", "00000000000000010000000000000002", "0000000000000001000000000000000G");
    refused("JSON nested deeper than 3 levels", "\"step\": 50", "\"step\": [[[1]]]");
    refused("m.json: 'facts' is not an object", "\"facts\": {\n    \"model\": \"00ff\",\n    \"threads\": \"1\"\n  }",
            "\"facts\": 1");
    const std::string text = manifest_to_text(sample());
    const size_t shards = text.find("\"shards\": ["), end = text.find(']', shards) + 1;
    refused("m.json: 'shards' is not a list", text.substr(shards, end - shards).c_str(), "\"shards\": 1");
}

TEST(Manifest, WriterRefusesWhatCannotBeRead) {
    Manifest manifest = sample();
    manifest.state.facts["model"] = "\xff";
    expect_error(ErrorKind::BadData, "plan or facts of the checkpoint are not UTF-8; use plain names for files",
                 [&] { manifest_to_text(manifest); });
    manifest = sample();
    manifest.state.plan = std::string(kMaxManifestBytes, '#');
    expect_error(ErrorKind::BadData, "at most 16777216", [&] { manifest_to_text(manifest); });
    manifest = sample();
    manifest.shards[0].file = "../a";
    expect_error(ErrorKind::Bug, "plain names", [&] { manifest_to_text(manifest); });
    manifest = sample();
    manifest.format_version = 2;
    expect_error(ErrorKind::Bug, "version", [&] { manifest_to_text(manifest); });
    manifest = sample();
    manifest.shards[1].file = manifest.shards[0].file;
    expect_error(ErrorKind::Bug, "distinct", [&] { manifest_to_text(manifest); });
}

}  // namespace
}  // namespace vpp
