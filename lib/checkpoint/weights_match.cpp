#include "checkpoint/weights_match.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/suggest.hpp"

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

class Matcher {
  public:
    Matcher(const WeightsFile& file, const std::vector<WantedWeight>& wanted) : file_(file), wanted_(wanted) {
        for (std::string& name : file.names()) unclaimed_.insert(std::move(name));
        for (const WantedWeight& weight : wanted) {
            for (const std::string& name : weight.names) claimed_ += unclaimed_.erase(name);
        }
        extra_.assign(unclaimed_.begin(), unclaimed_.end());
    }

    MatchedWeights run() {
        MatchedWeights matched;
        if (claimed_ == 0 && !wanted_.empty()) {
            throw Error(ErrorKind::BadData, file_.path().string() + ": has none of the model's " +
                                                std::to_string(wanted_.size()) + " parameters and buffers, such as '" +
                                                wanted_.front().names.front() + "'; it has " + names_text(extra_));
        }
        for (const WantedWeight& weight : wanted_) {
            matched.values.push_back(find(weight));
            if (!matched.values.back() && weight.may_be_absent) matched.absent.push_back(weight.names.front());
        }
        throw_problems();
        matched.extra = extra_;
        return matched;
    }

  private:
    std::optional<TensorBytes> find(const WantedWeight& weight) {
        std::optional<TensorBytes> found;
        for (const std::string& name : weight.names) {
            std::optional<TensorBytes> other = file_.find(name);
            if (!other) continue;
            if (found && !is_same(*found, *other)) {
                add("holds other values for '" + other->name + "' than for '" + found->name +
                    "', which are one tensor in the model");
            }
            if (!found) found = std::move(other);
        }
        const std::string& name = weight.names.front();
        if (!found && !weight.may_be_absent) add("has no tensor '" + name + "'" + did_you_mean(name, extra_));
        if (found && (found->dtype != weight.dtype || found->shape != weight.shape)) {
            add("the tensor '" + found->name + "' is " + form_text(found->dtype, found->shape) +
                ", the model expects " + form_text(weight.dtype, weight.shape));
        }
        return found;
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
    const std::vector<WantedWeight>& wanted_;
    std::set<std::string> unclaimed_;
    size_t claimed_ = 0;
    std::vector<std::string> extra_;
    std::vector<Problem> problems_;
};

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) {
        text += (i > 0 ? ", '" : "'") + printable(names[i]) + "'";
    }
    if (names.size() > kShownNames) text += " and " + std::to_string(names.size() - kShownNames) + " more";
    return text.empty() ? "no tensors" : text;
}

MatchedWeights match_weights(const WeightsFile& file, const std::vector<WantedWeight>& wanted) {
    return Matcher(file, wanted).run();
}

}  // namespace vpp
