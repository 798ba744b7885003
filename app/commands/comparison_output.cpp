#include "app/commands/comparison_output.hpp"

#include <iostream>

#include "app/terminal.hpp"
#include "base/error.hpp"
#include "base/wrapped_text.hpp"
#include "compare/comparison_text.hpp"

namespace vpp {

void say_notes(const RecordedRun& run) {
    for (const std::string& note : run.notes) std::cerr << "vpp: note: " << printable(run.name + ": " + note) << "\n";
}

void print_comparison(const Comparison& comparison, const std::string& curve) {
    const Terminal terminal = output_terminal();
    const int width = terminal.is_terminal ? terminal.width : static_cast<int>(kScreenColumns);
    std::cout << comparison_text(comparison, curve, {width, terminal.colour}) << std::flush;
}

}  // namespace vpp
