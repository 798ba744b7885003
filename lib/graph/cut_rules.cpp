#include "graph/cut_rules.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "graph/jit_branches.hpp"
#include "graph/jit_containers.hpp"

namespace vpp {

namespace {

constexpr int kNeverSettled = std::numeric_limits<int>::max();

/// They take the memory around a tensor, or ask for its place in it, which does not travel with it.
const std::set<std::string_view> kLooksAround{"aten::as_strided",         "aten::as_strided_", "aten::as_strided_copy",
                                              "aten::as_strided_scatter", "aten::resize_",     "aten::resize_as_",
                                              "aten::storage_offset",     "aten::is_set_to"};
/// What is written into its result is not seen by autograd.
const std::set<std::string_view> kHidesWrites{"prim::data"};

/// Whether it is an object of a class or an enum of the model's own, or holds one.
bool holds_objects(const c10::Type& type) {
    const bool is_object = type.kind() == c10::TypeKind::ClassType || type.kind() == c10::TypeKind::EnumType;
    return is_object ||
           std::ranges::any_of(type.containedTypes(), [](const c10::TypePtr& part) { return holds_objects(*part); });
}

/// Whether it has tensors for keys, which are found by being the same object.
bool has_tensor_keys(const c10::Type& type) {
    if (type.kind() == c10::TypeKind::DictType && is_tensor(*type.containedTypes()[0])) return true;
    return std::ranges::any_of(type.containedTypes(), [](const c10::TypePtr& part) { return has_tensor_keys(*part); });
}

/// Whether it is a list or a dict of plain values, or may be one.
bool lists_numbers(const c10::Type& type) {
    const auto parts = type.containedTypes();
    if (type.kind() == c10::TypeKind::OptionalType) return lists_numbers(*parts[0]);
    const bool list_or_dict = type.kind() == c10::TypeKind::ListType || type.kind() == c10::TypeKind::DictType;
    return list_or_dict && std::ranges::all_of(parts, [](const c10::TypePtr& part) { return is_plain(*part); });
}

/// Whether values of the type hold one number of tensors or another. A tuple may hold None or not in each place: that
/// is seen at run time, as attention of torch.nn gives such on all ways.
bool may_hold_more(const c10::Type& type) {
    if (is_tensor(type) || !holds_tensors(type)) return false;
    if (type.kind() != c10::TypeKind::TupleType) return true;
    return std::ranges::any_of(type.containedTypes(), [](const c10::TypePtr& part) {
        return part->kind() != c10::TypeKind::OptionalType && may_hold_more(*part);
    });
}

class CutFinder {
  public:
    CutFinder(const Graph& graph, const JitGraph& jit, const AliasFacts& aliases, const MemoryFamilies& families,
              const std::vector<torch::jit::Value*>& values)
        : graph_(graph),
          jit_(jit),
          aliases_(aliases),
          families_(families),
          values_(values),
          cuts_(graph.ops.size()),
          last_uses_(graph.tensors.size(), -1) {
        for (const torch::jit::Value* value : values) has_writers_.push_back(aliases.has_writers(value));
        for (size_t value = 0; value < graph.values.size(); ++value) {
            for (int tensor : graph.values[value].tensors) {
                int& last = last_uses_[static_cast<size_t>(tensor)];
                last = std::max(last, last_use(value));
            }
        }
    }

    std::vector<GraphCut> find() {
        refuse_guards();
        for (size_t value = 0; value < graph_.values.size(); ++value) refuse_written_outside(value);
        for (size_t value = 0; value < graph_.values.size(); ++value) refuse_changing_container(value);
        for (size_t value = 0; value < graph_.values.size(); ++value) refuse_container_of_branch(value);
        for (size_t value = 0; value < graph_.values.size(); ++value) refuse_what_stays(value);
        for (const GraphTensor& tensor : graph_.tensors) refuse_lost_gradient(tensor);
        for (size_t tensor = 0; tensor < graph_.tensors.size(); ++tensor) refuse_written_view(tensor);
        for (int op = 0; op < graph_.num_ops(); ++op) {
            const torch::jit::Node* node = jit_.ops[static_cast<size_t>(op)].node;
            if (takes_gradients(node)) refuse_inner_gradient(op);
            if (find_op(node, kLooksAround)) refuse_memory_around(op);
            if (find_op(node, kHidesWrites)) refuse_hidden_writes(op);
        }
        refuse_live_aliases();
        for (size_t value = 0; value < graph_.values.size(); ++value) refuse_live_elements(value);
        for (size_t value = 0; value < graph_.values.size(); ++value) refuse_live_twins(value);
        return std::move(cuts_);
    }

