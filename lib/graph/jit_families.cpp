#include "graph/jit_families.hpp"

#include <algorithm>

#include "graph/value_sets.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;

namespace {

/// In the sets: whatever went into a container that is changed, or came out of one.
constexpr const Value* kInContainers = nullptr;

bool has_container(const std::vector<const Value*>& values) {
    return std::any_of(values.begin(), values.end(), [](const Value* value) { return !is_tensor(*value->type()); });
}

/// What an op makes shares memory with what it uses, or with nothing before it. Control flow is taken as a whole. What
/// is put into a list, a dict or an object shares memory with whatever else was put into one.
/// `values`: all that the node and the nodes inside it read and make.
void join_values_of(const Node* node, const std::vector<const Value*>& values, const AliasFacts& aliases,
                    ValueSets& sets) {
    const bool is_control_flow = !node->blocks().empty();
    if (is_control_flow || (has_container(values) && aliases.writes_what_it_uses(node))) {
        const Value* family = has_container(values) || values.empty() ? kInContainers : values.front();
        for (const Value* value : values) sets.join(value, family);
        return;
    }
    for (const Value* made : node->outputs()) {
        if (is_plain(*made->type())) continue;
        for (const Value* value : values) {
            if (aliases.may_share(made, value)) sets.join(made, value);
        }
    }
}

}  // namespace

MemoryFamilies::MemoryFamilies(const JitGraph& jit, const AliasFacts& aliases, const std::vector<Value*>& values) {
    ValueSets sets;
    std::vector<std::vector<const Value*>> used(jit.ops.size());  // by op
    for (size_t i = 0; i < used.size(); ++i) {
        used[i] = values_touched(jit.ops[i].node);
        join_values_of(jit.ops[i].node, used[i], aliases, sets);
    }
    for (const Value* value : values) {
        if (!is_plain(*value->type()) && aliases.may_be_in_container(value)) sets.join(value, kInContainers);
    }
    for (size_t i = 0; i < values.size(); ++i) {
        family_.push_back(sets.find(values[i]));
        members_[family_[i]].values.push_back(i);
    }
    for (size_t i = 0; i < used.size(); ++i) {
        for (const Value* value : used[i]) {
            std::vector<size_t>& ops = members_[sets.find(value)].ops;
            if (ops.empty() || ops.back() != i) ops.push_back(i);
        }
    }
}

}  // namespace vpp
