#include "graph/jit_alias.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "graph/jit_alias_lists.hpp"
#include "graph/jit_alias_loops.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

// Never run: in the copy they stand for an input that shares memory with nothing, for a tensor out of some container,
// for a write that no schema tells, and for what may be the one or the other.
TORCH_LIBRARY_FRAGMENT(vpp, library) {
    library.def(torch::schema("vpp::fresh_memory() -> Tensor", c10::AliasAnalysisKind::FROM_SCHEMA));
    library.def(torch::schema("vpp::any_memory() -> Tensor(*)", c10::AliasAnalysisKind::FROM_SCHEMA));
    library.def(torch::schema("vpp::write_memory(Tensor(a!)? memory) -> ()", c10::AliasAnalysisKind::FROM_SCHEMA));
    library.def(torch::schema("vpp::one_of(Tensor(a) made, Tensor(b)? given) -> Tensor(a|b)",
                              c10::AliasAnalysisKind::FROM_SCHEMA));
}

/// Composed of other ops, which make the result: it is never a view of an argument.
const std::set<std::string_view> kComposedFresh{
    "aten::conv1d",           "aten::conv2d",           "aten::conv3d",      "aten::conv_transpose1d",
    "aten::conv_transpose2d", "aten::conv_transpose3d", "aten::batch_norm",  "vpp::deferred_batch_norm",
    "aten::instance_norm",    "aten::layer_norm",       "aten::group_norm",  "aten::linear",
    "aten::matmul",           "aten::softmax",          "aten::log_softmax", "aten::scaled_dot_product_attention",
    "vpp::copy_written"};

/// An op that writes batch statistics: running_mean is this input of it, running_var the next one.
struct StatisticsWriter {
    std::string_view op;
    size_t running_mean;
    std::optional<size_t> training_flag;
};

constexpr StatisticsWriter kStatisticsWriters[] = {
    {"aten::batch_norm", 3, 5},
    {"aten::instance_norm", 3, 5},
    {"aten::native_batch_norm", 3, 5},
    {"aten::_batch_norm_impl_index", 3, 5},
    {"aten::cudnn_batch_norm", 3, 5},
    {"aten::miopen_batch_norm", 3, 5},
    {"aten::batch_norm_update_stats", 1, std::nullopt},
    {"aten::batch_norm_gather_stats", 3, std::nullopt},
    {"aten::batch_norm_gather_stats_with_counts", 3, std::nullopt},
};

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

/// Whether a list or dict can be reached through it.
bool holds_containers(const c10::Type& type) {
    return std::ranges::any_of(type.containedTypes(), [](const c10::TypePtr& part) {
        const bool is_container = part->kind() == c10::TypeKind::ListType || part->kind() == c10::TypeKind::DictType;
        return is_container || part->kind() == c10::TypeKind::AnyType || holds_containers(*part);
    });
}

/// A tensor, or one that may be None.
bool is_tensor_or_none(const Value& value) {
    const auto optional = value.type()->cast<c10::OptionalType>();
    return is_tensor(optional ? *optional->getElementType() : *value.type());
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
    switch (type.kind()) {
        case c10::TypeKind::ListType:
        case c10::TypeKind::DictType:
        case c10::TypeKind::TupleType:
        case c10::TypeKind::OptionalType:
            return std::ranges::any_of(type.containedTypes(), [](const auto& part) { return holds_tensors(*part); });
        default:
            return true;
    }
}

bool is_tuple_of_tensors(const c10::Type& type) {
    if (type.kind() != c10::TypeKind::TupleType) return false;
    return std::ranges::all_of(type.containedTypes(), [](const c10::TypePtr& part) {
        const auto optional = part->cast<c10::OptionalType>();
        const c10::Type& held = optional ? *optional->getElementType() : *part;
        return is_plain(held) || is_tensor(held) || is_tuple_of_tensors(held);
    });
}

