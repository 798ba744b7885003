#include "graph/model_output.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/runtime/print_handler.h>

#include <atomic>
#include <iostream>
#include <string>

#include "base/printable_lines.hpp"

namespace vpp {

namespace {

std::atomic<int64_t> prints{0};

/// Said where a thread of autograd multiplies before it does anything else on its card: LibTorch helps itself then.
constexpr const char* kHelpsItself = "Attempting to run cuBLAS, but there was no current CUDA context";

class PlainWarnings : public c10::WarningHandler {
  public:
    void process(const c10::Warning& warning) override {
        if (warning.msg().find(kHelpsItself) != std::string::npos) return;
        std::cerr << "vpp: warning of LibTorch or the model: " << printable_lines(warning.msg()) << std::flush;
    }
};

}  // namespace

void print_models_plainly() {
    static PlainWarnings warnings;
    c10::WarningUtils::set_warning_handler(&warnings);
    torch::jit::setPrintHandler([](const std::string& text) {
        ++prints;
        std::cerr << printable_lines(text) << std::flush;
    });
}

int64_t num_prints() {
    return prints;
}

}  // namespace vpp
