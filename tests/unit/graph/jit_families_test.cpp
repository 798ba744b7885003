// No two values that share memory are in different families, whatever the graph does; and families stay small.
#include "graph/jit_families.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir_text.hpp"

namespace vpp {
namespace {

class Families {
  public:
    explicit Families(const std::string& text)
        : parsed_(test::parse_graph(text)),
          facts_(parsed_.jit),
          values_(outside_and_made(parsed_.jit)),
          families_(parsed_.jit, facts_, values_) {}

    /// Pairs of values that share memory, and of op and value that it writes, over the borders of families: the broken
    /// promises.
    int wrong() const {
        int wrong = 0;
        for (size_t a = 0; a < values_.size(); ++a) {
            for (size_t b = 0; b < values_.size(); ++b) {
                wrong += facts_.may_share(values_[a], values_[b]) && !holds(families_.values_beside(a), b);
            }
            for (size_t op = 0; op < parsed_.jit.ops.size(); ++op) {
                const bool writes = facts_.may_write(parsed_.jit.ops[op].node, values_[a]);
                wrong += writes && !holds(families_.ops_beside(a), op);
            }
        }
        return wrong;
    }

    /// How many pairs of values are left to ask about.
    size_t pairs() const {
        size_t pairs = 0;
        for (size_t value = 0; value < values_.size(); ++value) pairs += families_.values_beside(value).size();
        return pairs;
    }

    bool together(const std::string& a, const std::string& b) const {
        return holds(families_.values_beside(index(a)), index(b));
    }

  private:
    static std::vector<torch::jit::Value*> outside_and_made(const JitGraph& jit) {
        const auto inputs = jit.graph->inputs();
        std::vector<torch::jit::Value*> values(inputs.begin(), inputs.end());
        for (const JitOp& op : jit.ops) {
            values.insert(values.end(), op.node->outputs().begin(), op.node->outputs().end());
        }
        return values;
    }

    static bool holds(const std::vector<size_t>& list, size_t index) {
        return std::binary_search(list.begin(), list.end(), index);
    }

    size_t index(const std::string& name) const {
        const auto found = std::find(values_.begin(), values_.end(), parsed_.values.at(name));
        return static_cast<size_t>(found - values_.begin());
    }