bool makes_fresh_memory(const Node* node) {
    const auto is_number = [](const Value* value) { return is_plain(*value->type()); };
    if (std::ranges::all_of(node->outputs(), is_number)) return true;
    const auto is_object = [&](const Value* value) { return !is_number(value) && !is_tensor(*value->type()); };
    const auto has_tensors = [](const Value* value) { return holds_tensors(*value->type()); };
    const bool makes_lists_of_numbers = node->blocks().empty() && std::ranges::none_of(node->inputs(), is_object) &&
                                        std::ranges::none_of(node->outputs(), has_tensors);
    if (makes_lists_of_numbers) return true;
    if (kComposedFresh.contains(node->kind().toQualString())) return true;
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (!schema || !node->kind().is_aten()) return false;
    for (const c10::Argument& result : schema->returns()) {
        if (result.alias_info()) return false;
    }
    const auto handle = c10::Dispatcher::singleton().findOp(schema->operator_name());
    return handle && !handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

std::vector<const Value*> statistics_written(const Node* node) {
    const std::string_view op = node->kind().toQualString();
    const auto writer = std::ranges::find(kStatisticsWriters, op, &StatisticsWriter::op);
    if (writer == std::ranges::end(kStatisticsWriters)) return {};
    if (writer->training_flag) {
        const auto training = torch::jit::toIValue(node->input(*writer->training_flag));
        if (training && training->isBool() && !training->toBool()) return {};
    }
    return {node->input(writer->running_mean), node->input(writer->running_mean + 1)};
}

std::vector<const Value*> lists_with_elements_written(const Node* node) {
    std::vector<const Value*> lists;
    const c10::FunctionSchema* schema = node->maybeSchema();
    for (size_t i = 0; schema && i < schema->arguments().size(); ++i) {
        const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
        if (alias && std::ranges::any_of(alias->containedTypes(), &c10::AliasInfo::isWrite)) {
            lists.push_back(node->input(i));
        }
    }
    return lists;
}

std::vector<const Value*> inputs_written(const Node* node) {
    if (node->hasSideEffects()) return {node->inputs().begin(), node->inputs().end()};
    std::vector<const Value*> written = statistics_written(node);
    const c10::FunctionSchema* schema = node->maybeSchema();
    for (size_t i = 0; schema && i < schema->arguments().size(); ++i) {
        const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
        if (alias && alias->isWrite()) written.push_back(node->input(i));
    }
    return written;
}

bool gives_what_it_writes(const Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (!schema || schema->arguments().empty() || schema->returns().size() != 1) return false;
    const c10::AliasInfo* taken = schema->arguments()[0].alias_info();
    const c10::AliasInfo* given = schema->returns()[0].alias_info();
    const bool is_same = taken && given && taken->isWrite() && taken->beforeSets() == given->beforeSets();
    return is_same && is_tensor(*schema->returns()[0].type());
}

AliasFacts::AliasFacts(const JitGraph& jit) : copy_(jit.graph->copy()) {
    struct Visit {
        AliasFacts& facts;
        void value(Value* original, Value* twin) const { facts.values_[original] = twin; }
        void node(Node* original, Node* twin) const {
            facts.nodes_[original] = twin;
            auto written = statistics_written(original);
            for (const Value* list : lists_with_elements_written(original)) written.push_back(list);
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
    tell_identities();
    tell_loops(*copy_, values_);
    tell_lists(*copy_, values_);
    in_container_ = insert_memory(*copy_, "vpp::any_memory");
    db_ = std::make_unique<torch::jit::AliasDb>(copy_);
    find_written();
}

void AliasFacts::tell_silent_writes() {
    for (const auto& [original, written] : silent_writes_) {
        Node* twin = nodes_.at(original);
        for (const Value* value : written) {
            if (!value->mustBeNone()) tell_write(copy_of(value), twin);
        }
    }
}

/// Of a list those that it is made of, and whatever may be taken out of it.
void AliasFacts::tell_write(Value* memory, Node* writer) {
    if (memory->type()->kind() == c10::TypeKind::ListType) {
        if (memory->node()->kind() == prim::ListConstruct) {
            for (Value* element : memory->node()->inputs()) tell_write(element, writer);
        }
        Value* place;
        {
            const torch::jit::WithInsertPoint before(writer);
            place = copy_->insertConstant(0);
        }
        Node* taken = copy_->create(c10::aten::__getitem__, {memory, place}, 1)->insertAfter(writer);
        taken->output()->setType(c10::TensorType::get());
        writer = taken;
        memory = taken->output();
    }
    copy_->create(c10::Symbol::fromQualString("vpp::write_memory"), {memory}, 0)->insertAfter(writer);
}

void AliasFacts::tell_identities() {
    for (const auto& [original, twin] : nodes_) {
        const bool is_inside = twin->owningBlock() != copy_->block();
        const c10::FunctionSchema* schema = twin->maybeSchema();
        const bool tells_all =
            twin->kind().is_prim() || std::string_view(twin->kind().toQualString()).starts_with("vpp::");
        if (!is_inside || !schema || tells_all) continue;
        const auto tells = [](const c10::Argument& result) { return result.alias_info() != nullptr; };
        if (std::ranges::any_of(schema->returns(), tells) || makes_fresh_memory(twin)) continue;
        tell_identity(original, twin);
    }
}

/// Each tensor that it makes may be each one that it was given, in a list too.
void AliasFacts::tell_identity(const Node* original, Node* twin) {
    std::vector<Value*> given;
    for (Value* input : twin->inputs()) {
        const bool is_list = input->node()->kind() == prim::ListConstruct;
        const at::ArrayRef<Value*> parts = is_list ? input->node()->inputs() : at::ArrayRef<Value*>(input);
        std::ranges::copy_if(parts, std::back_inserter(given),
                             [](const Value* part) { return !is_plain(*part->type()) && is_tensor_or_none(*part); });
    }
    for (size_t i = 0; i < twin->outputs().size(); ++i) {
        Value* result = twin->output(i);
        if (!is_tensor(*result->type())) continue;
        Node* last = twin;
        for (Value* input : given) {
            last = copy_->create(c10::Symbol::fromQualString("vpp::one_of"), {result, input}, 1)->insertAfter(last);
            last->output()->setType(c10::TensorType::get());
            result->replaceAllUsesAfterNodeWith(last, last->output());
            result = last->output();
        }
        values_.at(original->output(i)) = result;
    }
}

void AliasFacts::find_written() {
    for (const auto& [original, twin] : values_) {
        if (is_plain(*twin->type()) || !db_->hasWriters(twin)) continue;
        (is_tensor(*twin->type()) ? written_tensors_ : changed_containers_).push_back(twin);
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
        for (const Value* value : group) {
            if (is_tensor(*value->type())) seen_.back().push_back(copy_of(value));
        }
    }
}

const std::vector<size_t>& AliasFacts::seen_groups(const Value* value) const {
    static const std::vector<size_t> kNone;
    const auto seen = seen_of_value_.find(value);
    return seen == seen_of_value_.end() ? kNone : seen->second;
}

bool AliasFacts::has_writers(const Value* value) const {
    if (is_plain(*value->type())) return false;
    if (db_->hasWriters(copy_of(value))) return true;
    const auto is_written = [this](size_t group) {
        return std::ranges::any_of(seen_[group], [this](Value* seen) { return db_->hasWriters(seen); });
    };
    if (std::ranges::any_of(seen_groups(value), is_written)) return true;
    // Of a container that is told of its elements alone.
    return !is_tensor(*value->type()) &&
           (may_be_changed(value) || db_->mayContainAlias(copy_of(value), written_tensors_));
}

bool AliasFacts::may_be_changed(const Value* container) const {
    Value* twin = copy_of(container);
    if (is_plain(*twin->type()) || is_tensor(*twin->type())) return false;
    return db_->hasWriters(twin) ||
           (holds_containers(*twin->type()) && db_->mayContainAlias(twin, changed_containers_));
}

bool AliasFacts::analysis_says_shared(const Value* a, const Value* b) const {
    return a == b || db_->mayContainAlias(copy_of(a), copy_of(b));
}

bool AliasFacts::may_share(const Value* a, const Value* b) const {
    if (analysis_says_shared(a, b)) return true;
    const std::vector<size_t>&of_a = seen_groups(a), &of_b = seen_groups(b);
    const auto shares = [&](size_t one, size_t other) { return one == other || may_share_groups(one, other); };
    return std::ranges::any_of(of_b, [&](size_t group) { return may_share_with_group(a, group); }) ||
           std::ranges::any_of(of_a, [&](size_t group) { return may_share_with_group(b, group); }) ||
           std::ranges::any_of(of_a, [&](size_t one) {
               return std::ranges::any_of(of_b, [&](size_t other) { return shares(one, other); });
           });
}

bool AliasFacts::may_share_with_group(const Value* value, size_t group) const {
    const auto [found, is_new] = shares_with_group_.try_emplace({value, group});
    if (is_new) found->second = db_->mayContainAlias(copy_of(value), seen_[group]);
    return found->second;
}

bool AliasFacts::may_share_groups(size_t a, size_t b) const {
    const auto [found, is_new] = groups_share_.try_emplace(std::minmax(a, b));
    if (is_new) found->second = db_->mayContainAlias(seen_[a], seen_[b]);
    return found->second;
}

bool AliasFacts::may_be_in_container(const Value* value) const {
    const auto is_in = [this](Value* seen) { return db_->mayContainAlias(seen, in_container_); };
    return is_in(copy_of(value)) || std::ranges::any_of(seen_groups(value), [&](size_t group) {
               return std::ranges::any_of(seen_[group], is_in);
           });
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
    Node* twin = nodes_.at(node);
    const auto writes_group = [&](size_t group) {
        const auto [found, is_new] = writes_group_.try_emplace({node, group});
        if (is_new) {
            found->second =
                std::ranges::any_of(seen_[group], [&](Value* seen) { return db_->writesToAlias(twin, {seen}); });
        }
        return found->second;
    };
    return db_->writesToAlias(twin, {copy_of(value)}) || std::ranges::any_of(seen_groups(value), writes_group) ||
           may_write_silently(node, value);
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
