#include "graph/model_output.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/runtime/print_handler.h>

#include <atomic>
#include <iostream>
#include <mutex>
#include <set>
#include <string>

#include "base/printable_lines.hpp"

namespace vpp {

namespace {

std::atomic<int64_t> prints{0};

/// Said where a thread of autograd multiplies before it does anything else on its card: LibTorch helps itself then.
constexpr const char* kHelpsItself = "Attempting to run cuBLAS, but there was no current CUDA context";

/// Texts with numbers in them may be new every time: no more of them are remembered.
constexpr size_t kMostKnown = 1000;

/// Says each text once, as Python does. From any thread.
class PlainWarnings : public c10::WarningHandler {
  public:
    void process(const c10::Warning& warning) override {
        if (warning.msg().find(kHelpsItself) != std::string::npos || !is_new(warning.msg())) return;
        std::cerr << "vpp: warning of LibTorch or the model: " + printable_lines(warning.msg()) << std::flush;
    }

  private:
    bool is_new(const std::string& text) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (known_.size() >= kMostKnown) return !known_.contains(text);
        return known_.insert(text).second;
    }

    std::mutex mutex_;
    std::set<std::string> known_;
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
