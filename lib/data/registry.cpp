#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "data/dataset.hpp"
#include "data/held_out.hpp"
#include "data/kinds.hpp"
#include "data/transforms.hpp"

namespace vpp {

namespace {

struct Kind {
    const char* name;
    std::unique_ptr<Dataset> (*open)(const Plan& plan, Subset subset);
};

constexpr std::array<Kind, 6> kKinds{{{"tokens", detail::open_tokens},
                                      {"text", detail::open_text},
                                      {"arrays", detail::open_arrays},
                                      {"idx", detail::open_idx},
                                      {"cifar10", detail::open_cifar10},
                                      {"synthetic", detail::open_synthetic}}};

}  // namespace

void Dataset::read_draw(const Draw& draw, int field, std::span<std::byte> out) const {
    read(draw.sample, field, out);
}

std::vector<int64_t> Dataset::file_samples() const {
    return {fields().num_samples};
}

std::string Dataset::where(int64_t sample, int) const {
    return "sample " + std::to_string(sample);
}

int64_t Dataset::stored_sample(int64_t sample) const {
    return sample;
}

std::optional<int64_t> Dataset::filler(int) const {
    return std::nullopt;
}

std::unique_ptr<Dataset> open_dataset(const Plan& plan, Subset subset) {
    for (const Kind& kind : kKinds) {
        if (plan.data.kind != kind.name) continue;
        const Subset files = plan.data.val_split > 0 ? Subset::Train : subset;
        return detail::part_of_split(detail::with_transforms(kind.open(plan, files), plan), plan, subset);
    }
    const std::vector<std::string> names = dataset_kinds();
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    throw Error(ErrorKind::Plan,
                "unknown data.kind (got '" + printable(plan.data.kind) + "', expected one of " + list + ")" +
                    did_you_mean(plan.data.kind, names),
                plan.where("data.kind"));
}

std::vector<std::string> dataset_kinds() {
    std::vector<std::string> names;
    for (const Kind& kind : kKinds) names.emplace_back(kind.name);
    return names;
}

}  // namespace vpp
