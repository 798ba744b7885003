// What comes from outside and forward writes in place, an argument or a buffer: a stage has it for itself, so no cut
// may part two ops that use it. A copy is a value like all others and goes from stage to stage.
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/jit_alias.hpp"
#include "graph/jit_graph.hpp"
#include "graph/value_sets.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

/// A copy of more would be felt, as of what a layer keeps from call to call and reads whole.
constexpr size_t kMostCopiedBytes = size_t{1} << 20;

/// What is copied under no_grad may still be used where gradients are recorded.
at::Tensor recorded_copy(const at::Tensor& tensor) {
    const at::AutoGradMode records(true);
    return tensor.clone();
}

TORCH_LIBRARY_FRAGMENT(vpp, library) {
    library.def(torch::schema("vpp::copy_written(Tensor tensor) -> Tensor", c10::AliasAnalysisKind::FROM_SCHEMA),
                recorded_copy);
}

class WrittenCopies {
  public:
    explicit WrittenCopies(JitGraph& jit) : jit_(jit) {
        for (Node* node : jit.graph->nodes()) tops_.push_back(node);
        tops_.push_back(jit.graph->return_node());
        for (size_t i = 0; i < tops_.size(); ++i) place_[tops_[i]] = static_cast<int>(i);
        find_memory();
        find_writers();
    }

    void run() {
        for (Value* argument : written_arguments()) copy_argument(argument);
        for (const JitParameter& parameter : jit_.parameters) {
            const bool is_small = parameter.tensor.nbytes() <= kMostCopiedBytes;
            if (parameter.value && parameter.is_buffer && is_small && !parameter.tensor.requires_grad()) {
                copy_buffer(parameter.value);
            }
        }
    }

  private:
    /// By top-level op what it touches; what may share memory is one set. Behind what gives the outputs nobody writes.
    void find_memory() {
        for (Node* top : tops_) {
            touched_.push_back(values_touched(top));
            const bool gathers = top->kind() == prim::TupleConstruct && top->next() == jit_.graph->return_node();
            if (!gathers && top->kind() != prim::Return) join_memory(top, touched_.back(), memory_);
        }
    }

    void find_writers() {
        for (size_t i = 0; i < tops_.size(); ++i) {
            for_each_node(tops_[i], [&](const Node* node) {
                for (const Value* value : inputs_written(node)) last_writer_[memory_.find(value)] = static_cast<int>(i);
            });
        }
    }

    /// The place of the top-level op that holds the node; in front of all others for what comes from outside.
    int place_of(const Node* node) const {
        while (const Node* owner = node->owningBlock()->owningNode()) node = owner;
        const auto found = place_.find(node);
        return found == place_.end() ? -1 : found->second;
    }

    /// A list or tuple puts what it holds into one set: where that is written the analysis is asked, which knows
    /// better.
    std::vector<Value*> written_arguments() {
        std::vector<Value*> arguments;
        for (const JitInput& input : jit_.inputs) {
            const bool is_used = input.value && is_tensor(*input.value->type()) && input.value->hasUses();
            if (is_used && last_writer_.contains(memory_.find(input.value))) arguments.push_back(input.value);
        }
        if (arguments.empty()) return {};
        list_ops(jit_);  // of which the analysis looks at the last one
        const AliasFacts aliases(jit_);
        std::erase_if(arguments, [&](const Value* argument) { return !aliases.has_writers(argument); });
        return arguments;
    }

    /// From its first use on all use the copy.
    void copy_argument(Value* argument) {
        int first = static_cast<int>(tops_.size());
        for (const torch::jit::Use& use : argument->uses()) first = std::min(first, place_of(use.user));
        Node* copy = make_copy(argument, tops_[static_cast<size_t>(first)]);
        copy->insertBefore(tops_[static_cast<size_t>(first)]);
        replace({argument}, first, copy);
    }

    /// Who reads it behind its last write, and nothing else of its memory, reads the copy.
    void copy_buffer(Value* buffer) {
        const auto writer = last_writer_.find(memory_.find(buffer));
        if (writer == last_writer_.end()) return;
        const int last = writer->second;
        const std::unordered_set<const Value*> same = same_tensor(buffer);
        bool is_read = false;
        for (size_t i = static_cast<size_t>(last) + 1; i < tops_.size(); ++i) {
            for (const Value* value : touched_[i]) {
                if (memory_.find(value) != memory_.find(buffer) || place_of(value->node()) > last) continue;
                if (!same.contains(value)) return;
                is_read = true;
            }
        }
        if (!is_read) return;
        Node* copy = make_copy(buffer, tops_[static_cast<size_t>(last)]);
        copy->insertAfter(tops_[static_cast<size_t>(last)]);
        replace(same, last + 1, copy);
    }

    /// The value, and what ops that write it give again.
    std::unordered_set<const Value*> same_tensor(const Value* value) const {
        std::unordered_set<const Value*> same{value};
        for (const Node* top : tops_) {
            if (gives_what_it_writes(top) && same.contains(top->input(0))) same.insert(top->output(0));
        }
        return same;
    }

    Node* make_copy(Value* value, Node* beside) {
        Node* copy = jit_.graph->create(c10::Symbol::fromQualString("vpp::copy_written"), {value});
        copy->copyMetadata(beside);
        set_module(copy, module_of(beside));
        copy->output()->setType(c10::TensorType::get());
        return copy;
    }

    /// In ops from that place on.
    void replace(const std::unordered_set<const Value*>& values, int first, Node* copy) {
        const auto follow = [&](Value*& value) {
            if (values.contains(value)) value = copy->output();
        };
        for (const Value* value : values) {
            const torch::jit::use_list uses = value->uses();  // which replacing changes
            for (const torch::jit::Use& use : uses) {
                if (use.user != copy && place_of(use.user) >= first) use.user->replaceInput(use.offset, copy->output());
            }
        }
        follow(jit_.loss);
        for (JitOutput& output : jit_.outputs) follow(output.value);
        for (JitOutput& tally : jit_.tallies) follow(tally.value);
    }

    JitGraph& jit_;
    std::vector<Node*> tops_;  ///< the graph's nodes, and what gives its outputs
    std::unordered_map<const Node*, int> place_;
    std::vector<std::vector<const Value*>> touched_;
    ValueSets memory_;
    std::unordered_map<const Value*, int> last_writer_;  ///< by the value that stands for a memory
};

}  // namespace

void copy_written(JitGraph& jit) {
    WrittenCopies(jit).run();
}

}  // namespace vpp
