#include "schedule/expression.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace vpp {

namespace {

constexpr size_t kFirstTableSize = 1024;  // a power of two
constexpr int kShownDepth = 3, kShownTerms = 4;

uint64_t hash_of(const TreeNode& node) {
    const uint64_t head = static_cast<uint64_t>(node.kind) << 56 ^ static_cast<uint64_t>(node.label) << 20 ^
                          static_cast<uint64_t>(node.slot);
    return mix64(head ^ mix64(static_cast<uint64_t>(node.left) << 32 | node.right));
}

bool same_head(const TreeNode& one, const TreeNode& other) {
    return one.kind == other.kind && one.label == other.label && one.slot == other.slot;
}

}  // namespace

TreePool::TreePool() : table_(kFirstTableSize, kUndefined) {
    nodes_ = {{TreeKind::Undefined, 0, 0, 0, 0}, {TreeKind::Missing, 0, 0, 0, 0}};
    microbatches_.resize(nodes_.size());
}

Tree TreePool::make(const TreeNode& root) {
    if (root.kind == TreeKind::Undefined) return kUndefined;
    if (root.kind == TreeKind::Missing) return kMissing;
    const size_t mask = table_.size() - 1;
    size_t place = hash_of(root) & mask;
    for (; table_[place] != kUndefined; place = (place + 1) & mask) {
        if (nodes_[table_[place]] == root) return table_[place];
    }
    const auto tree = static_cast<Tree>(nodes_.size());
    table_[place] = tree;
    nodes_.push_back(root);
    microbatches_.push_back(microbatches_of(root));
    if (nodes_.size() * 2 > table_.size()) grow();
    return tree;
}

Tree TreePool::sum(Tree left, Tree right) {
    if (left == kUndefined) return right;
    if (right == kUndefined) return left;
    return make({TreeKind::Sum, 0, 0, left, right});
}

void TreePool::grow() {
    table_.assign(table_.size() * 4, kUndefined);
    const size_t mask = table_.size() - 1;
    for (Tree tree = kMissing + 1; tree < nodes_.size(); ++tree) {
        size_t place = hash_of(nodes_[tree]) & mask;
        while (table_[place] != kUndefined) place = (place + 1) & mask;
        table_[place] = tree;
    }
}

TreePool::Microbatches TreePool::microbatches_of(const TreeNode& node) const {
    if (node.kind == TreeKind::Data || node.kind == TreeKind::Seed) return {node.label, node.label};
    if (node.kind == TreeKind::Random) return {node.slot, node.slot};
    const Microbatches left = microbatches_[node.left], right = microbatches_[node.right];
    return {std::min(left.first, right.first), std::max(left.last, right.last)};
}

/// "dw2[0]", "dw2[0..3]", "w2".
std::string TreePool::name(Tree tree, const char* letters) const {
    const Microbatches& range = microbatches_[tree];
    std::string text = letters + std::to_string(nodes_[tree].label);
    if (range.first > range.last) return text;
    text += '[' + std::to_string(range.first);
    if (range.first < range.last) text += ".." + std::to_string(range.last);
    return text + ']';
}

/// The last terms of a sum with their brackets: "(((.. + a) + b) + c)".
std::string TreePool::sum_text(Tree tree, int term_depth) const {
    std::string open, terms;
    for (int shown = 0; shown < kShownTerms && nodes_[tree].kind == TreeKind::Sum; ++shown) {
        terms = " + " + text(nodes_[tree].right, term_depth) + ')' + terms;
        open += '(';
        tree = nodes_[tree].left;
    }
    return open + (nodes_[tree].kind == TreeKind::Sum ? ".." : text(tree, term_depth)) + terms;
}

std::string TreePool::text(Tree tree, int depth) const {
    const TreeNode& root = nodes_[tree];
    const auto inner = [&](Tree part) { return depth > 0 ? text(part, depth - 1) : std::string(".."); };
    const auto made = [&](const char* letters, const std::string& parts) {
        return name(tree, letters) + (depth > 0 ? '(' + parts + ')' : "");
    };
    switch (root.kind) {
        case TreeKind::Undefined:
            return "undefined";
        case TreeKind::Missing:
            return "missing";
        case TreeKind::Data:
            return "data[" + std::to_string(root.label) + ']';
        case TreeKind::Seed:
            return "loss[" + std::to_string(root.label) + ']';
        case TreeKind::Weight:
            return name(tree, "w");
        case TreeKind::Random:
            return name(tree, "key") + (root.left > 0 ? '#' + std::to_string(root.left) : "");
        case TreeKind::Value:
            return made("v", inner(root.left));
        case TreeKind::InputGradient:
            return made("dv",
                        "input " + std::to_string(root.slot) + ", " + inner(root.left) + ", " + inner(root.right));
        case TreeKind::WeightGradient:
            return made("dw", inner(root.left) + ", " + inner(root.right));
        case TreeKind::Sum:
            return depth > 0 ? sum_text(tree, depth - 1) : "(..)";
        case TreeKind::Buffer:
            return made("buffer", inner(root.left) + ", " + inner(root.right));
        case TreeKind::Reduced:
            return "reduced " + text(root.left, depth);
        case TreeKind::List:
            return text(root.left, depth) + (root.right == kUndefined ? "" : ", " + text(root.right, depth));
    }
    return "";
}

std::string TreePool::difference_text(Tree got, Tree expected) const {
    while (same_head(nodes_[got], nodes_[expected])) {
        const TreeNode &one = nodes_[got], &other = nodes_[expected];
        const bool left_differs = one.left != other.left, right_differs = one.right != other.right;
        if (left_differs && right_differs) break;
        if (right_differs && one.kind == TreeKind::Sum) break;  // (what is equal + X): shown with its bracket
        got = left_differs ? one.left : one.right;
        expected = left_differs ? other.left : other.right;
    }
    for (int depth = 1; depth < kShownDepth; ++depth) {
        const std::string one = text(got, depth), other = text(expected, depth);
        if (one != other) return one + " instead of " + other;
    }
    return text(got, kShownDepth) + " instead of " + text(expected, kShownDepth);
}

}  // namespace vpp
