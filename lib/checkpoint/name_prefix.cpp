#include "checkpoint/name_prefix.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/bad_data.hpp"
#include "base/error.hpp"

namespace vpp {

namespace {

// Wrappers inside wrappers; also bounds the work that long names of dots alone could cause.
constexpr size_t kMostComponents = 8;
constexpr size_t kShownPrefixes = 3;

using Side = NamePrefix::Side;

std::string owner_text(Side side) {
    return side == Side::Model ? "the model's" : "the file's";
}

/// Every way to take whole components off the front: what is taken off and what remains.
std::vector<std::pair<std::string, std::string>> beginnings(const std::string& name) {
    std::vector<std::pair<std::string, std::string>> found;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
        if (found.size() == kMostComponents) break;
        found.emplace_back(name.substr(0, dot + 1), name.substr(dot + 1));
    }
    return found;
}

/// For each prefix that has any, the weights that the file has with it.
class Fits {
  public:
    Fits(const WeightsFile& file, const std::vector<WantedWeight>& wanted) : file_(file), wanted_(wanted) {
        std::map<std::string, size_t> weight_of;
        for (size_t i = 0; i < wanted.size(); ++i) {
            if (wanted[i].may_be_absent) continue;
            ++num_required_;
            if (wanted[i].seed_fill != SeedFill::Named) ++num_read_;
            for (const std::string& name : wanted[i].names) {
                weight_of[name] = i;
                for (const auto& [prefix, rest] : beginnings(name)) add({Side::Model, prefix}, i, rest);
            }
        }
        for (const std::string& name : file.names()) {
            for (const auto& [prefix, rest] : beginnings(name)) {
                const auto weight = weight_of.find(rest);
                if (weight != weight_of.end()) add({Side::File, prefix}, weight->second, name);
            }
        }
    }

    /// Those that fit all, or all but some that are filled from the seed.
    std::vector<NamePrefix> whole() const {
        std::vector<NamePrefix> whole, whole_with_seed;
        for (const auto& [prefix, weights] : fits_) {
            const auto is_read = [&](size_t weight) { return wanted_[weight].seed_fill != SeedFill::Named; };
            const auto num_read = static_cast<size_t>(std::ranges::count_if(weights, is_read));
            if (weights.size() == num_required_) whole.push_back(prefix);
            if (num_read > 0 && num_read == num_read_) whole_with_seed.push_back(prefix);
        }
        return whole.empty() ? whole_with_seed : whole;
    }

    /// Those that fit most of them.
    std::string nearest_text() const {
        std::vector<std::pair<NamePrefix, std::set<size_t>>> order(fits_.begin(), fits_.end());
        std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
        if (order.size() > kShownPrefixes) order.resize(kShownPrefixes);
        std::string text;
        for (const auto& [prefix, weights] : order) {
            text += "; without '" + printable(prefix.text) + "' in front of " + owner_text(prefix.side) + " names " +
                    std::to_string(weights.size()) + " of " + std::to_string(num_required_) + " would fit, not " +
                    names_text(names_beside(weights));
        }
        return order.empty() ? text : text + other_shape_text(order.front().first);
    }

  private:
    void add(const NamePrefix& prefix, size_t weight, const std::string& name_in_file) {
        const std::optional<TensorBytes> tensor = file_.find(name_in_file);
        if (tensor && tensor->shape == wanted_[weight].shape) fits_[prefix].insert(weight);
    }

    /// Of the first weight that has another shape in the file.
    std::string other_shape_text(const NamePrefix& prefix) const {
        for (const WantedWeight& weight : wanted_) {
            if (weight.may_be_absent) continue;
            for (const std::string& name : weight.names) {
                const std::optional<std::string> in_file = prefix.in_file(name);
                const std::optional<TensorBytes> tensor = in_file ? file_.find(*in_file) : std::nullopt;
                if (!tensor || tensor->shape == weight.shape) continue;
                return "; the tensor '" + tensor->name + "' is of shape " + shape_text(tensor->shape) +
                       ", the model expects " + shape_text(weight.shape);
            }
        }
        return "";
    }

    std::vector<std::string> names_beside(const std::set<size_t>& weights) const {
        std::vector<std::string> names;
        for (size_t i = 0; i < wanted_.size(); ++i) {
            if (!wanted_[i].may_be_absent && !weights.contains(i)) names.push_back(wanted_[i].names.front());
        }
        return names;
    }

    const WeightsFile& file_;
    const std::vector<WantedWeight>& wanted_;
    size_t num_required_ = 0;
    size_t num_read_ = 0;  // of these, those that are not filled from the seed
    std::map<NamePrefix, std::set<size_t>> fits_;
};

}  // namespace

std::optional<std::string> NamePrefix::in_file(const std::string& name) const {
    if (side == Side::File) return text + name;
    if (!name.starts_with(text)) return std::nullopt;
    return name.substr(text.size());
}

NamePrefix find_prefix(const WeightsFile& file, const std::vector<WantedWeight>& wanted) {
    const Fits fits(file, wanted);
    const std::vector<NamePrefix> whole = fits.whole();
    if (whole.size() == 1) return whole.front();
    std::string what = "has none of the model's " + std::to_string(wanted.size()) +
                       " parameters and buffers, such as '" + wanted.front().names.front() + "'; it has " +
                       names_text(file.names());
    if (whole.empty()) refuse_data(file.path().string(), what + fits.nearest_text());
    for (size_t i = 0; i < std::min(whole.size(), kShownPrefixes); ++i) {
        what += (i == 0 ? "; all would fit without '" : ", or without '") + printable(whole[i].text) +
                "' in front of " + owner_text(whole[i].side) + " names";
    }
    refuse_data(file.path().string(), what + ": leave in the file what is meant");
}

std::string prefix_text(const NamePrefix& prefix) {
    const Side other = prefix.side == Side::Model ? Side::File : Side::Model;
    return owner_text(prefix.side) + " names have '" + printable(prefix.text) + "' in front of " + owner_text(other);
}

}  // namespace vpp
