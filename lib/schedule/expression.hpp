#pragma once
// Expression trees for symbolic execution (schedule/symbolic.hpp): what a value or a gradient was computed from, with
// the brackets of its sums. Trees are hash-consed: equal trees have equal numbers, so comparing them costs nothing.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vpp {

/// The number of a tree in its pool.
using Tree = uint32_t;

enum class TreeKind : uint8_t {
    Undefined,       ///< a gradient that does not exist; neutral in sums
    Missing,         ///< what was used but never came; not neutral, so that it shows
    Data,            ///< leaf: input of microbatch `label`
    Seed,            ///< leaf: gradient of the scaled loss of microbatch `label`
    Weight,          ///< leaf: parameter `label`
    Random,          ///< leaf: key of op `label` in microbatch `slot`, execution `left`
    Value,           ///< made by op `label` from the list `left`
    InputGradient,   ///< of input `slot` of op `label`, from the gradient `left` and what was saved, `right`
    WeightGradient,  ///< of the parameter of op `label`, likewise
    Sum,             ///< left + right
    Buffer,          ///< the buffer of op `label` after it saw `right`; before, it was `left`
    Reduced,         ///< `left`, summed over the replicas
    List,            ///< `left`, then the list `right` (Undefined ends it)
};

struct TreeNode {
    TreeKind kind = TreeKind::Undefined;
    int32_t label = 0;
    int32_t slot = 0;
    Tree left = 0;
    Tree right = 0;

    bool operator==(const TreeNode&) const = default;
};

inline constexpr Tree kUndefined = 0;
inline constexpr Tree kMissing = 1;

class TreePool {
  public:
    TreePool();

    /// The number of the tree with this root; the same root always has the same number.
    Tree make(const TreeNode& root);
    /// left + right in this order; a term that is undefined is left out.
    Tree sum(Tree left, Tree right);
    const TreeNode& node(Tree tree) const { return nodes_[tree]; }
    size_t size() const { return nodes_.size(); }

    /// "(dw2[0] + dw2[1])": op or parameter, and the microbatches that went into it. What lies more than `depth` steps
    /// down is left out, and so are all but the last terms of a long sum (".." in their place).
    std::string text(Tree tree, int depth) const;
    /// The first place where two trees differ: "X instead of Y", shortened.
    std::string difference_text(Tree got, Tree expected) const;

  private:
    /// The smallest and largest microbatch in a tree; first > last when there is none.
    struct Microbatches {
        int32_t first = INT32_MAX;
        int32_t last = -1;
    };

    Microbatches microbatches_of(const TreeNode& node) const;
    std::string name(Tree tree, const char* letters) const;
    std::string sum_text(Tree tree, int term_depth) const;
    void grow();

    std::vector<TreeNode> nodes_;
    std::vector<Microbatches> microbatches_;  ///< by tree
    std::vector<Tree> table_;                 ///< open addressing; kUndefined = free
};

}  // namespace vpp