  private:
    /// Refuses every cut that has op `first` before it and op `last` behind it.
    void refuse_between(int first, int last, const std::string& reason) {
        for (int cut = first + 1; cut <= last; ++cut) refuse(cut, reason);
    }

    void refuse(int cut, const std::string& reason) {
        GraphCut& entry = cuts_[static_cast<size_t>(cut)];
        if (entry.legal) entry = {false, reason};
    }

    int last_use(size_t value) const {
        const GraphValue& entry = graph_.values[value];
        const int used = entry.uses.empty() ? -1 : entry.uses.back();
        return static_cast<int>(value) == graph_.loss ? std::max(used, graph_.num_ops() - 1) : used;
    }

    /// A guard's state lives on the interpreter's stack; an object cannot travel.
    void refuse_guards() {
        for (size_t value = 0; value < values_.size(); ++value) {
            const c10::Type& type = *values_[value]->type();
            const std::string name = "'" + graph_.values[value].name + "'";
            if (holds_objects(type)) {
                refuse_between(graph_.values[value].producer, last_use(value),
                               "it lies inside the use of an object of the model's own class (" + name + ")");
            } else if (has_tensor_keys(type)) {
                refuse_between(graph_.values[value].producer, last_use(value),
                               "the keys of " + name + " are tensors, found by being the same object");
            }
        }
    }

    /// A written buffer or model input: each stage would have a copy of its own.
    void refuse_written_outside(size_t value) {
        const bool from_outside = graph_.values[value].producer < 0;
        if (!from_outside || !has_writers_[value]) return;
        int first = graph_.num_ops(), last = -1;
        for (size_t other : families_.values_beside(value)) {
            // It comes from outside, so it is one memory; a tensor that shares it has the same writers.
            if (graph_.values[other].is_tensor && !has_writers_[other]) continue;
            if (!aliases_.may_share(values_[value], values_[other])) continue;
            const GraphValue& entry = graph_.values[other];
            if (entry.producer >= 0) first = std::min(first, entry.producer);
            if (!entry.uses.empty()) first = std::min(first, entry.uses.front());
            last = std::max({last, entry.producer, last_use(other)});
        }
        if (first >= last) return;
        refuse_between(
            first, last,
            "'" + graph_.values[value].name + "' is written in place" + by_writer(value) + " and used on both sides");
    }

    /// " by the op aten::add_ in 'encoder'": the first one that may write it.
    std::string by_writer(size_t value) const {
        for (int op = 0; op < graph_.num_ops(); ++op) {
            if (may_write(op, value)) return " by " + op_text(jit_, jit_.ops[static_cast<size_t>(op)].node);
        }
        return "";
    }

    /// A list or dict that grows: what it holds at the cut is not what the probe saw at the end. Behind the last change
    /// one of numbers, which is sent as it is, is like all others.
    void refuse_changing_container(size_t value) {
        const GraphValue& entry = graph_.values[value];
        if (entry.is_tensor || entry.producer < 0 || !aliases_.may_be_changed(values_[value])) return;
        const int used = last_use(value), changed = lists_numbers(*values_[value]->type()) ? last_change(value) : used;
        refuse_between(entry.producer, std::min(used, changed),
                       "the list or dict '" + entry.name + "' is changed in place");
    }

    /// The last op that may change which elements the list or dict has, also before it was given this name; the end of
    /// the graph where none is found.
    int last_change(size_t value) const {
        for (int op = graph_.num_ops() - 1; op >= 0; --op) {
            if (may_write(op, value)) return op;
        }
        return graph_.num_ops();
    }

    bool may_write(int op, size_t value) const {
        const torch::jit::Node* node = jit_.ops[static_cast<size_t>(op)].node;
        return aliases_.may_write_at_all(node) && aliases_.may_write(node, values_[value]);
    }

    /// A list or what may be None, of tensors, that a branch gives, or that is made of what a branch changes: others,
    /// or another number of them, from microbatch to microbatch.
    void refuse_container_of_branch(size_t value) {
        const GraphValue& entry = graph_.values[value];
        const torch::jit::Value* holder = values_[value];
        if (!may_hold_more(*holder->type()) || !may_hold_others(holder)) return;
        refuse_between(
            entry.producer, last_use(value),
            "'" + entry.name + "', a " + holder->type()->repr_str() + ", holds other tensors, as the data have it");
    }

