#include "graph/host_ops.hpp"

#include <algorithm>
#include <span>

namespace vpp {

namespace {

constexpr std::string_view kBackward[] = {
    "aten::_upsample_bicubic2d_aa",
    "aten::_upsample_bilinear2d_aa",
};

constexpr std::string_view kAlways[] = {"aten::ctc_loss", "aten::index_reduce", "aten::index_reduce_"};

bool is_one_of(std::span<const std::string_view> kinds, std::string_view kind) {
    return std::ranges::find(kinds, kind) != kinds.end();
}

}  // namespace

OnHost runs_on_host(std::string_view kind) {
    if (is_one_of(kAlways, kind)) return OnHost::Always;
    return is_one_of(kBackward, kind) ? OnHost::Backward : OnHost::Never;
}

}  // namespace vpp
