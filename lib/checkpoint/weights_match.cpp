#include "checkpoint/weights_match.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/few.hpp"
#include "base/suggest.hpp"
#include "checkpoint/name_prefix.hpp"

namespace vpp {

namespace {

constexpr size_t kShownProblems = 10;
constexpr size_t kShownNames = 5;

std::string form_text(DType dtype, const std::vector<int64_t>& shape) {
    return std::string(name_of(dtype)) + shape_text(shape);
}

bool is_same(const TensorBytes& a, const TensorBytes& b) {
    return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

/// Whether every value of one float is one of the other's.
bool is_exact(DType from, DType to) {
    const bool is_half = from == DType::F16 || from == DType::BF16;
    return (is_half && (to == DType::F32 || to == DType::F64)) || (from == DType::F32 && to == DType::F64);
}

/// What PEFT puts into the names of a model: around a layer that gets an adapter, and before the weights of the adapter
/// that has the name by default.
constexpr std::array<std::string_view, 2> kWrapped{".base_layer.", ".default."};

/// The name that a weight has in files of the model that was wrapped, and in PEFT's own.
std::string unwrapped(std::string name) {
    for (const std::string_view part : kWrapped) {
        for (size_t at = name.find(part); at != std::string::npos; at = name.find(part, at)) {
            name.erase(at, part.size() - 1);
        }
    }
    return name;
}

/// The weights with these names too, behind their own, where they are nobody else's.
std::vector<WantedWeight> with_unwrapped_names(std::vector<WantedWeight> wanted) {
    std::set<std::string> taken;
    for (const WantedWeight& weight : wanted) taken.insert(weight.names.begin(), weight.names.end());
    for (WantedWeight& weight : wanted) {
        for (const std::string& name : std::vector(weight.names)) {
            std::string other = unwrapped(name);
            if (taken.insert(other).second) weight.names.push_back(std::move(other));
        }
    }
    return wanted;
}

class Matcher {
  public:
    Matcher(const WeightsFile& file, const std::vector<WantedWeight>& own)
        : file_(file), own_(own), wanted_(with_unwrapped_names(own)) {
        if (!claim() && !own.empty()) {
            prefix_ = find_prefix(file, wanted_);
            claim();
        }
    }

    MatchedWeights run() {
        MatchedWeights matched;
        for (size_t i = 0; i < wanted_.size(); ++i) {
            const WantedWeight& weight = wanted_[i];
            matched.values.push_back(find(weight, own_[i].names.size()));
            if (matched.values.back()) continue;
            (weight.seed_fill == SeedFill::Named ? matched.seeded : matched.absent).push_back(weight.names.front());
        }
        throw_problems();
        matched.extra = extra_;
        matched.notes = notes();
        return matched;
    }

  private:
    /// Whether any name is wanted; the others are extra.
    bool claim() {
        const std::vector<std::string> names = file_.names();
        std::set<std::string> unclaimed(names.begin(), names.end());
        for (const WantedWeight& weight : wanted_) {
            for (const std::string& name : weight.names) {
                if (const auto in_file = prefix_.in_file(name)) unclaimed.erase(*in_file);
            }
        }
        extra_.assign(unclaimed.begin(), unclaimed.end());
        return extra_.size() < names.size();
    }

    std::optional<TensorBytes> find(const WantedWeight& weight, size_t num_own_names) {
        std::optional<TensorBytes> found;
        for (size_t i = 0; i < weight.names.size(); ++i) {
            const bool is_own = i < num_own_names;
            if (!is_own && found) break;
            const std::optional<std::string> in_file = prefix_.in_file(weight.names[i]);
            std::optional<TensorBytes> other = in_file ? file_.find(*in_file) : std::nullopt;
            if (!other) continue;
            if (found && !is_same(*found, *other)) {
                add("holds other values for '" + other->name + "' than for '" + found->name +
                    "', which are one tensor in the model");
            }
            if (found) continue;
            found = std::move(other);
            if (!is_own) ++num_unwrapped_;
        }
        if (found) check_form(*found, weight);
        if (!found && !weight.may_be_absent && weight.seed_fill != SeedFill::Named) add_missing(weight);
        return found;
    }

    /// The first without a near name tells the way out. Near names are looked for where somebody sees them: thousands
    /// of names against thousands take minutes.
    void add_missing(const WantedWeight& weight) {
        const std::string& name = weight.names.front();
        const bool is_shown = problems_.size() < kShownProblems;
        std::string remedy = is_shown ? did_you_mean(name, extra_) : "";
        if (remedy.empty() && weight.seed_fill == SeedFill::IfNamed && !std::exchange(has_told_of_seed_, true)) {
            remedy = "; a [[model.init]] table whose match names it fills it from the seed";
        }
        add("has no tensor '" + name + "'" + remedy);
    }

    void check_form(const TensorBytes& found, const WantedWeight& weight) {
        const bool is_shape = found.shape == weight.shape;
        if (is_shape && found.dtype == weight.dtype) return;
        if (is_shape && is_exact(found.dtype, weight.dtype)) {
            ++converted_[{found.dtype, weight.dtype}];
            return;
        }
        add("the tensor '" + found.name + "' is " + form_text(found.dtype, found.shape) + ", the model expects " +
            form_text(weight.dtype, weight.shape) + form_remedy(found, weight));
    }

    /// The first of another shape tells the way out: a new head on an old body has one.
    std::string form_remedy(const TensorBytes& found, const WantedWeight& weight) {
        const bool may_be_new = found.shape != weight.shape && weight.seed_fill != SeedFill::Never;
        if (may_be_new && !std::exchange(has_told_of_new_, true)) {
            return "; to begin it anew, leave it out of the file and name it in a [[model.init]] table";
        }
        const bool would_round = found.shape == weight.shape && is_floating(found.dtype) && is_floating(weight.dtype);
        return would_round ? "; vpp does not round weights: convert the file, or export the model in " +
                                 std::string(name_of(found.dtype))
                           : "";
    }

    std::vector<std::string> notes() const {
        std::vector<std::string> notes;
        if (!prefix_.text.empty()) notes.push_back(prefix_text(prefix_));
        if (num_unwrapped_ > 0) {
            notes.push_back(std::to_string(num_unwrapped_) +
                            " of the model's names have '.base_layer' or '.default' in them, which the file's lack");
        }
        for (const auto& [dtypes, count] : converted_) {
            notes.push_back(std::to_string(count) + " of " + std::to_string(wanted_.size()) +
                            " tensors converted from " + std::string(name_of(dtypes.first)) + " to " +
                            std::string(name_of(dtypes.second)) + ", which is exact");
        }
        return notes;
    }

    void add(const std::string& what) { problems_.push_back({file_.path().string() + ": " + what, std::nullopt}); }

    void throw_problems() {
        if (problems_.empty()) return;
        const size_t num_more = problems_.size() - std::min(problems_.size(), kShownProblems);
        if (num_more > 0) {
            problems_.resize(kShownProblems);
            add("and " + std::to_string(num_more) + " more like these");
        }
        throw Error(ErrorKind::BadData, std::move(problems_));
    }

    const WeightsFile& file_;
    const std::vector<WantedWeight>& own_;
    std::vector<WantedWeight> wanted_;  // with other names of theirs
    int64_t num_unwrapped_ = 0;
    NamePrefix prefix_;  // empty where names are the file's own
    std::vector<std::string> extra_;
    std::map<std::pair<DType, DType>, int64_t> converted_;  // from, to
    std::vector<Problem> problems_;
    bool has_told_of_seed_ = false, has_told_of_new_ = false;
};

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
    return names.empty() ? "no tensors" : few_names_text(names, kShownNames);
}

MatchedWeights match_weights(const WeightsFile& file, const std::vector<WantedWeight>& wanted) {
    return Matcher(file, wanted).run();
}

}  // namespace vpp