    /// A tensor that no message holds.
    void refuse_what_stays(size_t value) {
        const GraphValue& entry = graph_.values[value];
        const auto stays = [&](int tensor) { return !graph_.tensors[static_cast<size_t>(tensor)].travels; };
        if (entry.producer < 0 || std::ranges::none_of(entry.tensors, stays)) return;
        refuse_between(entry.producer, last_use(value),
                       "'" + entry.name + "' is sparse, quantised or negated when read, which cannot be sent");
    }

    /// A tensor that requires a gradient until an op takes that away in place: it would go over without its history.
    void refuse_lost_gradient(const GraphTensor& tensor) {
        for (int op : tensor.gradient_flips) {
            if (!tensor.requires_grad_at(op)) continue;
            refuse_between(tensor.producer, op, "'" + tensor.name + "' loses its gradient in place behind it");
        }
    }

    /// torch.autograd.grad goes back through what the ops from the first use of its inputs on have recorded, and all of
    /// that must be in its own stage.
    void refuse_inner_gradient(int op) {
        int first = op;
        for (int value : graph_.ops[static_cast<size_t>(op)].inputs) {
            for (int tensor : graph_.values[static_cast<size_t>(value)].tensors) {
                first = std::min(first, first_use(tensor));
            }
        }
        refuse_between(first, op,
                       "torch.autograd.grad (op " + std::to_string(op) + ") goes back through what lies there");
    }

    /// From the first op that makes a value of that memory to the op that takes more of it than a tensor has, unless
    /// the tensor is all of it.
    void refuse_memory_around(int op) {
        for (int input : graph_.ops[static_cast<size_t>(op)].inputs) {
            const auto value = static_cast<size_t>(input);
            int first = graph_.values[value].producer;
            if (first < 0 || !has_more_around(value)) continue;
            for (size_t other : families_.values_beside(value)) {
                const int producer = graph_.values[other].producer;
                if (producer < 0 || producer >= first || !aliases_.may_share(values_[value], values_[other])) continue;
                first = producer;
            }
            refuse_between(first, op,
                           "op " + std::to_string(op) + " takes memory around '" + graph_.values[value].name +
                               "', which does not go over with it");
        }
    }

    /// Whether it may lie in larger memory.
    bool has_more_around(size_t value) const {
        return std::ranges::any_of(graph_.values[value].tensors, [this](int tensor) {
            const GraphTensor& entry = graph_.tensors[static_cast<size_t>(tensor)];
            return entry.from_branch || !entry.fills_memory;
        });
    }

    /// Autograd does not see a write through .data: backward takes what is there then, also of ops before the cut, and
    /// what they kept would not be written on the other side.
    void refuse_hidden_writes(int op) {
        for (int input : graph_.ops[static_cast<size_t>(op)].inputs) {
            const auto value = static_cast<size_t>(input);
            if (!has_writers_[value]) continue;
            int first = graph_.num_ops(), last = -1;
            for (size_t other : families_.values_beside(value)) {
                const GraphValue& entry = graph_.values[other];
                if (entry.producer < 0 || !aliases_.may_share(values_[value], values_[other])) continue;
                first = std::min(first, entry.producer);
                for (int tensor : entry.tensors) {
                    const std::vector<int>& writers = graph_.tensors[static_cast<size_t>(tensor)].writers;
                    if (!writers.empty()) last = std::max(last, writers.back());
                }
            }
            refuse_between(first, last,
                           "'" + graph_.values[value].name + "' is written through .data, which backward does not see");
        }
    }

    int first_use(int tensor) const {
        int first = graph_.num_ops();
        for (const GraphValue& value : graph_.values) {
            if (std::ranges::find(value.tensors, tensor) == value.tensors.end() || value.uses.empty()) continue;
            first = std::min(first, value.uses.front());
        }
        return first;
    }

    /// A view that is written is written through what it is a part of, and its gradient gets that memory's layout; on
    /// the other side it is a tensor of its own, and sums of its gradient go another way through memory.
    void refuse_written_view(size_t index) {
        const GraphTensor& tensor = graph_.tensors[index];
        const bool may_be_view = tensor.is_view || tensor.from_branch;
        if (!may_be_view || tensor.producer < 0 || tensor.writers.empty() || !is_trained(static_cast<int>(index)))
            return;
        const int last = std::min(last_uses_[index], tensor.writers.back());
        refuse_between(tensor.producer, last, "'" + tensor.name + "' is a view that is written in place behind it");
    }

