// Attributes of modules become graph inputs (one per distinct tensor), lists of these, or constants, so that nothing in
// the graph refers to the module any more. Of branches that flags among them decide the way that is taken stays.
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/jit_alias.hpp"
#include "graph/jit_graph.hpp"
#include "graph/jit_parameters.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

/// Whether all that happens to a value is that ops read it.
bool is_only_read(const Value* value) {
    return std::all_of(value->uses().begin(), value->uses().end(), [](const torch::jit::Use& use) {
        const c10::FunctionSchema* schema = use.user->maybeSchema();
        if (!schema || use.offset >= schema->arguments().size()) return false;
        const c10::AliasInfo* alias = schema->arguments()[use.offset].alias_info();
        return !alias || !alias->isWrite();
    });
}

/// What may be, or may hold, or may be held in, a value that an op takes as argument `i`; nullopt where it may be
/// anywhere, as it is changed or goes into what is changed.
std::optional<std::vector<const Value*>> reached_through(const Node* op, size_t i) {
    const auto all = [](const auto& values) { return std::vector<const Value*>(values.begin(), values.end()); };
    if (op->kind() == prim::Return) {
        const Node* owner = op->owningBlock()->owningNode();
        if (!owner) return std::nullopt;
        std::vector<const Value*> reached = all(owner->outputs());
        if (owner->kind() == prim::Loop) {
            for (const Value* carried : owner->blocks()[0]->inputs()) reached.push_back(carried);
        }
        return reached;
    }
    if (op->kind() == prim::Loop) return reached_through(op->blocks()[0]->return_node(), 0);
    static const std::set<c10::Symbol> kPasses{prim::TupleConstruct, prim::TupleUnpack, prim::TupleIndex,
                                               prim::ListConstruct,  prim::ListUnpack,  prim::DictConstruct,
                                               prim::unchecked_cast};
    if (kPasses.contains(op->kind())) return all(op->outputs());
    const c10::FunctionSchema* schema = op->maybeSchema();
    if (!schema || schema->is_mutable() || i >= schema->arguments().size()) return std::nullopt;
    std::vector<const Value*> reached;
    for (size_t k = 0; k < op->outputs().size(); ++k) {
        const bool is_copy = k < schema->returns().size() && !schema->returns()[k].alias_info();
        const auto elements = op->output(k)->type()->containedTypes();
        const bool is_flat = std::ranges::all_of(elements, [](const auto& type) { return is_plain(*type); });
        if (!is_copy || !is_flat) reached.push_back(op->output(k));
    }
    return reached;
}

/// Whether no op changes a container of numbers and text, or one that is in it: alias analysis takes all that comes
/// out of containers for one.
bool is_never_changed(const Value* container) {
    std::vector<const Value*> open{container};
    std::unordered_set<const Value*> known{container};
    while (!open.empty()) {
        const Value* value = open.back();
        open.pop_back();
        for (const torch::jit::Use& use : value->uses()) {
            const auto reached = reached_through(use.user, use.offset);
            if (!reached) return false;
            for (const Value* next : *reached) {
                const bool may_hold = !is_plain(*next->type()) && !is_tensor(*next->type());
                if (may_hold && known.insert(next).second) open.push_back(next);
            }
        }
    }
    return true;
}

bool has_tensors(const c10::IValue& value) {
    bool found = false;
    value.visit([&](const c10::IValue& part) {
        found = found || (part.isTensor() && part.toTensor().defined());
        return found;  // true stops the walk
    });
    return found;
}

