#include "graph/torch_memory.hpp"

#include <new>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace vpp {

namespace {

/// What a device's allocator says, without its advice; empty when the text is not about a device's memory. An op of a
/// TorchScript model has the text inside another one, and the type is lost.
std::string device_words(std::string_view text) {
    constexpr std::string_view kBegin = "CUDA out of memory.";
    const size_t begin = text.find(kBegin);
    if (begin == std::string_view::npos) return "";
    text = text.substr(begin);
    text = text.substr(0, text.find('\n'));
    text = text.substr(0, text.find(" If reserved but unallocated"));
    while (text.ends_with('.')) text.remove_suffix(1);
    return std::string(text);
}

}  // namespace

void throw_if_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error)) throw std::bad_alloc();
    const std::string words = device_words(error.what());
    if (!words.empty()) {
        throw Error(ErrorKind::OutOfMemory,
                    "the device has no memory left: " + words +
                        "; use more stages, smaller microbatches (a larger pipeline.num_microbatches), "
                        "pipeline.recompute, or fewer ranks a card");
    }
    if (std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos) throw std::bad_alloc();
}

}  // namespace vpp
