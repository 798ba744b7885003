#include "graph/model_output.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/runtime/print_handler.h>

#include <iostream>
#include <string>

#include "base/error.hpp"

namespace vpp {

namespace {

std::string plain_lines(const std::string& text) {
    std::string plain;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        plain += printable(text.substr(begin, end - begin)) + '\n';
        begin = end + 1;
    }
    return plain;
}

class PlainWarnings : public c10::WarningHandler {
  public:
    void process(const c10::Warning& warning) override {
        std::cerr << "vpp: warning of LibTorch or the model: " << plain_lines(warning.msg()) << std::flush;
    }
};

}  // namespace

void print_models_plainly() {
    static PlainWarnings warnings;
    c10::WarningUtils::set_warning_handler(&warnings);
    torch::jit::setPrintHandler([](const std::string& text) { std::cerr << plain_lines(text) << std::flush; });
}

}  // namespace vpp
