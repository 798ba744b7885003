#pragma once
// LibTorch tells in the text of an error that memory ran out.
#include <exception>

namespace vpp {

/// Throws std::bad_alloc when the error is LibTorch's word for it, Error{OutOfMemory} when it is about a device's
/// memory; returns otherwise.
void throw_if_out_of_memory(const std::exception& error);

}  // namespace vpp
