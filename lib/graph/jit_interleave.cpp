// The order of ops where a module is called more than once, as a siamese encoder is: the ops of one call lie behind all
// of another, so the module's batch statistics are written on both sides of every cut between. Side by side, layer by
// layer, they let the model be cut there, and each stage has its layers for all calls.
#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "graph/graph.hpp"
#include "graph/jit_alias.hpp"
#include "graph/jit_graph.hpp"
#include "graph/value_sets.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

constexpr size_t kMaxCalls = 64;  ///< as many as bits in a RunSet

bool writes(const Node* node) {
    return node->hasSideEffects() || !inputs_written(node).empty();
}

/// An error that is thrown ends all; which of two comes first is the same to everyone.
bool is_seen_outside(const Node* node) {
    return node->hasSideEffects() && node->kind() != prim::RaiseException;
}

/// "a.b.c" gives "a", "a.b", "a.b.c".
std::vector<std::string> with_parents(const std::string& module) {
    std::vector<std::string> all;
    for (size_t dot = module.find('.'); dot != std::string::npos; dot = module.find('.', dot + 1)) {
        all.push_back(module.substr(0, dot));
    }
    if (!module.empty()) all.push_back(module);
    return all;
}

class Interleaver {
  public:
    explicit Interleaver(JitGraph& jit) : jit_(jit), places_(jit.ops.size()) {
        std::iota(places_.begin(), places_.end(), 0);
        for (const JitOp& op : jit.ops) owners_.push_back(module_of(op.node));
        for (const JitParameter& parameter : jit.parameters) {
            if (parameter.is_buffer) buffers_.insert(parameter.value);
        }
    }

    void run() {
        find_sources();
        bool found = false;
        for (size_t op = 0; op < jit_.ops.size(); ++op) found = (uses_buffer(op) && share_places_above(op)) || found;
        if (!found) return;
        find_chains();
        pull_what_is_needed();
        move();
    }

  private:
    using RunSet = uint64_t;  ///< of runs of ops, each left by one call

    Node* node(size_t op) const { return jit_.ops[op].node; }

    /// Which ops made what an op uses.
    void find_sources() {
        std::unordered_map<const Value*, size_t> maker;
        sources_.resize(jit_.ops.size());
        for (size_t op = 0; op < jit_.ops.size(); ++op) {
            for (const Value* value : values_used(node(op))) {
                const auto made = maker.find(value);
                if (made != maker.end()) sources_[op].push_back(made->second);
            }
            for (const Value* made : node(op)->outputs()) maker[made] = op;
        }
    }

    bool uses_buffer(size_t op) const {
        return std::ranges::any_of(values_used(node(op)),
                                   [this](const Value* used) { return buffers_.contains(used); });
    }

    /// Gives the ops of each call of the outermost module above the op that can be taken apart the places of the first
    /// call's.
    bool share_places_above(size_t op) {
        for (const std::string& module : with_parents(owners_[op])) {
            const auto [known, is_new] = is_shared_.try_emplace(module, false);
            if (is_new) known->second = share_places(module);
            if (known->second) return true;
        }
        return false;
    }

    bool share_places(const std::string& module) {
        std::vector<size_t> members;
        std::vector<std::string> kinds;
        for (size_t op = 0; op < jit_.ops.size(); ++op) {
            const std::string& owner = owners_[op];
            if (!lies_in(owner, module)) continue;
            members.push_back(op);
            kinds.push_back(owner + " " + node(op)->kind().toQualString());
        }
        for (size_t num_runs = std::min(kMaxCalls, members.size()); num_runs > 1; --num_runs) {
            if (members.size() % num_runs != 0) continue;
            const size_t length = members.size() / num_runs;
            const auto second = kinds.begin() + static_cast<std::ptrdiff_t>(length);
            if (!std::equal(second, kinds.end(), kinds.begin()) || !are_independent(members, length)) continue;
            for (size_t i = 0; i < members.size(); ++i) places_[members[i]] = members[i % length];
            return true;
        }
        return false;
    }

