#include "graph/module_names.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "base/bad_data.hpp"

namespace vpp {

namespace {

constexpr int64_t kMostRepeats = 100'000;
constexpr int64_t kCountedUpTo = 1'000'000'000'000;  // times the attributes of a module it is still a number
constexpr int kMaxDepth = 1000;

/// Counts without going through the names: each module is looked into once.
class NameCounter {
  public:
    explicit NameCounter(const std::string& source) : source_(source) {}

    int64_t names_in(const torch::jit::Module& module, int depth = 0) {
        const auto object = module._ivalue();
        if (const auto known = known_.find(object.get()); known != known_.end()) return known->second;
        if (depth > kMaxDepth) {
            refuse_data(source_, "its modules are nested deeper than " + std::to_string(kMaxDepth) +
                                     "; the file is broken or hostile; export the model again");
        }
        const auto type = object->type();
        auto names = static_cast<int64_t>(type->numAttributes());
        num_first_ += names;
        for (size_t i = 0; i < type->numAttributes(); ++i) {
            if (!type->getAttribute(i)->is_module()) continue;
            names = std::min(names + names_in(object->getSlot(i).toModule(), depth + 1), kCountedUpTo);
        }
        return known_[object.get()] = names;
    }

    /// Of all modules that were looked into, the first of each attribute.
    int64_t num_first() const { return num_first_; }

  private:
    const std::string& source_;
    std::unordered_map<const void*, int64_t> known_;
    int64_t num_first_ = 0;
};

}  // namespace

void check_module_names(const torch::jit::Module& model, const std::string& source) {
    NameCounter counter(source);
    const int64_t num_names = counter.names_in(model);
    if (num_names - counter.num_first() <= kMostRepeats) return;
    refuse_data(source, "submodules that stand in several places give its attributes more than " +
                            std::to_string(kMostRepeats) +
                            " further names; let forward call one of them several times instead");
}

}  // namespace vpp
