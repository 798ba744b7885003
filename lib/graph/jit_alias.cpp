#include "graph/jit_alias.hpp"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/library.h>

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "graph/jit_alias_lists.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;

namespace {

// Never run: in the copy they stand for an input that shares memory with nothing, for a tensor out of some container,
// and for a write that no schema tells.
TORCH_LIBRARY_FRAGMENT(vpp, library) {
    library.def(torch::schema("vpp::fresh_memory() -> Tensor", c10::AliasAnalysisKind::FROM_SCHEMA));
    library.def(torch::schema("vpp::any_memory() -> Tensor(*)", c10::AliasAnalysisKind::FROM_SCHEMA));
    library.def(torch::schema("vpp::write_memory(Tensor(a!)? memory) -> ()", c10::AliasAnalysisKind::FROM_SCHEMA));
}

template <typename Visit>
void walk(Block* a, Block* b, const Visit& visit) {
    for (size_t i = 0; i < a->inputs().size(); ++i) visit.value(a->inputs()[i], b->inputs()[i]);
    auto other = b->nodes().begin();
    for (Node* node : a->nodes()) {
        Node* twin = *other;
        ++other;
        visit.node(node, twin);
        for (size_t i = 0; i < node->outputs().size(); ++i) visit.value(node->output(i), twin->output(i));
        for (size_t i = 0; i < node->blocks().size(); ++i) walk(node->blocks()[i], twin->blocks()[i], visit);
    }
}

/// LibTorch takes everything that is put into a tuple for one memory. The op that gathers the model's outputs is the
/// last one and writes nothing; that the outputs live until then is known from its uses.
void forget_gathering(Node& gathering) {
    for (size_t i = 0; i < gathering.inputs().size(); ++i) {
        gathering.replaceInput(i, insert_memory(*gathering.owningGraph(), "vpp::fresh_memory"));
    }
}

}  // namespace

Value* insert_memory(torch::jit::Graph& graph, const char* op) {
    const torch::jit::WithInsertPoint at_start(*graph.nodes().begin());
    Node* node = graph.insertNode(graph.create(c10::Symbol::fromQualString(op), 1));
    node->output()->setType(c10::TensorType::get());
    return node->output();
}

bool is_plain(const c10::Type& type) {
    switch (type.kind()) {
        case c10::TypeKind::IntType:
        case c10::TypeKind::FloatType:
        case c10::TypeKind::ComplexType:
        case c10::TypeKind::NumberType:
        case c10::TypeKind::BoolType:
        case c10::TypeKind::StringType:
        case c10::TypeKind::DeviceObjType:
        case c10::TypeKind::NoneType:
            return true;
        case c10::TypeKind::OptionalType:
            return is_plain(*type.containedType(0));
        default:
            return false;
    }
}

bool is_tensor(const c10::Type& type) {
    return type.isSubtypeOf(*c10::TensorType::get());
}

bool holds_tensors(const c10::Type& type) {
    if (is_plain(type)) return false;
    const auto parts = type.containedTypes();
    const bool list_or_dict = type.kind() == c10::TypeKind::ListType || type.kind() == c10::TypeKind::DictType;
    return !list_or_dict ||
           std::any_of(parts.begin(), parts.end(), [](const auto& part) { return holds_tensors(*part); });
}

std::vector<const Value*> statistics_written(const Node* node) {
    const bool batch_norm = node->kind() == aten::batch_norm || node->kind() == aten::instance_norm ||
                            node->kind() == aten::native_batch_norm;
    if (!batch_norm || node->inputs().size() < 6) return {};
    const auto training = torch::jit::toIValue(node->input(5));
    if (training && training->isBool() && !training->toBool()) return {};
    return {node->input(3), node->input(4)};
}

AliasFacts::AliasFacts(const JitGraph& jit) : copy_(jit.graph->copy()) {
    struct Visit {
        AliasFacts& facts;
        void value(Value* original, Value* twin) const { facts.values_[original] = twin; }
        void node(Node* original, Node* twin) const {
            facts.nodes_[original] = twin;
            auto written = statistics_written(original);
            if (!written.empty()) facts.silent_writes_[original] = std::move(written);
        }
    };
    walk(jit.graph->block(), copy_->block(), Visit{*this});
    for (Value* input : jit.graph->inputs()) {
        Value* twin = values_.at(input);
        if (!is_tensor(*input->type())) continue;
        Value* fresh = insert_memory(*copy_, "vpp::fresh_memory");
        twin->replaceAllUsesWith(fresh);
        values_[input] = fresh;
    }
    if (!jit.outputs.empty()) forget_gathering(*nodes_.at(jit.ops.back().node));
    tell_silent_writes();
    tell_lists(*copy_, values_);
    in_container_ = insert_memory(*copy_, "vpp::any_memory");
    db_ = std::make_unique<torch::jit::AliasDb>(copy_);
}