    /// Whether no run of so many ops uses what another made.
    bool are_independent(const std::vector<size_t>& members, size_t length) const {
        std::vector<RunSet> needs(jit_.ops.size());  // runs that lie behind what an op uses
        size_t member = 0;
        for (size_t op = 0; op < jit_.ops.size(); ++op) {
            for (size_t source : sources_[op]) needs[op] |= needs[source];
            if (member == members.size() || members[member] != op) continue;
            needs[op] |= RunSet{1} << (member++ / length);
            if ((needs[op] & (needs[op] - 1)) != 0) return false;
        }
        return true;
    }

    /// Ops that touch the same memory keep their order where some op writes it, or where it may have a gradient, whose
    /// parts are summed in the order of the ops.
    void find_chains() {
        ValueSets memory;
        std::vector<std::vector<const Value*>> touched;
        for (const JitOp& op : jit_.ops) {
            touched.push_back(values_touched(op.node));
            join_memory(op.node, touched.back(), memory);
        }
        const std::unordered_set<const Value*> ordered = ordered_memory(memory, touched);
        std::unordered_map<const Value*, size_t> last;
        for (size_t op = 0; op < jit_.ops.size(); ++op) {
            if (any_node(node(op), is_seen_outside)) chain(op, nullptr, last);
            for (const Value* value : touched[op]) {
                if (ordered.contains(memory.find(value))) chain(op, memory.find(value), last);
            }
        }
    }

    void chain(size_t op, const Value* memory, std::unordered_map<const Value*, size_t>& last) {
        const auto [before, is_first] = last.try_emplace(memory, op);
        if (!is_first && before->second != op) sources_[op].push_back(before->second);
        before->second = op;
    }

    std::unordered_set<const Value*> ordered_memory(ValueSets& memory,
                                                    const std::vector<std::vector<const Value*>>& touched) const {
        std::unordered_set<const Value*> trained, written;
        for (const JitParameter& parameter : jit_.parameters) {
            if (parameter.value && parameter.tensor.requires_grad()) trained.insert(memory.find(parameter.value));
        }
        for (size_t op = 0; op < touched.size(); ++op) {
            const bool is_trained = std::ranges::any_of(
                touched[op], [&](const Value* value) { return trained.contains(memory.find(value)); });
            const bool is_writer = any_node(node(op), writes);
            for (const Value* value : touched[op]) {
                const bool is_made = value->node() == node(op);
                if (is_writer) written.insert(memory.find(value));
                if (is_trained && (is_made || is_writer)) trained.insert(memory.find(value));
            }
        }
        written.merge(trained);
        return written;
    }

    /// What an op needs comes before it.
    void pull_what_is_needed() {
        for (size_t op = jit_.ops.size(); op-- > 0;) {
            for (size_t source : sources_[op]) places_[source] = std::min(places_[source], places_[op]);
        }
    }

    void move() {
        std::vector<size_t> order(jit_.ops.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, {}, [this](size_t op) { return places_[op]; });
        std::vector<JitOp> ops;
        for (size_t op : order) {
            node(op)->moveBefore(jit_.graph->return_node());
            ops.push_back(jit_.ops[op]);
        }
        jit_.ops = std::move(ops);
    }

    JitGraph& jit_;
    std::vector<std::string> owners_;  ///< by op: its module
    std::unordered_set<const Value*> buffers_;
    std::vector<size_t> places_;                ///< by op: where it wants to be
    std::vector<std::vector<size_t>> sources_;  ///< by op: those that stay before it
    std::map<std::string, bool> is_shared_;     ///< by module
};

}  // namespace

void interleave_calls(JitGraph& jit) {
    const bool differentiates =
        std::ranges::any_of(jit.ops, [](const JitOp& op) { return find_op(op.node, {"aten::grad"}) != nullptr; });
    if (!differentiates) Interleaver(jit).run();
}

}  // namespace vpp
