#include "checkpoint/manifest.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "checkpoint/folder_names.hpp"

namespace vpp {

namespace {

using nlohmann::json;

constexpr std::string_view kFormatName = "vpp checkpoint";
constexpr std::string_view kChecksumBegin = ",\n  \"checksum\": \"";
constexpr std::string_view kChecksumEnd = "\"\n}\n";
constexpr size_t kDigestDigits = 32;
// Three levels: the manifest, its list of shards, one shard.
constexpr JsonLimits kManifestLimits{.max_depth = 3, .max_values = 1'000'000};

/// The last line up to the digits and after them: the same in every version, so that any vpp can tell damage from age.
std::string with_checksum(std::string body, const std::string& digits) {
    return std::move(body) + std::string(kChecksumBegin) + digits + std::string(kChecksumEnd);
}

/// The checksum of a manifest: that of its text with '0' in place of each of the checksum's own digits.
Digest text_checksum(const std::string& body) {
    return hash_text(with_checksum(body, std::string(kDigestDigits, '0')));
}

/// Compares the checksum in the last line with the text.
void check_checksum(std::string_view text, const std::string& source) {
    const size_t tail_size = kChecksumBegin.size() + kDigestDigits + kChecksumEnd.size();
    const bool whole = text.size() >= tail_size && text.ends_with(kChecksumEnd) &&
                       text.substr(text.size() - tail_size).starts_with(kChecksumBegin);
    if (!whole) refuse_data(source, "cut off or damaged: it does not end with its checksum");
    const std::string_view digits = text.substr(text.size() - kChecksumEnd.size() - kDigestDigits, kDigestDigits);
    const Digest computed = text_checksum(std::string(text.substr(0, text.size() - tail_size)));
    if (digest_from_hex(digits) != computed) {
        refuse_data(source, "damaged: its checksum is " + to_hex(computed) + ", it says " + printable(digits));
    }
}

/// Members by key and type; every problem names the file and the key.
class Members {
  public:
    Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {
        if (!object.is_object()) refuse_data(where_, "not an object");
    }

    const json& at(const char* key) const {
        const auto found = object_.find(key);
        if (found == object_.end()) refuse_data(where_, std::string("'") + key + "' is missing");
        return *found;
    }

    std::string text(const char* key) const {
        const json& value = at(key);
        if (!value.is_string()) refuse_data(where_, std::string("'") + key + "' is not a text");
        return value.get<std::string>();
    }

    uint64_t number(const char* key) const {
        const json& value = at(key);
        if (!value.is_number_unsigned())
            refuse_data(where_, std::string("'") + key + "' is not a whole number from 0 on");
        return value.get<uint64_t>();
    }

    int64_t count(const char* key) const {
        const uint64_t value = number(key);
        if (value > uint64_t{INT64_MAX}) refuse_data(where_, std::string("'") + key + "' does not fit in 63 bits");
        return static_cast<int64_t>(value);
    }

    void expect_size(size_t size) const {
        if (object_.size() != size) {
            refuse_data(where_, std::to_string(object_.size()) + " members, expected " + std::to_string(size));
        }
    }

  private:
    const json& object_;
    std::string where_;
};

void check_version(const Members& members, const std::string& source) {
    if (members.text("format") != kFormatName) refuse_data(source, "not the manifest of a vpp checkpoint");
    const uint64_t version = members.number("format_version");
    if (version != static_cast<uint64_t>(kManifestVersion)) {
        throw UnknownVersion(ErrorKind::BadData, source + ": format version " + std::to_string(version) +
                                                     ", this vpp reads version " + std::to_string(kManifestVersion) +
                                                     "; use the vpp that wrote it, or start a new run folder");
    }
}

std::map<std::string, std::string> read_facts(const json& value, const std::string& source) {
    if (!value.is_object()) refuse_data(source, "'facts' is not an object");
    std::map<std::string, std::string> facts;
    for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) refuse_data(source, "fact '" + printable(key.substr(0, 100)) + "' is not a text");
        facts.emplace(key, text.get<std::string>());
    }
    return facts;
}

