#include "graph/torch_memory.hpp"

#include <c10/util/Exception.h>

#include <new>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace vpp {

void throw_if_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error)) throw std::bad_alloc();
    if (const auto* device = dynamic_cast<const c10::OutOfMemoryError*>(&error)) {
        throw Error(ErrorKind::OutOfMemory,
                    std::string("the device has no memory left: ") + device->what_without_backtrace() +
                        "; use more stages, smaller microbatches (a larger "
                        "pipeline.num_microbatches), pipeline.recompute, or fewer ranks a card");
    }
    if (std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos) throw std::bad_alloc();
}

}  // namespace vpp