/// A value that is made of constants where it is read, as dicts and what holds them can be no constants themselves;
/// nullptr where a part of it can be none.
Value* make_of_constants(torch::jit::Graph& graph, const c10::IValue& value, const std::string& module) {
    if (const auto constant = torch::jit::tryInsertConstant(graph, value)) return *constant;
    std::vector<Value*> keys, parts;
    const auto add = [&](std::vector<Value*>& made, const c10::IValue& part) {
        made.push_back(make_of_constants(graph, part, module));
        return made.back() != nullptr;
    };
    Node* node = nullptr;
    if (value.isGenericDict()) {
        const c10::Dict<c10::IValue, c10::IValue> dict = value.toGenericDict();
        for (const auto& entry : dict) {
            if (!add(keys, entry.key()) || !add(parts, entry.value())) return nullptr;
        }
        node = graph.createDict(dict.keyType(), dict.valueType(), keys, parts);
    } else if (value.isTuple()) {
        for (const c10::IValue& part : value.toTupleRef().elements()) {
            if (!add(parts, part)) return nullptr;
        }
        node = graph.createTuple(parts, value.type()->expect<c10::TupleType>());
    } else if (value.isList()) {
        for (const c10::IValue& part : value.toListRef()) {
            if (!add(parts, part)) return nullptr;
        }
        node = graph.createList(value.toList().elementType(), parts);
    } else {
        return nullptr;
    }
    set_module(graph.insertNode(node), module);
    return node->output();
}

/// What an op of numbers and words gives, where all that it takes is known.
std::optional<c10::IValue> known_number(const Node* op) {
    const bool is_of_numbers = op->outputs().size() == 1 && is_plain(*op->output()->type()) && !op->inputs().empty();
    if (!is_of_numbers || !op->maybeSchema() || op->hasSideEffects()) return std::nullopt;
    const auto given = torch::jit::runNodeIfInputsAreConstant(op);
    return given ? std::optional(given->front()) : std::nullopt;
}

/// Puts the way that is taken in place of the branch. Gives the first op of it, or the next one.
Node* take_way(Node* branch, bool condition) {
    Block* way = branch->blocks()[condition ? 0 : 1];
    Node* first = nullptr;
    while (way->nodes().begin() != way->nodes().end()) {
        Node* node = *way->nodes().begin();
        if (!first) first = node;
        node->moveBefore(branch);
    }
    for (size_t i = 0; i < branch->outputs().size(); ++i) branch->output(i)->replaceAllUsesWith(way->outputs()[i]);
    Node* next = first ? first : branch->next();
    branch->destroy();
    return next;
}

/// What a tensor was called before it was written in place: behind add_(x, 1) that is x.
const Value* before_writes(const Value* tensor) {
    while (gives_what_it_writes(tensor->node())) tensor = tensor->node()->input(0);
    return tensor;
}

class AttributeResolver {
  public:
    AttributeResolver(JitGraph& jit, const torch::jit::Module& model) : jit_(jit) {
        jit_.parameters = list_parameters(model);
        for (size_t i = 0; i < jit_.parameters.size(); ++i) {
            index_of_.emplace(jit_.parameters[i].tensor.unsafeGetTensorImpl(), i);
        }
        objects_[jit_.graph->inputs()[0]] = model._ivalue();
    }

    void run() {
        find_assigned_names(jit_.graph->block());
        take_known_ways(jit_.graph->block());
        drop_writes_in_place();
        find_assigned_buffers(jit_.graph->block());
        visit(jit_.graph->block());
        for (auto it = object_reads_.rbegin(); it != object_reads_.rend(); ++it) {
            if (!(*it)->hasUses()) (*it)->destroy();
        }
        if (jit_.graph->inputs()[0]->hasUses()) {
            const Node* user = jit_.graph->inputs()[0]->uses()[0].user;
            while (user->kind() == prim::GetAttr) user = user->output()->uses()[0].user;  // what is left has uses
            throw Error(ErrorKind::BadData, std::string("the model uses a submodule as a value (in ") +
                                                user->kind().toQualString() + "), which is not supported");
        }
        jit_.graph->eraseInput(0);
        // What is read by nothing but such a write is gone later, as is a write into what nothing reads.
        if (!assigned_buffers_.empty()) check_assigned_buffers(jit_, AliasFacts(jit_));
        if (!containers_.empty()) check_containers(AliasFacts(jit_));
    }

  private:
    void find_assigned_names(const Block* block) {
        for (const Node* node : block->nodes()) {
            for (const Block* inner : node->blocks()) find_assigned_names(inner);
            if (node->kind() == prim::SetAttr) assigned_names_.insert(node->s(attr::name));
        }
    }

