#include "graph/torch_errors.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "graph/op_names.hpp"

namespace vpp {

namespace {

/// The line of `text` from `begin` on; empty where it has none.
std::string_view line_from(std::string_view text, std::string_view begin) {
    const size_t at = text.find(begin);
    if (at == std::string_view::npos) return "";
    text = text.substr(at);
    return text.substr(0, text.find('\n'));
}

/// What an exception of Python says that a script raises: behind the trace, whose lines are indented or names of ops.
std::string_view behind_trace(std::string_view text) {
    constexpr std::string_view kBegin = "The following operation failed in the TorchScript interpreter.\n";
    constexpr std::string_view kBuiltin = "builtins.";
    if (!text.starts_with(kBegin)) return text;
    std::string_view rest = text.substr(kBegin.size());
    const auto is_trace = [&] {
        const auto begins = [&](std::string_view word) { return rest.starts_with(word); };
        return begins(" ") || begins("\n") || begins("Traceback") ||
               !failed_op(rest.substr(0, rest.find('\n'))).empty();
    };
    while (is_trace()) {
        const size_t end = rest.find('\n');
        if (end == std::string_view::npos) return text;
        rest.remove_prefix(end + 1);
    }
    if (rest.empty()) return text;
    if (rest.starts_with(kBuiltin)) rest.remove_prefix(kBuiltin.size());
    return rest;
}

constexpr std::string_view kFull = "CUDA out of memory.";

/// What a card's allocator says, without its advice, or CUDA where it wanted memory by itself.
std::string memory_words(std::string_view text) {
    std::string_view line = line_from(text, kFull);
    for (const char* begin :
         {"CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED",
          // A library's handle is made when its first op runs; on a full card there is no room for it.
          "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
          "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
          "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"}) {
        if (line.empty()) line = line_from(text, begin);
    }
    line = line.substr(0, line.find(" If reserved but unallocated"));
    while (line.ends_with('.')) line.remove_suffix(1);
    return std::string(line);
}

/// The kernel that LibTorch says has no exact form; empty when the text is not about one.
std::string inexact_kernel(std::string_view text) {
    const size_t end = text.find(" does not have a deterministic implementation");
    if (end == std::string_view::npos) return "";
    text = text.substr(0, end);
    text.remove_prefix(text.rfind('\n') + 1);  // none: npos + 1 is 0
    return core_of(text);
}

/// What to do about an op's failure; empty where that is not known.
std::string advice_for(std::string_view op, std::string_view core) {
    if (core.find("elements in a list but found") != std::string_view::npos) {
        return "; if the model was traced, it has the path that its example took: script the part whose path depends "
               "on values";
    }
    if (core.find("cannot be converted to type") != std::string_view::npos &&
        core.find("without overflow") != std::string_view::npos) {
        return "; if the model was traced, it has the dtypes that its example had: trace it under torch.autocast of "
               "train.precision";
    }
    if (core.find("out=... arguments don't support automatic differentiation") != std::string_view::npos) {
        return "; a traced model does not know of torch.no_grad, under which such functions may be called (as in "
               "spectral_norm): compute what they write of value.detach(), script the model, or take weight_norm or a "
               "scripted layer of your own in place of spectral_norm";
    }
    if (op.ends_with(" in 'loss'") && core.find("Expected target size") != std::string_view::npos) {
        return "; classes are taken from dimension 1; if they lie along the last one: loss.class_dim = -1";
    }
    return "";
}

constexpr std::string_view kAssert = "CUDA error: device-side assert triggered";

/// Behind these "the process must be terminated and relaunched" (CUDA's runtime API, cudaError_t), and none is about
/// what an op was given.
constexpr std::string_view kOfFailedCards[] = {
    "CUDA error: uncorrectable ECC error encountered",
    "CUDA error: uncorrectable NVLink error detected during the execution",
    "CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
    "CUDA error: an illegal memory access was encountered",
    "CUDA error: the launch timed out and was terminated",
    "CUDA error: hardware stack error",
    "CUDA error: an illegal instruction was encountered",
    "CUDA error: misaligned address",
    "CUDA error: invalid program counter",
    "CUDA error: operation not supported on global/shared address space",
    "CUDA error: tensor memory not completely freed",
    "CUDA error: unspecified launch failure",
    "CUDA error: unknown error",
};

}  // namespace

bool tells_of_full_device(const std::exception& error) {
    return !line_from(error.what(), kFull).empty();
}

std::string core_of(std::string_view text) {
    constexpr std::string_view kInScripts = "RuntimeError: ";
    const size_t marked = text.rfind(kInScripts);
    text = marked == std::string_view::npos ? behind_trace(text) : text.substr(marked + kInScripts.size());
    return std::string(text.substr(0, text.find('\n')));
}

std::string first_line(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    return std::string(text.substr(0, text.find('\n')));
}

std::string op_failure(const std::string& op, std::string_view text) {
    std::string core = core_of(text);
    const std::string advice = advice_for(op, core);
    if (!advice.empty() && core.ends_with('.')) core.pop_back();
    return op + " fails: " + printable(core) + advice;
}

std::string model_failure(std::string_view text) {
    const std::string op = failed_op(text);
    return op.empty() ? "the model fails: " + std::string(text) : op_failure(op, text);
}

void throw_if_known(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error)) throw std::bad_alloc();
    const std::string_view text = error.what();
    if (const std::string words = memory_words(text); !words.empty()) {
        throw Error(ErrorKind::OutOfMemory,
                    "the device has no memory left: " + words +
                        "; use more stages, smaller microbatches (a larger pipeline.num_microbatches), "
                        "pipeline.recompute, or fewer ranks a card");
    }
    if (text.find(kAssert) != std::string_view::npos) {
        throw Error(ErrorKind::BadData,
                    "the model fails: an op on the card was given what it cannot take, most often an index out of "
                    "range (" +
                        std::string(kAssert) +
                        "; the card's own words stand above); it ran here or before; try mesh.device = \"cpu\", or "
                        "CUDA_LAUNCH_BLOCKING=1 in the environment, to learn where");
    }
    if (const std::string kernel = inexact_kernel(text); !kernel.empty()) {
        throw Error(ErrorKind::BadData, "the model fails: " + kernel +
                                            " has no form on cards that gives the same bits every time; use another "
                                            "op in the model, or mesh.device = \"cpu\"");
    }
    const auto failed = std::ranges::find_if(
        kOfFailedCards, [&](std::string_view words) { return text.find(words) != std::string_view::npos; });
    if (failed != std::end(kOfFailedCards)) {
        throw Error(ErrorKind::RankLost, "the card has failed (" + std::string(*failed) +
                                             "); look for Xid in the kernel's log (dmesg) and start the job again, "
                                             "without this card if it fails again");
    }
    if (text.find("can't allocate memory") != std::string_view::npos) throw std::bad_alloc();
}

void run_known(const std::function<void()>& work, const std::string& position) {
    try {
        work();
    } catch (const c10::Error& error) {
        try {
            throw_if_known(error);
        } catch (const Error& known) {
            throw Error(known.kind(), position + known.what());
        }
        throw;
    }
}

}  // namespace vpp