ShardRecord read_shard(const json& value, const std::string& source) {
    const Members members(value, source + ": shard");
    members.expect_size(3);
    ShardRecord shard;
    shard.file = members.text("file");
    if (!is_plain_name(shard.file) || shard.file == kManifestFile) {
        throw Error(ErrorKind::Refused, source + ": the shard name '" + printable(shard.file.substr(0, 100)) +
                                            "' is not a plain file name; the file was not written by vpp");
    }
    shard.size_bytes = static_cast<uint64_t>(members.count("size_bytes"));
    const auto digest = digest_from_hex(members.text("xxh3_128"));
    if (!digest) refuse_data(source, "the checksum of '" + shard.file + "' is not 32 hexadecimal digits");
    shard.digest = *digest;
    return shard;
}

std::vector<ShardRecord> read_shards(const json& value, const std::string& source) {
    if (!value.is_array()) refuse_data(source, "'shards' is not a list");
    std::vector<ShardRecord> shards;
    std::set<std::string> files;
    for (const json& item : value) {
        shards.push_back(read_shard(item, source));
        if (!files.insert(shards.back().file).second) refuse_data(source, "lists '" + shards.back().file + "' twice");
    }
    return shards;
}

/// The form that a written manifest has; a break of it is a bug of the caller.
void check_form(const Manifest& manifest) {
    check(manifest.format_version == kManifestVersion, "only the present manifest version is written");
    check(is_save_id(manifest.save_id), "a save id is 1 to 64 letters, digits, '-' and '_'");
    check(manifest.state.step >= 0 && manifest.state.samples >= 0, "step and samples are counts");
    std::set<std::string> files;
    for (const ShardRecord& shard : manifest.shards) {
        check(is_plain_name(shard.file) && shard.file != kManifestFile, "shard names are plain names");
        check(files.insert(shard.file).second, "shard names are distinct");
    }
}

}  // namespace

std::string manifest_to_text(const Manifest& manifest) {
    check_form(manifest);
    nlohmann::ordered_json root;
    root["format"] = kFormatName;
    root["format_version"] = manifest.format_version;
    root["save_id"] = manifest.save_id;
    root["step"] = manifest.state.step;
    root["samples"] = manifest.state.samples;
    root["seed"] = manifest.state.seed;
    root["facts"] = manifest.state.facts;
    root["shards"] = nlohmann::ordered_json::array();
    for (const ShardRecord& shard : manifest.shards) {
        root["shards"].push_back(
            {{"file", shard.file}, {"size_bytes", shard.size_bytes}, {"xxh3_128", to_hex(shard.digest)}});
    }
    root["plan"] = manifest.state.plan;
    std::string body;
    try {
        body = root.dump(2);
    } catch (const json::exception&) {
        throw Error(ErrorKind::BadData, "plan or facts of the checkpoint are not UTF-8; use plain names for files");
    }
    body.resize(body.size() - std::string_view("\n}").size());  // the object is closed after the checksum
    std::string text = with_checksum(body, to_hex(text_checksum(body)));
    if (text.size() > kMaxManifestBytes) {
        throw Error(ErrorKind::BadData, "a manifest of " + std::to_string(text.size()) + " bytes, at most " +
                                            std::to_string(kMaxManifestBytes) + " are written");
    }
    return text;
}

Manifest manifest_from_text(std::string_view text, const std::string& source) {
    check_checksum(text, source);
    const json root = parse_json(text, kManifestLimits, source);
    const Members members(root, source);
    check_version(members, source);
    members.expect_size(10);
    Manifest manifest;
    manifest.save_id = members.text("save_id");
    if (!is_save_id(manifest.save_id)) refuse_data(source, "'save_id' is not 1 to 64 letters, digits, '-' and '_'");
    manifest.state.step = members.count("step");
    manifest.state.samples = members.count("samples");
    manifest.state.seed = members.number("seed");
    manifest.state.plan = members.text("plan");
    manifest.state.facts = read_facts(members.at("facts"), source);
    manifest.shards = read_shards(members.at("shards"), source);
    return manifest;
}

}  // namespace vpp