    /// What forward would do on the other way is nobody's concern: as MONAI's layers keep what they saw if they are
    /// told to, in an attribute.
    void take_known_ways(Block* block) {
        for (Node *node = *block->nodes().begin(), *next = nullptr; node != block->return_node(); node = next) {
            next = node->next();
            if (node->kind() == prim::GetAttr && objects_.contains(node->input(0))) {
                const c10::IValue value = attribute_value(node);
                const bool stays = !assigned_names_.contains(node->s(attr::name));
                if (value.isObject()) objects_[node->output()] = value;
                if (stays && is_plain(*node->output()->type())) resolve(node);
            } else if (const auto known = known_number(node)) {
                const torch::jit::WithInsertPoint before(node);
                replace(node, jit_.graph->insertConstant(*known));
            } else if (const auto condition = condition_of(*node)) {
                next = take_way(node, *condition);
            } else {
                for (Block* inner : node->blocks()) take_known_ways(inner);
            }
        }
    }

    /// Where it is a branch, and known.
    static std::optional<bool> condition_of(const Node& node) {
        if (node.kind() != prim::If) return std::nullopt;
        const auto condition = torch::jit::toIValue(node.input());
        return condition ? std::optional(condition->toBool()) : std::nullopt;
    }

    /// self.step += 1 is add_ and gives the attribute the tensor that it has. Where all that is assigned to it is such,
    /// it keeps that one.
    void drop_writes_in_place() {
        std::map<Attribute, std::vector<Node*>> assigned;
        const auto add = [&](Node* node) {
            if (node->kind() == prim::SetAttr && objects_.contains(node->input(0))) {
                assigned[attribute_of(node)].push_back(node);
            }
        };
        for (Node* top : jit_.graph->nodes()) for_each_node(top, add);
        for (const auto& [attribute, nodes] : assigned) {
            if (!std::ranges::all_of(nodes, [&](const Node* node) { return keeps_its_tensor(node); })) continue;
            for (Node* node : nodes) node->destroy();
        }
    }

    bool keeps_its_tensor(const Node* assignment) const {
        const Node* source = before_writes(assignment->input(1))->node();
        return source->kind() == prim::GetAttr && objects_.contains(source->input(0)) &&
               attribute_of(source) == attribute_of(assignment) && attribute_value(assignment).isTensor();
    }

    /// Before any is read.
    void find_assigned_buffers(Block* block) {
        for (Node* node : block->nodes()) {
            for (Block* inner : node->blocks()) find_assigned_buffers(inner);
            if (node->kind() != prim::SetAttr || !objects_.contains(node->input(0))) continue;
            const c10::IValue value = attribute_value(node);
            if (is_buffer(value)) assigned_buffers_.insert(value.toTensor().unsafeGetTensorImpl());
        }
    }

    c10::IValue attribute_value(const Node* node) const {
        return objects_.at(node->input(0)).toObject()->getAttr(node->s(attr::name));
    }

    /// One that has one name: of two, one would go on with the old tensor.
    bool is_buffer(const c10::IValue& value) const {
        if (!value.isTensor()) return false;
        const auto found = index_of_.find(value.toTensor().unsafeGetTensorImpl());
        if (found == index_of_.end()) return false;
        const JitParameter& parameter = jit_.parameters[found->second];
        return parameter.is_buffer && parameter.aliases.empty();
    }

    void visit(Block* block) {
        for (auto it = block->nodes().begin(); it != block->nodes().end();) {
            Node* node = *it++;
            for (Block* inner : node->blocks()) visit(inner);
            if (node->kind() == prim::SetAttr && objects_.count(node->input(0))) assign(node);
            if (node->kind() == prim::GetAttr && objects_.count(node->input(0))) resolve(node);
        }
    }

    /// A list or dict goes on from microbatch to microbatch, in no checkpoint and apart on each rank.
    void check_containers(const AliasFacts& aliases) const {
        for (const auto& [value, attribute] : containers_) {
            if (!aliases.has_writers(value) || is_never_changed(value)) continue;
            throw Error(ErrorKind::BadData, "forward changes the list or dict " + attribute +
                                                ", which it would find changed in the next microbatch; make it in "
                                                "forward, or keep numbers in a buffer");
        }
    }

