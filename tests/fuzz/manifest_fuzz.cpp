// Manifests of checkpoints from hostile bytes: whatever comes, a manifest that is written and read as itself, or an
// Error. Each input is read as it is, and again with the checksum that fits it: else nothing would get past that.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "checkpoint/folder_names.hpp"
#include "checkpoint/manifest.hpp"

namespace {

/// FORMAT.md: the text ends with these, around 32 digits that are '0' while the checksum is formed.
constexpr std::string_view kBefore = ",\n  \"checksum\": \"";
constexpr std::string_view kAfter = "\"\n}\n";
constexpr size_t kDigits = 32;

/// Puts the right checksum in; a text without one gets one.
std::string with_checksum(std::string text) {
    const size_t tail = kDigits + kAfter.size();
    if (!text.ends_with(kAfter) || text.size() < tail + kBefore.size()) {
        text += std::string(kBefore) + std::string(kDigits, '0') + std::string(kAfter);
    }
    text.replace(text.size() - tail, kDigits, kDigits, '0');
    text.replace(text.size() - tail, kDigits, vpp::to_hex(vpp::hash_text(text)));
    return text;
}

void read(const std::string& text) {
    try {
        const vpp::Manifest manifest = vpp::manifest_from_text(text, "fuzz.json");
        for (const vpp::ShardRecord& shard : manifest.shards) {
            vpp::check(vpp::is_plain_name(shard.file), "no name leads out of the folder");
        }
        const std::string again = vpp::manifest_to_text(manifest);
        vpp::check(vpp::manifest_to_text(vpp::manifest_from_text(again, "again.json")) == again,
                   "a manifest is read as it was written");
    } catch (const vpp::Error& error) {
        const bool legal = error.kind() == vpp::ErrorKind::BadData || error.kind() == vpp::ErrorKind::Refused;
        if (!legal) throw;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    vpp::parse_step_folder(text);
    read(text);
    read(with_checksum(text));
    return 0;
}
