#pragma once
// What may share memory with what, and who writes it. LibTorch's AliasDb takes all graph inputs for aliases of each
// other; here it sees a copy of the graph in which every tensor input is fresh memory.
#include <torch/csrc/jit/ir/alias_analysis.h>

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/jit_graph.hpp"

namespace vpp {

/// Numbers, words and None: nobody can write into them.
bool is_plain(const c10::Type& type);
bool is_tensor(const c10::Type& type);
/// Whether memory of tensors can be reached through it.
bool holds_tensors(const c10::Type& type);

/// Whether it is a tuple of tensors and plain values, or of such tuples: no list or dict is in it.
bool is_tuple_of_tensors(const c10::Type& type);

/// Whether what the op makes lies in memory of its own, for certain: some composed ops give what they were given,
/// though their schemas say nothing of it (aten::dropout with p = 0).
bool makes_fresh_memory(const torch::jit::Node* node);

/// What the node writes though its schema does not say so: batch_norm and its kin write running_mean and running_var
/// unless a training flag is false.
std::vector<const torch::jit::Value*> statistics_written(const torch::jit::Node* node);

/// Lists of which the node writes the tensors, as aten::_foreach_mul_ does; the analysis takes it for a change of the
/// list alone.
std::vector<const torch::jit::Value*> lists_with_elements_written(const torch::jit::Node* node);

/// What the node itself writes of its inputs: by its schema, batch statistics, or whatever it reaches where it has side
/// effects. Nodes inside it are not asked.
std::vector<const torch::jit::Value*> inputs_written(const torch::jit::Node* node);

/// Whether the op writes the tensor that is its first input and gives it again, as aten::add_ does.
bool gives_what_it_writes(const torch::jit::Node* node);

/// Puts an op that makes memory at the begin of a graph that is analysed only: "vpp::fresh_memory", which is shared
/// with nothing, or "vpp::any_memory", a tensor out of some container. Gives the tensor.
torch::jit::Value* insert_memory(torch::jit::Graph& graph, const char* op);

/// Alias facts of one graph, asked by the graph's own values and nodes. Not for use after the graph changed.
class AliasFacts {
  public:
    explicit AliasFacts(const JitGraph& jit);

    /// Takes in what a run saw: the values of each group lay in one memory, the first made first. Some ops give views
    /// though their schemas say nothing of it (aten::broadcast_tensors, aten::einsum of one operand, custom ones).
    void learn(const std::vector<std::vector<const torch::jit::Value*>>& groups);

    /// Whether some node writes memory that the value may hold.
    bool has_writers(const torch::jit::Value* value) const;
    /// Whether some node may change which elements the list or dict has, or one that it holds.
    bool may_be_changed(const torch::jit::Value* container) const;
    /// Whether the values may share memory, elements of lists included.
    bool may_share(const torch::jit::Value* a, const torch::jit::Value* b) const;
    /// Whether the value may be an element of a list, dict or object that ops change, or come out of one.
    bool may_be_in_container(const torch::jit::Value* value) const;
    /// Whether the node writes memory of its own inputs, by its schema.
    bool writes_what_it_uses(const torch::jit::Node* node) const;
    /// Whether the node, or a node inside it, may write memory that the value holds.
    bool may_write(const torch::jit::Node* node, const torch::jit::Value* value) const;
    /// False only where may_write is false for every value; quick, so that few nodes need be asked for each of them.
    bool may_write_at_all(const torch::jit::Node* node) const;

  private:
    torch::jit::Value* copy_of(const torch::jit::Value* value) const;
    /// Puts the silent writes into the copy, behind the ops that do them.
    void tell_silent_writes();
    void tell_write(torch::jit::Value* memory, torch::jit::Node* writer);
    bool may_write_silently(const torch::jit::Node* node, const torch::jit::Value* value) const;
    /// Tells what ops inside branches and loops, which no run may have seen, may give on.
    void tell_identities();
    void tell_identity(const torch::jit::Node* original, torch::jit::Node* twin);
    void find_written();
    bool analysis_says_shared(const torch::jit::Value* a, const torch::jit::Value* b) const;
    /// The groups of which only a run says that they share memory with it.
    const std::vector<size_t>& seen_groups(const torch::jit::Value* value) const;
    bool may_share_with_group(const torch::jit::Value* value, size_t group) const;
    bool may_share_groups(size_t a, size_t b) const;

    std::shared_ptr<torch::jit::Graph> copy_;
    std::unordered_map<const torch::jit::Value*, torch::jit::Value*> values_;
    std::unordered_map<const torch::jit::Node*, torch::jit::Node*> nodes_;
    torch::jit::Value* in_container_ = nullptr;  ///< a tensor of the copy that may be any tensor of any container
    std::unique_ptr<torch::jit::AliasDb> db_;
    /// Tensors of groups that the analysis does not know; these and the next are values of the copy.
    std::vector<std::vector<torch::jit::Value*>> seen_;
    std::vector<torch::jit::Value*> written_tensors_, changed_containers_;
    std::unordered_map<const torch::jit::Value*, std::vector<size_t>> seen_of_value_;  ///< indices into seen_
    /// What an op writes though the analysis does not see it: batch statistics, tensors in lists.
    std::unordered_map<const torch::jit::Node*, std::vector<const torch::jit::Value*>> silent_writes_;
    // Groups may be as large as the graph: what was found of them is kept.
    mutable std::map<std::pair<const torch::jit::Value*, size_t>, bool> shares_with_group_;
    mutable std::map<std::pair<size_t, size_t>, bool> groups_share_;
    mutable std::map<std::pair<const torch::jit::Node*, size_t>, bool> writes_group_;
};

}  // namespace vpp