    /// The first cut behind which nobody writes what the value holds, while its tensors know it: a view that was made
    /// before a write learns of it when it is used next, which would come at another time on the other side.
    int settled_from(size_t value) const {
        int settled = 0;
        for (int tensor : graph_.values[value].tensors) {
            const std::vector<int>& writers = graph_.tensors[static_cast<size_t>(tensor)].writers;
            if (writers.empty()) continue;
            settled = std::max(settled, makes(writers.back(), tensor) ? writers.back() + 1 : kNeverSettled);
        }
        return settled;
    }

    bool makes(int op, int tensor) const {
        return std::ranges::any_of(graph_.ops[static_cast<size_t>(op)].outputs, [&](int value) {
            const std::vector<int>& held = graph_.values[static_cast<size_t>(value)].tensors;
            return std::ranges::find(held, tensor) != held.end();
        });
    }

    /// Two live values that may share memory that is written: on the other side they would not share it.
    void refuse_live_aliases() {
        for (size_t written = 0; written < values_.size(); ++written) {
            if (graph_.values[written].producer < 0 || !has_writers_[written]) continue;
            for (size_t other : families_.values_beside(written)) {
                const bool both_made = other != written && graph_.values[other].producer >= 0;
                if (!both_made) continue;
                const int first = std::max(graph_.values[written].producer, graph_.values[other].producer);
                const int settled = std::max(settled_from(written), settled_from(other));
                const int last = std::min({last_use(written), last_use(other), settled - 1});
                if (last <= first || !aliases_.may_share(values_[written], values_[other])) continue;
                refuse_between(first, last,
                               "'" + graph_.values[written].name + "' and '" + graph_.values[other].name +
                                   "' may share memory that is written in place, and both are used behind it");
            }
        }
    }

    /// The same of the tensors that one list holds.
    void refuse_live_elements(size_t value) {
        const GraphValue& list = graph_.values[value];
        if (list.producer < 0 || list.tensors.size() < 2) return;
        const int last = std::min(last_use(value), settled_from(value) - 1);
        refuse_between(list.producer, last,
                       "tensors in '" + list.name + "' may share memory that is written in place behind it");
    }

    /// As the code calls it, or by the op that gives it where it has no name there.
    std::string called(size_t value) const {
        const GraphValue& entry = graph_.values[value];
        const bool has_name = !std::ranges::all_of(entry.name, [](char c) { return c >= '0' && c <= '9'; });
        if (has_name || entry.producer < 0) return "'" + entry.name + "'";
        return "what " + numbered_op_text(graph_, entry.producer) + " gives";
    }

    /// What comes out of control flow may be the very tensor of another value, or not, from microbatch to microbatch:
    /// on the other side they would be two, whose gradients are summed apart.
    void refuse_live_twins(size_t value) {
        for (int branch : graph_.values[value].tensors) {
            if (!graph_.tensors[static_cast<size_t>(branch)].from_branch || !is_trained(branch)) continue;
            for (size_t other : families_.values_beside(value)) {
                const std::vector<int>& held = graph_.values[other].tensors;
                const auto is_twin = [&](int tensor) { return tensor != branch && is_trained(tensor); };
                if (std::none_of(held.begin(), held.end(), is_twin)) continue;
                if (!aliases_.may_share(values_[value], values_[other])) continue;
                refuse_between(std::max(graph_.values[value].producer, graph_.values[other].producer),
                               std::min(last_use(value), last_use(other)),
                               called(value) + " may be the same tensor as " + called(other) +
                                   ", as the data have it, and both are used behind it");
            }
        }
    }

    /// Whether gradients may come to it.
    bool is_trained(int tensor) const {
        const GraphTensor& entry = graph_.tensors[static_cast<size_t>(tensor)];
        return entry.requires_grad || !entry.gradient_flips.empty();
    }

    const Graph& graph_;
    const JitGraph& jit_;
    const AliasFacts& aliases_;
    const MemoryFamilies& families_;
    const std::vector<torch::jit::Value*>& values_;
    std::vector<GraphCut> cuts_;
    std::vector<bool> has_writers_;  ///< by value
    std::vector<int> last_uses_;     ///< by tensor
};

}  // namespace

std::vector<GraphCut> find_cuts(const Graph& graph, const JitGraph& jit, const AliasFacts& aliases,
                                const MemoryFamilies& families, const std::vector<torch::jit::Value*>& values) {
    return CutFinder(graph, jit, aliases, families, values).find();
}

}  // namespace vpp
