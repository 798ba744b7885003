#include "graph/jit_alias_loops.hpp"

#include <set>
#include <unordered_set>
#include <vector>

#include "graph/jit_alias.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

/// What a loop carries from round to round, by number: what it is given, what a round is given and gives, and what the
/// loop gives.
class Carried {
  public:
    explicit Carried(Node* loop) : loop_(loop), body_(loop->blocks()[0]) {
        for (size_t i = 0; i < size(); ++i) passed_on_.push_back(inputs_passed_on(i));
        for (size_t i = 0; i < size(); ++i) close(i);
    }

    size_t size() const { return loop_->outputs().size(); }
    Value* into_loop(size_t i) const { return loop_->input(i + 2); }
    Value* into_round(size_t i) const { return body_->inputs()[i + 1]; }
    Value* out_of_loop(size_t i) const { return loop_->output(i); }

    /// Those that may be what number i becomes behind one round or several.
    const std::set<size_t>& passed_on(size_t i) const { return passed_on_[i]; }

  private:
    /// Those whose memory one round may give on as number i.
    std::set<size_t> inputs_passed_on(size_t i) const {
        std::set<size_t> found;
        std::vector<const Value*> open{body_->outputs()[i + 1]};
        std::unordered_set<const Value*> seen;
        while (!open.empty()) {
            const Value* value = open.back();
            open.pop_back();
            if (is_plain(*value->type()) || !seen.insert(value).second) continue;
            const Node* node = value->node();
            if (node == body_->param_node()) {
                found.insert(value->offset() - 1);
            } else if (!node->blocks().empty() || !makes_fresh_memory(node)) {
                open.insert(open.end(), node->inputs().begin(), node->inputs().end());
                for (const Block* block : node->blocks()) {
                    open.insert(open.end(), block->outputs().begin(), block->outputs().end());
                }
            }
        }
        return found;
    }

    void close(size_t i) {
        std::vector<size_t> open(passed_on_[i].begin(), passed_on_[i].end());
        while (!open.empty()) {
            const size_t from = open.back();
            open.pop_back();
            for (size_t next : passed_on_[from]) {
                if (passed_on_[i].insert(next).second) open.push_back(next);
            }
        }
    }

    Node* loop_;
    Block* body_;
    std::vector<std::set<size_t>> passed_on_;
};

class Loops {
  public:
    Loops(torch::jit::Graph& graph, ValueTwins& twins) : graph_(graph) {
        for (auto& [original, twin] : twins) twin_of_.emplace(twin, &twin);
    }

    void tell(Block* block) {
        for (auto it = block->nodes().begin(); it != block->nodes().end();) {
            Node* node = *it++;  // stepped first: nodes are put in behind it
            for (Block* inner : node->blocks()) tell(inner);
            if (node->kind() == prim::Loop) tell_of(node);
        }
    }

  private:
    void tell_of(Node* loop) {
        const Carried carried(loop);
        Value* condition = loop->input(1);
        Node* first = *loop->blocks()[0]->nodes().begin();
        Node* behind = loop->next();
        for (size_t i = 0; i < carried.size(); ++i) {
            std::vector<Value*> in_round, in_end{carried.into_loop(i)};
            for (size_t other : carried.passed_on(i)) {
                if (other == i) continue;
                in_round.push_back(carried.into_loop(other));
                in_end.insert(in_end.end(), {carried.into_loop(other), carried.out_of_loop(other)});
            }
            may_be(carried.into_round(i), in_round, condition, first);
            may_be(carried.out_of_loop(i), in_end, condition, behind);
        }
    }

    /// From `place` on the value may be each of the others of its type: as if branches gave the one or the other.
    void may_be(Value* value, const std::vector<Value*>& others, Value* condition, Node* place) {
        if (is_plain(*value->type())) return;
        Value* result = value;
        Node* last = nullptr;
        for (Value* other : others) {
            const bool are_tensors = is_tensor(*value->type()) && is_tensor(*other->type());
            if (!are_tensors && *value->type() != *other->type()) continue;
            last = graph_.create(prim::If, {condition}, 1)->insertBefore(place);
            last->addBlock()->registerOutput(result);
            last->addBlock()->registerOutput(other);
            result = last->output()->setType(value->type());
        }
        if (!last) return;
        value->replaceAllUsesAfterNodeWith(last, result);
        const auto twin = twin_of_.find(value);
        if (twin != twin_of_.end()) *twin->second = result;
    }

    torch::jit::Graph& graph_;
    std::unordered_map<const Value*, Value**> twin_of_;  ///< value of the copy -> the entry that names it
};

}  // namespace

void tell_loops(torch::jit::Graph& copy, ValueTwins& twins) {
    Loops(copy, twins).tell(copy.block());
}

}  // namespace vpp