    test::ParsedGraph parsed_;
    AliasFacts facts_;
    std::vector<torch::jit::Value*> values_;
    MemoryFamilies families_;
};

TEST(MemoryFamilies, AViewIsWithItsBaseAndAResultIsNot) {
    const Families families(R"IR(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::tanh(%x)
  %v : Tensor = aten::t(%y)
  %u : Tensor = aten::relu_(%v)
  %z : Tensor = aten::add(%u, %w, %one)
  return (%z))IR");
    EXPECT_EQ(families.wrong(), 0);
    EXPECT_TRUE(families.together("y", "u"));
    for (const char* other : {"x", "w", "z"}) EXPECT_FALSE(families.together("y", other)) << other;
}

TEST(MemoryFamilies, ListsThatGrowJoinWhatWasPutIn) {
    const Families families(R"IR(
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::tanh(%x)
  %c : Tensor = aten::t(%b)
  %l : Tensor[] = prim::ListConstruct()
  %m : Tensor[] = aten::append(%l, %a)
  %n : Tensor[] = aten::append(%l, %c)
  %e : Tensor = aten::__getitem__(%l, %zero)
  %f : Tensor = aten::relu_(%e)
  %alone : Tensor = aten::tanh(%f)
  return (%alone, %l))IR");
    EXPECT_EQ(families.wrong(), 0);
    EXPECT_TRUE(families.together("a", "b")) << "an element may be either";
    EXPECT_TRUE(families.together("b", "f")) << "through a view, the list and an element";
    EXPECT_FALSE(families.together("a", "alone"));
}

TEST(MemoryFamilies, ListsInListsAndDicts) {
    EXPECT_EQ(Families(R"IR(
graph(%x : Tensor, %s : str, %i : int):
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::tanh(%x)
  %inner : Tensor[] = prim::ListConstruct(%a)
  %outer : Tensor[][] = prim::ListConstruct()
  %o : Tensor[][] = aten::append(%outer, %inner)
  %again : Tensor[] = aten::__getitem__(%outer, %i)
  %element : Tensor = aten::__getitem__(%again, %i)
  %r : Tensor = aten::relu_(%element)
  %d : Dict(str, Tensor) = prim::DictConstruct()
  aten::_set_item(%d, %s, %b)
  %out : Tensor = aten::__getitem__(%d, %s)
  %w : Tensor = aten::relu_(%out)
  return (%r, %w))IR")
                  .wrong(),
              0);
}

TEST(MemoryFamilies, NumbersInListsOfListsOfNumbers) {
    EXPECT_EQ(Families(R"IR(
graph(%x : Tensor, %i : int):
  %one : int[] = prim::ListConstruct(%i)
  %two : int[] = prim::ListConstruct(%i)
  %lists : int[][] = prim::ListConstruct(%one)
  %m : int[][] = aten::append(%lists, %two)
  %l : int[] = aten::__getitem__(%lists, %i)
  %n : int[] = aten::append(%l, %i)
  %y : Tensor = aten::view(%x, %two)
  return (%y))IR")
                  .wrong(),
              0);
}

TEST(MemoryFamilies, DictsOfNumbersAlsoInsideControlFlow) {
    const Families families(R"IR(
graph(%x : Tensor, %s : str, %i : int, %c : bool):
  %one : int[] = prim::ListConstruct(%i)
  %two : int[] = prim::ListConstruct(%i)
  %d : Dict(str, int[]) = prim::DictConstruct()
  aten::_set_item(%d, %s, %one)
  %e : Dict(str, int[]) = prim::DictConstruct()
  prim::If(%c)
    block0():
      aten::_set_item(%e, %s, %two)
      -> ()
    block1():
      -> ()
  %y : Tensor = aten::view(%x, %two)
  return (%y))IR");
    EXPECT_EQ(families.wrong(), 0);
    EXPECT_TRUE(families.together("d", "one")) << "no output says that one went into d";
    EXPECT_TRUE(families.together("e", "two"));
}

TEST(MemoryFamilies, ControlFlowAndConstants) {
    const Families families(R"IR(
graph(%x : Tensor, %c : bool):
  %k : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %p : Tensor = aten::t(%k)
  %q : Tensor = aten::t(%k)
  %q2 : Tensor = aten::relu_(%q)
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = prim::If(%c)
    block0():
      %v : Tensor = aten::relu_(%y)
      -> (%v)
    block1():
      %f : Tensor = aten::tanh(%x)
      -> (%f)
  %e : Tensor = aten::tanh(%z)
  return (%e, %p, %q2))IR");
    EXPECT_EQ(families.wrong(), 0);
    EXPECT_TRUE(families.together("y", "z"));
    EXPECT_TRUE(families.together("p", "q2")) << "two views of a constant";
    EXPECT_FALSE(families.together("e", "z"));
}

/// Blocks as in a ResNet: batch norm with buffers, relu_ and add_ in place, and sizes as lists of numbers.
std::string residual_net(int blocks) {
    std::string inputs = "%x0 : Tensor, %w : Tensor, %i : int, %on : bool, %e : float", ops;
    for (int n = 0; n < blocks; ++n) {
        const std::string k = std::to_string(n), next = std::to_string(n + 1);
        inputs += ", %mean" + k + " : Tensor, %var" + k + " : Tensor";
        ops += "  %a" + k + " : Tensor = aten::mul(%x" + k + ", %w)\n";
        ops += "  %b" + k + " : Tensor = aten::batch_norm(%a" + k + ", %w, %w, %mean" + k + ", %var" + k +
               ", %on, %e, %e, %on)\n";
        ops += "  %r" + k + " : Tensor = aten::relu_(%b" + k + ")\n";
        ops += "  %s" + k + " : int[] = prim::ListConstruct(%i)\n";
        ops += "  %v" + k + " : Tensor = aten::view(%r" + k + ", %s" + k + ")\n";
        ops += "  %x" + next + " : Tensor = aten::add_(%v" + k + ", %x" + k + ", %i)\n";
    }
    return "graph(" + inputs + "):\n" + ops + "  return (%x" + std::to_string(blocks) + ")";
}

TEST(MemoryFamilies, TwiceTheOpsAreTwiceThePairs) {
    const Families small(residual_net(10)), large(residual_net(20)), larger(residual_net(40));
    EXPECT_EQ(small.wrong(), 0);
    const size_t a_block = (large.pairs() - small.pairs()) / 10;
    EXPECT_EQ(larger.pairs() - large.pairs(), 20 * a_block);
    EXPECT_LE(a_block, 20u) << "two buffers, a product, a list and four values of one memory";
}

}  // namespace
}  // namespace vpp
