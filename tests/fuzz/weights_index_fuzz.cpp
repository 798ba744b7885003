// Indices of sharded weights from hostile bytes: whatever comes, names of files beside the index, or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/weights_index.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const std::string_view text(reinterpret_cast<const char*>(data), size);
        const auto files = vpp::parse_weights_index(text, "fuzz.json");
        vpp::check(!files.empty(), "an index names something");
        for (const auto& [tensor, file] : files) {
            vpp::check(vpp::is_plain_name(file), "no name leads out of the folder");
        }
    } catch (const vpp::Error& error) {
        if (error.kind() != vpp::ErrorKind::BadData) throw;
    }
    return 0;
}
