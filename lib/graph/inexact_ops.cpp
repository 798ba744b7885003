#include "graph/inexact_ops.hpp"

#include <algorithm>
#include <span>

namespace vpp {

namespace {

constexpr std::string_view kBackward[] = {
    "aten::_upsample_bicubic2d_aa", "aten::_upsample_bilinear2d_aa", "aten::ctc_loss",
    "aten::grid_sampler",           "aten::grid_sampler_2d",         "aten::grid_sampler_3d",
};

constexpr std::string_view kAlways[] = {
    "aten::index_reduce", "aten::index_reduce_", "aten::max_unpool2d", "aten::max_unpool3d", "aten::put", "aten::put_",
};

bool is_one_of(std::span<const std::string_view> kinds, std::string_view kind) {
    return std::ranges::find(kinds, kind) != kinds.end();
}

}  // namespace

Inexact inexact_on_cards(std::string_view kind) {
    if (is_one_of(kAlways, kind)) return Inexact::Always;
    return is_one_of(kBackward, kind) ? Inexact::Backward : Inexact::Never;
}

}  // namespace vpp
