#include "graph/torch_memory.hpp"

#include <new>
#include <string_view>

namespace vpp {

void throw_if_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error)) throw std::bad_alloc();
    if (std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos) throw std::bad_alloc();
}

}  // namespace vpp