    using Attribute = std::pair<const void*, std::string>;  ///< object, name

    Attribute attribute_of(const Node* node) const {
        return {objects_.at(node->input(0)).toObject().get(), node->s(attr::name)};
    }

    /// What is assigned in the straight run of forward, before it is read, is the value for what reads it behind that.
    /// A buffer takes it: what it has at the end belongs to the model.
    void assign(Node* node) {
        const Attribute attribute = attribute_of(node);
        const c10::IValue value = attribute_value(node);
        if (is_buffer(value)) {
            insert_assignment(node, parameter_input(value.toTensor(), attribute.second), node->input(1),
                              attribute.second);
        } else {
            const bool is_straight = node->owningBlock() == jit_.graph->block();
            const bool is_parameter = value.isTensor() && index_of_.contains(value.toTensor().unsafeGetTensorImpl());
            if (!is_straight || is_parameter || value.isObject() || read_.contains(attribute)) refuse_write(node);
            assigned_[attribute] = node->input(1);
        }
        node->destroy();
    }

    /// "'count' of 'encoder.layer'"
    static std::string attribute_text(const Node* node) {
        const std::string owner = module_of(node);
        return "'" + node->s(attr::name) + "' of " + (owner.empty() ? "the model" : "'" + owner + "'");
    }

    [[noreturn]] static void refuse_write(const Node* node) {
        throw Error(ErrorKind::BadData, "forward assigns the attribute " + attribute_text(node) +
                                            "; make it a buffer that is written in place, as in self." +
                                            node->s(attr::name) + ".copy_(...)");
    }

    void resolve(Node* node) {
        const Attribute attribute = attribute_of(node);
        if (const auto assigned = assigned_.find(attribute); assigned != assigned_.end()) {
            replace(node, assigned->second);
            return;
        }
        read_.insert(attribute);
        const c10::IValue value = attribute_value(node);
        if (node->s(attr::name) == "training") jit_.reads_training.insert(module_of(node));
        if (value.isObject()) {
            object_reads_.push_back(node);
        } else if (value.isTensor() && value.toTensor().defined()) {
            Value* input = parameter_input(value.toTensor(), node->s(attr::name));
            const bool is_assigned = assigned_buffers_.contains(value.toTensor().unsafeGetTensorImpl());
            replace(node, is_assigned ? insert_reading(node, input) : input);
        } else if (is_parameter_list(value) && is_only_read(node->output())) {
            replace(node, parameter_list(value, node));
        } else if (is_dict_of_objects(value) && !has_tensors(value)) {
            look_up_parts(value.toGenericDict(), node);
        } else {
            Value* read = constant(value, node);
            if (!is_plain(*read->type())) containers_.emplace_back(read, attribute_text(node));
            replace(node, read);
        }
    }

    /// As nn.LSTM and its kin keep their weights a second time.
    bool is_parameter_list(const c10::IValue& value) const {
        if (!value.isTensorList() || value.toTensorVector().empty()) return false;
        const std::vector<at::Tensor> tensors = value.toTensorVector();
        return std::all_of(tensors.begin(), tensors.end(),
                           [&](const at::Tensor& tensor) { return index_of_.count(tensor.unsafeGetTensorImpl()); });
    }

    Value* parameter_list(const c10::IValue& value, Node* node) {
        std::vector<Value*> elements;
        for (const at::Tensor& tensor : value.toTensorVector()) {
            elements.push_back(parameter_input(tensor, node->s(attr::name)));
        }
        const torch::jit::WithInsertPoint here(node);
        Node* list = jit_.graph->insertNode(jit_.graph->createList(c10::TensorType::get(), elements));
        set_module(list, module_of(node));
        return list->output();
    }

    static bool is_dict_of_objects(const c10::IValue& value) {
        return value.isGenericDict() && value.toGenericDict().valueType()->cast<c10::ClassType>();
    }

