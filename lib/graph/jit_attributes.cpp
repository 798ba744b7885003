// Attributes of modules become graph inputs (one per distinct tensor), lists of these, or constants, so that nothing in
// the graph refers to the module any more; the training flags among them fold away.
#include <torch/csrc/jit/ir/constants.h>

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

bool has_tensors(const c10::IValue& value) {
    bool found = false;
    value.visit([&](const c10::IValue& part) {
        found = found || (part.isTensor() && part.toTensor().defined());
        return found;  // true stops the walk
    });
    return found;
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
        find_assigned_buffers(jit_.graph->block());
        visit(jit_.graph->block());
        for (auto it = module_reads_.rbegin(); it != module_reads_.rend(); ++it) {
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
    /// Before any is read.
    void find_assigned_buffers(Block* block) {
        for (Node* node : block->nodes()) {
            for (Block* inner : node->blocks()) find_assigned_buffers(inner);
            const bool reads = node->kind() == prim::GetAttr, assigns = node->kind() == prim::SetAttr;
            if ((!reads && !assigns) || !objects_.contains(node->input(0))) continue;
            const c10::IValue value = attribute_value(node);
            if (reads && value.isObject()) objects_[node->output()] = value;
            if (assigns && is_buffer(value)) assigned_buffers_.insert(value.toTensor().unsafeGetTensorImpl());
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
            if (!aliases.has_writers(value)) continue;
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
            insert_assignment(node, parameter_input(value.toTensor(), attribute.second), node->input(1));
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
            objects_[node->output()] = value;
            module_reads_.push_back(node);
        } else if (value.isTensor() && value.toTensor().defined()) {
            Value* input = parameter_input(value.toTensor(), node->s(attr::name));
            const bool is_assigned = assigned_buffers_.contains(value.toTensor().unsafeGetTensorImpl());
            replace(node, is_assigned ? insert_reading(node, input) : input);
        } else if (is_parameter_list(value) && is_only_read(node->output())) {
            replace(node, parameter_list(value, node));
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

    Value* constant(const c10::IValue& value, const Node* node) {
        const torch::jit::WithInsertPoint at_start(*jit_.graph->nodes().begin());
        const auto inserted = has_tensors(value) ? std::nullopt : torch::jit::tryInsertConstant(*jit_.graph, value);
        if (!inserted) {
            throw Error(ErrorKind::BadData, "the attribute '" + node->s(attr::name) + "' of type " + value.tagKind() +
                                                " cannot be used in a pipeline; make each tensor in it a buffer");
        }
        return *inserted;
    }

    static void replace(Node* node, Value* value) {
        node->output()->replaceAllUsesWith(value);
        node->destroy();
    }

    JitGraph& jit_;
    std::unordered_map<const void*, size_t> index_of_;
    std::unordered_map<const Value*, c10::IValue> objects_;
    std::vector<Node*> module_reads_;
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
