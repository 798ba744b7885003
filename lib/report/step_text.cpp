#include "report/step_text.hpp"

#include <cmath>

#include "base/units.hpp"
#include "report/columns.hpp"

namespace vpp {

std::string loss_text(double loss) {
    return formatted(std::abs(loss) < 1e5 ? "%.4f" : "%.4g", loss);
}

std::string rate_text(const StepEvent& event) {
    const bool tokens = event.tokens_per_second > 0;
    const double rate = tokens ? event.tokens_per_second : event.samples_per_second;
    return right_aligned(std::isfinite(rate) ? count_text(rate) : "-", 7) + (tokens ? " tokens/s" : " samples/s");
}

std::string flops_rate_text(double flops_per_second) {
    const std::string count = count_text(flops_per_second);
    const bool has_prefix = count.find(' ') != std::string::npos;
    return count + (has_prefix ? "" : " ") + "FLOP/s";
}

std::string flops_text(const StepEvent& event) {
    const double rate = event.flops_per_second();
    if (!(rate > 0) || !std::isfinite(rate)) return "";
    return right_aligned(flops_rate_text(rate), 12);
}

std::string whole_percent_text(double share) {
    return formatted("%.0f", 100 * share) + " %";
}

}  // namespace vpp