    /// An object can be no constant and does not travel. What is read of one that is looked up is looked up itself, in
    /// a dict of that attribute: einops' layers keep what they do to a tensor under its number of dims.
    void look_up_parts(const c10::Dict<c10::IValue, c10::IValue>& objects, Node* node) {
        object_reads_.push_back(node);
        for (const torch::jit::Use& lookup : node->output()->uses()) {
            if (lookup.user->kind() != c10::aten::__getitem__) refuse_attribute(node);
            object_reads_.push_back(lookup.user);
            for (const torch::jit::Use& read : lookup.user->output()->uses()) {
                if (read.user->kind() != prim::GetAttr) refuse_attribute(node);
                object_reads_.push_back(read.user);
                Value* part = look_up_part(objects, lookup.user->input(1), read.user, attribute_text(node));
                read.user->output()->replaceAllUsesWith(part);
            }
        }
    }

    Value* look_up_part(const c10::Dict<c10::IValue, c10::IValue>& objects, Value* key, Node* read,
                        const std::string& attribute) {
        c10::impl::GenericDict parts(objects.keyType(), read->output()->type());
        for (const auto& entry : objects) {
            parts.insert(entry.key(), entry.value().toObjectRef().getAttr(read->s(attr::name)));
        }
        const std::string module = module_of(read);
        const torch::jit::WithInsertPoint here(read);
        Value* dict = make_of_constants(*jit_.graph, parts, module);
        if (!dict) refuse_attribute(read);
        containers_.emplace_back(dict, attribute);
        Value* part = jit_.graph->insert(c10::aten::__getitem__, {dict, key});
        set_module(part->node(), module);
        return part;
    }

    Value* parameter_input(const at::Tensor& tensor, const std::string& name) {
        const auto found = index_of_.find(tensor.unsafeGetTensorImpl());
        if (found == index_of_.end()) {
            throw Error(ErrorKind::BadData, "the tensor '" + name +
                                                "' is an attribute of an object that is no module; "
                                                "make it a parameter or buffer of a module");
        }
        JitParameter& parameter = jit_.parameters[found->second];
        if (!parameter.value) {
            parameter.value = jit_.graph->addInput(value_name(name));
            parameter.value->setType(c10::TensorType::get());
        }
        return parameter.value;
    }

    Value* constant(const c10::IValue& value, Node* node) {
        if (has_tensors(value)) {
            throw Error(ErrorKind::BadData, "the attribute " + attribute_text(node) + " is a " + value.tagKind() +
                                                " with tensors, which cannot be used in a pipeline; make each tensor "
                                                "in it a buffer");
        }
        {
            const torch::jit::WithInsertPoint at_start(*jit_.graph->nodes().begin());
            if (const auto inserted = torch::jit::tryInsertConstant(*jit_.graph, value)) return *inserted;
        }
        const torch::jit::WithInsertPoint here(node);
        Value* made = make_of_constants(*jit_.graph, value, module_of(node));
        if (!made) refuse_attribute(node);
        return made;
    }

    [[noreturn]] static void refuse_attribute(const Node* node) {
        throw Error(ErrorKind::BadData, "the attribute " + attribute_text(node) + " of type " +
                                            node->output()->type()->annotation_str() +
                                            " cannot be used in a pipeline; trace the model instead");
    }

    static void replace(Node* node, Value* value) {
        node->output()->replaceAllUsesWith(value);
        node->destroy();
    }

    JitGraph& jit_;
    std::unordered_map<const void*, size_t> index_of_;
    std::unordered_map<const Value*, c10::IValue> objects_;  ///< all that are read, by take_known_ways
    std::vector<Node*> object_reads_;                        ///< of modules and other objects, makers first
    std::set<std::string> assigned_names_;                   ///< of attributes of whatever
    std::unordered_set<const void*> assigned_buffers_;
    std::map<Attribute, Value*> assigned_;                          ///< by forward
    std::set<Attribute> read_;                                      ///< as they are before forward
    std::vector<std::pair<const Value*, std::string>> containers_;  ///< constants that are lists or dicts, and of what
};

}  // namespace

void resolve_attributes(JitGraph& jit, const torch::jit::Module& model) {
    AttributeResolver(jit, model).run();
}

}  // namespace vpp
