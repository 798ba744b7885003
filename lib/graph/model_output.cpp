#include "graph/model_output.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/runtime/print_handler.h>

#include <iostream>
#include <string>

#include "base/printable_lines.hpp"

namespace vpp {

namespace {

class PlainWarnings : public c10::WarningHandler {
  public:
    void process(const c10::Warning& warning) override {
        std::cerr << "vpp: warning of LibTorch or the model: " << printable_lines(warning.msg()) << std::flush;
    }
};

}  // namespace

void print_models_plainly() {
    static PlainWarnings warnings;
    c10::WarningUtils::set_warning_handler(&warnings);
    torch::jit::setPrintHandler([](const std::string& text) { std::cerr << printable_lines(text) << std::flush; });
}

}  // namespace vpp