void AliasFacts::tell_silent_writes() {
    for (const auto& [original, written] : silent_writes_) {
        Node* twin = nodes_.at(original);
        for (const Value* value : written) {
            if (value->mustBeNone()) continue;
            Node* write = copy_->create(c10::Symbol::fromQualString("vpp::write_memory"), {copy_of(value)}, 0);
            write->insertAfter(twin);
        }
    }
}

Value* AliasFacts::copy_of(const Value* value) const {
    const auto found = values_.find(value);
    check(found != values_.end(), "alias facts know every value of the graph");
    return found->second;
}

void AliasFacts::learn(const std::vector<std::vector<const Value*>>& groups) {
    for (const std::vector<const Value*>& group : groups) {
        const auto is_known = [&](const Value* value) { return analysis_says_shared(group.front(), value); };
        if (std::ranges::all_of(group, is_known)) continue;
        for (const Value* value : group) seen_of_value_[value].push_back(seen_.size());
        seen_.emplace_back();
        // What else a list holds lies in memory of its own.
        const auto is_one = [](const Value* value) { return is_tensor(*value->type()); };
        std::ranges::copy_if(group, std::back_inserter(seen_.back()), is_one);
    }
}

std::vector<const Value*> AliasFacts::seen_with(const Value* value) const {
    std::vector<const Value*> all{value};
    const auto seen = seen_of_value_.find(value);
    if (seen == seen_of_value_.end()) return all;
    for (size_t group : seen->second) all.insert(all.end(), seen_[group].begin(), seen_[group].end());
    return all;
}

bool AliasFacts::has_writers(const Value* value) const {
    if (is_plain(*value->type())) return false;
    const auto is_written = [this](const Value* seen) { return db_->hasWriters(copy_of(seen)); };
    if (std::ranges::any_of(seen_with(value), is_written)) return true;
    if (is_tensor(*value->type()) || !holds_tensors(*value->type())) return false;
    // A container may hold what is written silently.
    return std::any_of(silent_writes_.begin(), silent_writes_.end(), [&](const auto& entry) {
        return std::any_of(entry.second.begin(), entry.second.end(),
                           [&](const Value* written) { return may_share(written, value); });
    });
}

bool AliasFacts::analysis_says_shared(const Value* a, const Value* b) const {
    return a == b || db_->mayContainAlias(copy_of(a), copy_of(b));
}

bool AliasFacts::may_share(const Value* a, const Value* b) const {
    if (analysis_says_shared(a, b)) return true;
    if (seen_.empty()) return false;
    const std::vector<const Value*> as = seen_with(a), bs = seen_with(b);
    return std::ranges::any_of(as, [&](const Value* one) {
        return std::ranges::any_of(bs, [&](const Value* other) { return analysis_says_shared(one, other); });
    });
}

bool AliasFacts::may_be_in_container(const Value* value) const {
    return std::ranges::any_of(
        seen_with(value), [this](const Value* seen) { return db_->mayContainAlias(copy_of(seen), in_container_); });
}

bool AliasFacts::writes_what_it_uses(const Node* node) const {
    return db_->isMutable(nodes_.at(node));
}

bool AliasFacts::may_write_at_all(const Node* node) const {
    if (!node->blocks().empty() || silent_writes_.contains(node) || writes_what_it_uses(node)) return true;
    return std::any_of(node->inputs().begin(), node->inputs().end(),
                       [](const Value* input) { return !is_plain(*input->type()) && !is_tensor(*input->type()); });
}

bool AliasFacts::may_write(const Node* node, const Value* value) const {
    const auto is_written = [&](const Value* seen) { return db_->writesToAlias(nodes_.at(node), {copy_of(seen)}); };
    return std::ranges::any_of(seen_with(value), is_written) || may_write_silently(node, value);
}

bool AliasFacts::may_write_silently(const Node* node, const Value* value) const {
    const auto silent = silent_writes_.find(node);
    if (silent != silent_writes_.end()) {
        for (const Value* written : silent->second) {
            if (may_share(written, value)) return true;
        }
    }
    for (const Block* block : node->blocks()) {
        for (const Node* inner : block->nodes()) {
            if (may_write_silently(inner, value)) return true;
        }
    }
    return false;
}

}  // namespace vpp
